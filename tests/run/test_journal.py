"""The journal of a unit: what is committed counts as committed, whoever stops waiting for it."""

import asyncio
import contextlib
import threading
from pathlib import Path

from pipeline.records import Completion, Finish, Grade, Prefix, Problem, Request, Rollout, Totals, Verdict
from pipeline.run.journal import Journal
from pipeline.store.commits import UNIT, chain
from pipeline.store.disk import OsDisk
from pipeline.store.local import LocalStorage
from pipeline.store.shards import read_shard
from pipeline.store.standing import standing
from pipeline.store.unit_log import UnitLog

UNIT_ID = "0a" * 10
A_MOMENT = 0.2
"""For a thread to come back from what it has just published."""


class SlowDisk(OsDisk):
    """Publishes when it is told to, and says that it has been asked."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def link(self, path: str, new_path: str) -> None:
        self.asked.set()
        self.go_on.wait()
        super().link(path, new_path)


def rollout(number: int) -> Rollout:
    problem = Problem(problem_id="p", text="1 + 1?", golds=("2",))
    prefix = Prefix(prefix_id="x", step_index=0, text="", prompt_ids=())
    request = Request(request_id=f"x-{number:05d}", issue_index=number, problem=problem, prefix=prefix)
    return Rollout(
        completion=Completion(request=request, text="2", finish=Finish.STOP, n_tokens=1),
        grade=Grade(verdict=Verdict.CORRECT, answer="2", ms=0.0),
    )


def test_a_flush_that_is_cancelled_on_its_way_commits_no_row_a_second_time(tmp_path: Path) -> None:
    disk = SlowDisk()
    storage = LocalStorage(tmp_path, disk)
    journal = Journal(UnitLog(storage, UNIT_ID), grader="g", target=2)

    async def work() -> None:
        await journal.read()
        journal.add_rollout(rollout(0))
        flush = asyncio.create_task(journal.flush())
        await asyncio.to_thread(disk.asked.wait)
        flush.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await flush
        disk.go_on.set()
        while not chain(storage, UNIT, UNIT_ID).commits:
            await asyncio.sleep(0.01)
        await asyncio.sleep(A_MOMENT)
        journal.add_rollout(rollout(1))
        assert await journal.complete({}, Totals(rollouts=2), seconds=0.0)

    asyncio.run(work())
    log = standing(chain(storage, UNIT, UNIT_ID)).log
    ids = [row for shard in log for row in read_shard(storage, shard)["rollout_id"].to_pylist()]
    assert ids == ["x-00000", "x-00001"]
