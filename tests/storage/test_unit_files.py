"""The log of a unit: each row once, whoever writes. Damaged files are replaced by intact earlier ones."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import RunConflict
from pipeline.core.ids import rollout_id, shard_name
from pipeline.core.records import Finish, Problem, Rollout, Tally, UnitTarget, Verdict
from pipeline.core.tables import ROLLOUTS
from pipeline.storage.commits import UNIT, Commit, CommitState, publish, record_sequence, resolve
from pipeline.storage.local import LocalStorage
from pipeline.storage.repair import repair
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.unit_files import UnitFiles

UNIT_ID = "1" * 20
PREFIX_ID = "b" * 20
PROBLEM = Problem(problem_id="a" * 20, text="?", golds=("1",))


def rollout(issue: int, text: str, **changed: Any) -> Rollout:
    usual: dict[str, Any] = {
        "rollout_id": rollout_id(PREFIX_ID, issue),
        "prefix_id": PREFIX_ID,
        "problem_id": PROBLEM.problem_id,
        "step_index": 0,
        "issue_index": issue,
        "round": 0,
        "reached_prefix_id": None,
        "text": text,
        "finish": Finish.STOP,
        "n_tokens": 1,
        "answer": "1",
        "verdict": Verdict.CORRECT,
        "grader": "g",
    }
    return Rollout(**usual | changed)


def rollouts(issues: set[int], text: str) -> pa.Table:
    return ROLLOUTS.to_table([rollout(issue, text) for issue in issues])


@dataclass
class Writer:
    """A worker that commits its sampled rollouts as `RolloutLog` does."""

    storage: LocalStorage
    name: str
    log: UnitFiles = field(init=False)
    known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.log = UnitFiles(self.storage, UNIT_ID)
        self.read()

    def read(self) -> None:
        for _, table in self.log.read():
            self.known.update(str(row_id) for (row_id,) in ROLLOUTS.keys(table))

    def owed(self, issues: set[int]) -> pa.Table:
        return rollouts({issue for issue in issues if rollout_id(PREFIX_ID, issue) not in self.known}, self.name)

    def flush(self, issues: set[int]) -> None:
        while not self.log.append({"rollouts": self.owed(issues)}, Tally()):
            self.read()
        self.known.update(rollout_id(PREFIX_ID, issue) for issue in issues)

    def complete(self, issues: set[int], target: int = 1) -> None:
        while not self.log.complete({"rollouts": self.owed(issues)}, {}, Tally(), UnitTarget(rollouts=target)):
            self.read()
        self.known.update(rollout_id(PREFIX_ID, issue) for issue in issues)


def rows_by_id(storage: LocalStorage) -> dict[str, str]:
    """The text of each rollout in the log. No id occurs twice."""
    found = resolve(record_sequence(storage, UNIT, UNIT_ID))
    rows = [row for shard in found.log for row in read_shard(storage, shard).to_pylist()]
    texts = {row["rollout_id"]: row["text"] for row in rows}
    assert len(texts) == len(rows)
    return texts


steps = st.tuples(st.integers(0, 2), st.sampled_from(["flush", "complete"]), st.sets(st.integers(0, 9), min_size=1))


@given(st.lists(steps, max_size=12))
def test_whoever_writes_every_row_is_there_once_and_never_changes(
    tmp_path_factory: pytest.TempPathFactory, work: list[tuple[int, str, set[int]]]
) -> None:
    """Writers that do not know of each other, such as a worker and another one that the driver considered dead."""
    storage = LocalStorage(tmp_path_factory.mktemp("run"))
    writers = [Writer(storage, name) for name in "abc"]
    seen: dict[str, str] = {}
    for writer, verb, issues in work:
        (writers[writer].flush if verb == "flush" else writers[writer].complete)(issues)
        now = rows_by_id(storage)
        assert seen.items() <= now.items()
        assert {rollout_id(PREFIX_ID, issue) for issue in issues} <= now.keys()
        named = {shard.file for commit in record_sequence(storage, UNIT, UNIT_ID).commits for shard in commit.shards}
        assert {*storage.names("rollouts"), *storage.names("flushed")} == named, "who loses leaves nothing there"
        seen = now


def test_a_whole_unit_has_one_file_and_a_larger_one_adds_to_it(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    writer = Writer(storage, "a")
    writer.flush({0, 1})
    writer.flush({2})
    writer.complete({3})
    assert [shard.rows for shard in resolve(record_sequence(storage, UNIT, UNIT_ID)).log] == [4]
    again = Writer(storage, "b")
    assert again.log.whole is not None
    again.flush({4})
    again.complete({5}, target=2)
    found = resolve(record_sequence(storage, UNIT, UNIT_ID))
    assert [shard.rows for shard in found.log] == [4, 2]
    assert found.whole is not None
    assert found.whole.unit_target == UnitTarget(rollouts=2)
    assert sorted(storage.names("rollouts")) == sorted(shard.file for shard in found.log)
    assert list(rows_by_id(storage).values()) == ["a"] * 4 + ["b"] * 2


@pytest.mark.parametrize("lost", ["rollouts", "flushed"])
def test_a_damaged_file_falls_back_on_the_others(tmp_path: Path, lost: str) -> None:
    storage = LocalStorage(tmp_path)
    writer = Writer(storage, "a")
    writer.flush({0, 1})
    writer.flush({2})
    if lost == "rollouts":
        writer.complete({3})
    path = tmp_path / storage.names(lost)[0]
    path.write_bytes(path.read_bytes()[:-5])
    held = 4 if lost == "rollouts" else len(rows_by_id_of(path, storage))
    _, damaged = repair(storage, record_sequence(storage, UNIT, UNIT_ID))
    assert damaged == [f"{lost}/{path.name}"]
    assert not path.exists()
    assert repair(storage, record_sequence(storage, UNIT, UNIT_ID))[1] == []
    left = rows_by_id(storage)
    assert len(left) == 3 if lost == "rollouts" else 3 - held
    second = Writer(storage, "b")
    assert second.log.whole is None
    second.complete({0, 1, 2, 3})
    whole = rows_by_id(storage)
    assert left.items() <= whole.items()
    assert len(whole) == 4


def rows_by_id_of(path: Path, storage: LocalStorage) -> list[int]:
    """As many numbers as the damaged file has rows according to its record."""
    (shard,) = [
        shard
        for commit in record_sequence(storage, UNIT, UNIT_ID).commits
        for shard in commit.shards
        if shard.file.endswith(path.name)
    ]
    return list(range(shard.rows))


def test_rows_that_stand_in_a_void_whole_and_in_its_parts_count_once(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    writer = Writer(storage, "a")
    writer.flush({0, 1})
    writer.complete({2})
    writer.flush({3})
    writer.complete({4}, target=2)
    first = next(name for name in storage.names("rollouts") if len(read_rows(storage, name)) == 3)
    (tmp_path / first).unlink()
    repair(storage, record_sequence(storage, UNIT, UNIT_ID))
    again = Writer(storage, "b")
    assert again.known == {rollout_id(PREFIX_ID, issue) for issue in (0, 1, 3, 4)}
    again.complete({0, 1, 2, 3, 4}, target=2)
    assert list(rows_by_id(storage).values()) == ["a", "a", "b", "a", "a"]


def read_rows(storage: LocalStorage, name: str) -> list[tuple[object, ...]]:
    found = resolve(record_sequence(storage, UNIT, UNIT_ID)).log
    return ROLLOUTS.keys(read_shard(storage, next(shard for shard in found if shard.file == name)))


def test_an_unreadable_record_is_declared_and_what_it_held_is_owed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    writer = Writer(storage, "a")
    for issue in range(3):
        writer.flush({issue})
    (tmp_path / "commits" / f"unit-{UNIT_ID}-00001.json").write_text("{}")
    found, damaged = repair(storage, record_sequence(storage, UNIT, UNIT_ID))
    assert damaged == [f"commits/unit-{UNIT_ID}-00001.json"]
    assert found == record_sequence(storage, UNIT, UNIT_ID, found.length)
    second = Writer(storage, "b")
    assert second.known == writer.known - {rollout_id(PREFIX_ID, 1)}


def test_another_drivers_word_ends_the_repair(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    Writer(storage, "a").flush({0})
    stale = record_sequence(storage, UNIT, UNIT_ID)
    publish(storage, Commit(kind=UNIT, sequence_id=UNIT_ID, number=1, state=CommitState.PART))
    (tmp_path / storage.names("flushed")[0]).unlink()
    with pytest.raises(RunConflict, match="another job works on"):
        repair(storage, stale)


KERNEL = ShardRecord(
    table="kernels", file=f"kernels/{shard_name('kernels', UNIT_ID, 'e' * 64)}", sha256="e" * 64, rows=1
)
LATER = replace(KERNEL, sha256="f" * 64)


@pytest.mark.parametrize("offered", [(), (KERNEL,)], ids=["the shipped kernel", "a learned kernel"])
def test_a_unit_goes_on_with_the_kernel_that_it_began_with_until_it_is_complete(
    tmp_path: Path, offered: tuple[ShardRecord, ...]
) -> None:
    storage = LocalStorage(tmp_path)
    first = UnitFiles(storage, UNIT_ID, 0, offered)
    assert first.read() == []
    assert first.base == offered
    assert first.append({"rollouts": rollouts({0}, "a")}, Tally())
    for known_length in (0, 1):
        again = UnitFiles(storage, UNIT_ID, known_length, (LATER,))
        again.read()
        assert again.base == first.base == offered
    assert again.complete({}, {}, Tally(), UnitTarget(rollouts=1))
    extended = UnitFiles(storage, UNIT_ID, 0, (LATER,))
    extended.read()
    assert extended.base == (LATER,)
    assert extended.append({"rollouts": rollouts({1}, "b")}, Tally())
    again = UnitFiles(storage, UNIT_ID, 0, (KERNEL,))
    again.read()
    assert again.base == (LATER,)
    assert [row["text"] for table in extended.of_whole("rollouts") for row in table.to_pylist()] == ["a"]
