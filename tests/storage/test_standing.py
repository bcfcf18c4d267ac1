"""What a chain of records amounts to: the newest word about a file counts."""

from pipeline.storage.commits import UNIT, Commit, CommitChain, State, standing
from pipeline.storage.shards import ShardRecord


def shard(table: str, name: str) -> ShardRecord:
    return ShardRecord(table=table, file=f"{table}/{name}", sha256=name, rows=1)


LOG, LABELS, PART = shard("rollouts", "a"), shard("labels", "b"), shard("rollouts", "p")


def chain(*steps: tuple[State, tuple[ShardRecord, ...] | tuple[str, ...]]) -> CommitChain:
    commits = []
    for number, (state, content) in enumerate(steps):
        files = tuple(file for file in content if isinstance(file, ShardRecord))
        void = tuple(name for name in content if isinstance(name, str))
        commits.append(Commit(kind=UNIT, chain_id="1" * 20, number=number, state=state, shards=files, void=void))
    return CommitChain(kind=UNIT, chain_id="1" * 20, commits=tuple(commits), length=len(commits))


def test_a_void_file_is_no_part_of_the_log_and_its_unit_not_whole() -> None:
    found = standing(chain((State.PART, (PART,)), (State.WHOLE, (LOG, LABELS)), (State.VOID, (LOG.file,))))
    assert found.whole is None
    assert found.log == (PART,)
    found = standing(chain((State.PART, (PART,)), (State.WHOLE, (LOG, LABELS)), (State.VOID, (LABELS.file,))))
    assert found.whole is None
    assert found.log == (LOG,)


def test_a_file_that_was_redone_with_the_same_content_counts_again() -> None:
    whole = (State.WHOLE, (LOG, LABELS))
    for lost in (LOG, LABELS):
        found = standing(chain(whole, (State.VOID, (lost.file,)), whole))
        assert found.whole is not None
        assert found.whole.number == 2
        assert found.log == (LOG,)
    assert standing(chain(whole, (State.VOID, (LOG.file,)), whole, (State.VOID, (LOG.file,)))).log == ()
