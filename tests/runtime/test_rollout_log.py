"""The log of a unit of `label` that another process also writes to, and whose flushes may be cancelled."""

import asyncio
import gc
import threading
from pathlib import Path

import pytest

from pipeline.core.errors import StoreError
from pipeline.core.ids import rollout_id
from pipeline.core.records import Tally, UnitTarget
from pipeline.core.tables import ROLLOUTS
from pipeline.runtime.rollout_log import RolloutLog
from pipeline.runtime.unit_log import Finished, LogTable
from pipeline.storage.commits import UNIT, CommitState, record_sequence
from pipeline.storage.local import LocalStorage
from pipeline.storage.repair import repair
from pipeline.storage.unit_files import UnitFiles
from tests.storage.test_unit_files import PREFIX_ID, UNIT_ID, rollout


class HeldStorage(LocalStorage):
    """A store that publishes files when the test allows it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked, self.allowed = threading.Event(), threading.Event()

    def create(self, name: str, data: bytes) -> bool:
        self.asked.set()
        self.allowed.wait()
        return super().create(name, data)


async def buffer(storage: LocalStorage) -> RolloutLog:
    opened = RolloutLog(UnitFiles(storage, UNIT_ID), unit_target=UnitTarget(rollouts=2))
    await opened.read()
    return opened


def rows(storage: LocalStorage) -> list[tuple[str, str]]:
    tables = [table for name, table in UnitFiles(storage, UNIT_ID).read() if name == "rollouts"]
    return [(row["rollout_id"], row["text"]) for table in tables for row in table.to_pylist()]


async def test_an_answer_that_somebody_else_has_committed_meanwhile_is_dropped(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    one, other = await buffer(storage), await buffer(storage)
    one.add_rollout(rollout(0, "one"))
    one.add_rollout(rollout(1, "one"))
    await one.flush()
    other.add_rollout(rollout(0, "other"))
    await other.flush()
    other.add_rollout(rollout(1, "other, under way when the log was read"))
    await other.flush()
    assert rows(storage) == [(rollout_id(PREFIX_ID, issue), "one") for issue in range(2)]


def test_what_was_dropped_can_be_added_again() -> None:
    table = LogTable.whole(ROLLOUTS)
    for issue in range(2):
        assert table.add(rollout(issue, "first")) is not None
    table.drop(lambda key: key == rollout_id(PREFIX_ID, 1))
    assert [*table.new] == [*table.kept] == [rollout_id(PREFIX_ID, 0)]
    assert table.add(rollout(0, "again")) is None
    assert table.add(rollout(1, "again")) is not None
    assert {each.text for each in table.new.values()} == {"first", "again"}


async def test_a_flush_that_nobody_waits_for_any_more_ends_before_the_next_commit(tmp_path: Path) -> None:
    storage = HeldStorage(tmp_path)
    opened = await buffer(storage)
    opened.add_rollout(rollout(0, "text"))
    flushing = asyncio.create_task(opened.flush())
    await asyncio.to_thread(storage.asked.wait)
    flushing.cancel()
    completing = asyncio.create_task(opened.complete(Finished(results={}, tally=Tally(), readings=opened.readings)))
    await asyncio.sleep(0.05)
    assert not completing.done()
    storage.allowed.set()
    assert await completing
    found = record_sequence(storage, UNIT, UNIT_ID)
    assert [(commit.number, commit.state) for commit in found.commits] == [
        (0, CommitState.PART),
        (1, CommitState.WHOLE),
    ]


class FullStorage(HeldStorage):
    """A store that, when the test allows it, has no space left."""

    def create(self, name: str, data: bytes) -> bool:
        self.asked.set()
        self.allowed.wait()
        raise StoreError("no space left")


async def test_a_flush_that_nobody_waits_for_any_more_fails_in_silence_and_keeps_its_rows(tmp_path: Path) -> None:
    complaints: list[str] = []

    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
    storage = FullStorage(tmp_path)
    opened = await buffer(storage)
    opened.add_rollout(rollout(0, "text"))
    flushing = asyncio.create_task(opened.flush())
    await asyncio.to_thread(storage.asked.wait)
    flushing.cancel()
    storage.allowed.set()
    with pytest.raises(StoreError):
        await opened.flush()
    del flushing
    gc.collect()
    assert complaints == []


async def test_results_from_before_the_log_was_read_again_are_stale(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    one, other = await buffer(storage), await buffer(storage)
    readings = other.readings
    one.add_rollout(rollout(0, "one"))
    await one.flush()
    other.add_rollout(rollout(1, "other"))
    await other.flush()
    assert not await other.complete(Finished(results={}, tally=Tally(), readings=readings))
    assert other.done is None
    assert await other.complete(Finished(results={}, tally=Tally(), readings=other.readings))


async def test_what_has_become_void_is_forgotten(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    opened = await buffer(storage)
    opened.add_rollout(rollout(0, "lost"))
    await opened.flush()
    (part,) = record_sequence(storage, UNIT, UNIT_ID).commits
    (tmp_path / part.shards[0].file).unlink()
    repair(storage, record_sequence(storage, UNIT, UNIT_ID))
    opened.add_rollout(rollout(1, "new"))
    await opened.flush()
    assert set(opened.outcomes) == {rollout_id(PREFIX_ID, 1)}
