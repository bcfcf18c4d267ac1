"""What counts as damage, and repair, which never frees a number of a record sequence."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.core.errors import StoreError
from pipeline.core.records import Tally, UnitTarget
from pipeline.storage.commits import UNIT, Commit, CommitState, commit_name, publish, record_sequence, resolve
from pipeline.storage.local import LocalStorage
from pipeline.storage.repair import repair
from pipeline.storage.run_record import claim
from pipeline.storage.shards import write_shard
from pipeline.storage.unit_files import UnitFiles
from tests.faults.disk import FakeDisk, ProcessDisk, Strike
from tests.faults.world import World
from tests.storage.test_unit_files import UNIT_ID, rollouts


class Recording(LocalStorage):
    """Records the names that became free after they had been taken."""

    def __init__(self, folder: Path, watched: str) -> None:
        super().__init__(folder)
        self._watched = watched
        self.freed = False

    def move(self, name: str, new_name: str) -> None:
        super().move(name, new_name)
        self.freed = self.freed or name == self._watched


def part(storage: LocalStorage, number: int, table: pa.Table) -> Commit:
    shard = write_shard(storage, "rollouts", UNIT_ID, [table], folder="flushed")
    commit = Commit(kind=UNIT, sequence_id=UNIT_ID, number=number, state=CommitState.PART, shards=(shard,))
    assert publish(storage, commit)
    return commit


def test_the_number_of_a_damaged_record_is_free_at_no_time(tmp_path: Path) -> None:
    damaged = commit_name(part(LocalStorage(tmp_path), 0, rollouts({0}, "a")))
    (tmp_path / damaged).write_text("{}")
    storage = Recording(tmp_path, damaged)
    mended, names = repair(storage, record_sequence(storage, UNIT, UNIT_ID))
    assert not storage.freed
    assert names == [damaged]
    assert [commit.state for commit in mended.commits] == [CommitState.VOID]
    assert (tmp_path / "damaged" / damaged.replace("/", "-")).read_text() == "{}"


def test_a_file_that_cannot_be_read_for_now_is_no_damage() -> None:
    world = World("read error", FakeDisk())
    process = world.process("driver")
    storage = LocalStorage(Path("/run"), ProcessDisk(world.disk, process))
    kept = part(storage, 0, rollouts({0}, "a"))
    found = record_sequence(storage, UNIT, UNIT_ID)
    world.strikes[world.effects + 1] = Strike.EIO
    with pytest.raises(StoreError, match="cannot be read"):
        repair(storage, found)
    assert repair(storage, found) == (found, [])
    assert found.commits == (kept,)
    world.loop.close()


def test_a_file_made_again_under_the_name_it_had_counts_again(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    log = UnitFiles(storage, UNIT_ID)
    log.read()
    assert log.complete({"rollouts": rollouts({0, 1}, "a")}, {}, Tally(), UnitTarget(rollouts=2))
    (whole,) = record_sequence(storage, UNIT, UNIT_ID).commits
    (tmp_path / whole.shards[0].file).unlink()
    mended, _ = repair(storage, record_sequence(storage, UNIT, UNIT_ID))
    assert resolve(mended).whole is None
    again = UnitFiles(storage, UNIT_ID)
    assert again.read() == []
    assert again.complete({"rollouts": rollouts({0, 1}, "a")}, {}, Tally(), UnitTarget(rollouts=2))
    found = resolve(record_sequence(storage, UNIT, UNIT_ID))
    assert found.whole is not None
    assert found.whole.shards == whole.shards == found.log


def test_a_commit_record_under_the_name_of_the_run_record_is_damage(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    claim(storage, {"schema": 2})
    record = commit_name(part(storage, 0, rollouts({0}, "a")))
    (tmp_path / "run.json").write_bytes((tmp_path / record).read_bytes())
    with pytest.raises(StoreError, match="another file"):
        claim(storage, {"schema": 2})
