"""Resolving a record sequence: the newest statement about a file counts."""

from pipeline.storage.commits import UNIT, Commit, CommitState, RecordSequence, resolve
from pipeline.storage.shards import ShardRecord


def shard(table: str, name: str) -> ShardRecord:
    return ShardRecord(table=table, file=f"{table}/{name}", sha256=name, rows=1)


LOG, LABELS, PART = shard("rollouts", "a"), shard("labels", "b"), shard("rollouts", "p")


def sequence(*steps: tuple[CommitState, tuple[ShardRecord, ...] | tuple[str, ...]]) -> RecordSequence:
    commits = []
    for number, (state, content) in enumerate(steps):
        files = tuple(file for file in content if isinstance(file, ShardRecord))
        void = tuple(name for name in content if isinstance(name, str))
        commits.append(Commit(kind=UNIT, sequence_id="1" * 20, number=number, state=state, shards=files, void=void))
    return RecordSequence(kind=UNIT, sequence_id="1" * 20, commits=tuple(commits), length=len(commits))


def test_a_void_file_is_no_part_of_the_log_and_its_unit_not_whole() -> None:
    found = resolve(
        sequence((CommitState.PART, (PART,)), (CommitState.WHOLE, (LOG, LABELS)), (CommitState.VOID, (LOG.file,)))
    )
    assert found.whole is None
    assert found.log == (PART,)
    found = resolve(
        sequence((CommitState.PART, (PART,)), (CommitState.WHOLE, (LOG, LABELS)), (CommitState.VOID, (LABELS.file,)))
    )
    assert found.whole is None
    assert found.log == (LOG,)


def test_a_file_that_was_redone_with_the_same_content_counts_again() -> None:
    whole = (CommitState.WHOLE, (LOG, LABELS))
    for lost in (LOG, LABELS):
        found = resolve(sequence(whole, (CommitState.VOID, (lost.file,)), whole))
        assert found.whole is not None
        assert found.whole.number == 2
        assert found.log == (LOG,)
    assert resolve(sequence(whole, (CommitState.VOID, (LOG.file,)), whole, (CommitState.VOID, (LOG.file,)))).log == ()
