"""The scheduler with workers that die, hang and disappear at chosen points."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from pipeline.config.label import RunConfig
from pipeline.core.errors import EngineDied, Interrupted, StoreError, WorkerLost
from pipeline.core.progress import EngineWork, Load, Status
from pipeline.runtime.scheduler import TAIL_UNITS
from pipeline.runtime.worker import Receipt, Snapshot, UnitTask
from pipeline.runtime.worker_handle import WorkerPool
from tests.runtime.idle import IdleWorker, job, scheduler

QUICK = {"progress_seconds": 0.02, "stall_seconds": 0.1, "units_in_flight": 2}


@dataclass
class Ledger:
    """The shared state of the workers of a test: the requests that each unit still needs, and the faults of workers."""

    owed: dict[str, set[str]]
    deadly: set[str] = field(default_factory=set)
    befalls: list[Callable[[], None]] = field(default_factory=list)
    """What happens to the first calls, in their order."""
    hangs: set[int] = field(default_factory=set)
    """Attempts whose workers never answer."""
    slow_seconds: float = 0.0
    """How long a unit takes, while tokens go on coming."""
    written_off: set[str] = field(default_factory=set)
    hired: int = 0
    drained: int = 0
    alone: list[frozenset[str]] = field(default_factory=list)
    warnings: tuple[str, ...] = ()
    """Of the last status."""


@dataclass
class ScriptedWorker(IdleWorker):
    """A worker that answers requests by taking them off the ledger."""

    ledger: Ledger
    attempt: int
    dead: bool = False
    looks: int = 0

    async def start(self) -> str:
        self.ledger.hired += 1
        return "policy"

    async def finish_unit(self, task: UnitTask) -> Receipt:
        await asyncio.sleep(self.ledger.slow_seconds)
        ledger, unit = self.ledger, task.unit.unit_id
        if self.attempt in ledger.hangs:
            await asyncio.Event().wait()
        if ledger.befalls:
            ledger.befalls.pop(0)()
        asked = ledger.owed[unit]
        if task.probe:
            ledger.alone.append(task.probe.only)
            asked = ledger.owed[unit] & task.probe.only
            ledger.written_off |= ledger.owed[unit] & task.probe.failed
            ledger.owed[unit] -= task.probe.failed
        if self.dead or asked & ledger.deadly:
            self.dead = True
            raise EngineDied("the engine is dead")
        ledger.owed[unit] -= asked
        return Receipt(unit_id=unit, whole=not ledger.owed[unit], engine_failed=0)

    async def missing_requests(self, task: UnitTask) -> list[str]:
        return sorted(self.ledger.owed[task.unit.unit_id])

    async def snapshot(self) -> Snapshot:
        self.looks += 1
        return Snapshot(work=EngineWork(generated=self.looks if self.ledger.slow_seconds else 0))

    async def drain(self) -> None:
        self.ledger.drained += 1

    def kill(self) -> None:
        self.dead = True


def work_off(
    ledger: Ledger, workers: int = 2, check: Callable[[], None] = lambda: None, **settings: float
) -> list[str]:
    """Have the units of the ledger done, and return the stages that were shown."""
    stages: list[str] = []

    def watch(status: Status) -> None:
        stages.append(status.stage)
        ledger.warnings = status.warnings

    config = RunConfig(**{**QUICK, **settings})  # type: ignore[arg-type]
    pool = WorkerPool(hire=lambda attempt: ScriptedWorker(ledger, attempt), workers=workers)
    asyncio.run(scheduler(pool, [job(unit) for unit in ledger.owed], config, watch=watch, check=check).work_off())
    return stages


def units(count: int, requests: int = 8) -> dict[str, set[str]]:
    return {f"u{unit}": {f"u{unit}-{request}" for request in range(requests)} for unit in range(count)}


def failing(error: type[Exception]) -> Callable[[], None]:
    def befall() -> None:
        raise error("as the test wants it")

    return befall


def test_why_a_worker_died_stays_as_a_warning() -> None:
    ledger = Ledger(owed=units(2), befalls=[failing(EngineDied)])
    work_off(ledger)
    assert ledger.warnings == ("a worker was replaced: as the test wants it",)
    assert not any(ledger.owed.values())


def test_units_of_a_worker_that_died_are_counted_once() -> None:
    """What the next worker will count again is left out: all of the unfinished unit, but its finished rollouts."""
    died = Snapshot(begun=3, planned=72, prefixes=9, decided=7, rollouts=50, load=Load(running=20))
    left = died.left_by(1)
    assert (left.begun, left.planned, left.prefixes, left.decided, left.rollouts) == (2, 50, 6, 6, 50)
    assert left.load == Load()
    again = left + Snapshot(begun=1, planned=22, prefixes=3, decided=3, rollouts=22)
    assert (again.begun, again.planned, again.prefixes, again.decided, again.rollouts) == (3, 72, 9, 9, 72)


def test_a_worker_without_unfinished_units_or_with_nothing_begun_leaves_its_counts() -> None:
    done = Snapshot(begun=2, planned=9, prefixes=6, decided=6, rollouts=9)
    assert done.left_by(0) == done
    assert Snapshot().left_by(2) == Snapshot()


def test_all_units_are_worked_off() -> None:
    ledger = Ledger(owed=units(9))
    work_off(ledger)
    assert not any(ledger.owed.values())
    assert ledger.hired == 2


@pytest.mark.parametrize("deadly", [{"u1-3"}, {"u0-0", "u0-7", "u2-5"}])
def test_deadly_requests_are_written_off_and_all_others_are_answered(deadly: set[str]) -> None:
    ledger = Ledger(owed=units(4), deadly=deadly)
    work_off(ledger)
    assert not any(ledger.owed.values())
    assert ledger.written_off == deadly


def test_a_unit_that_only_stood_beside_a_deadly_one_is_tried_alone_and_done() -> None:
    ledger = Ledger(owed=units(2), deadly={"u0-0"})
    work_off(ledger, workers=1)
    assert ledger.written_off == {"u0-0"}
    assert not any(ledger.owed.values())


def test_workers_that_are_taken_away_cost_no_attempt() -> None:
    ledger = Ledger(owed=units(1), befalls=[failing(WorkerLost)] * 20)
    stages = work_off(ledger, workers=1, max_failures=1)
    assert ledger.hired == 21
    assert ledger.alone == []
    assert any("replacing a worker" in stage for stage in stages)


def test_a_place_where_no_worker_lives_ends_the_run() -> None:
    ledger = Ledger(owed=units(1), befalls=[failing(WorkerLost)] * 1000)
    with pytest.raises(EngineDied, match="100 workers in a row were lost with their machines and no unit was finished"):
        work_off(ledger, workers=1)


def test_a_worker_that_hangs_is_replaced() -> None:
    ledger = Ledger(owed=units(3), hangs={1})
    work_off(ledger, workers=1)
    assert not any(ledger.owed.values())
    (warning,) = ledger.warnings
    assert "run.stall_seconds" in warning


def test_a_worker_that_is_slow_and_moves_is_left_alone() -> None:
    ledger = Ledger(owed=units(1), slow_seconds=1.2)
    stages = work_off(ledger, workers=1, stall_seconds=0.7)
    assert ledger.hired == 1
    assert not any("replacing a worker" in stage for stage in stages)


def test_too_many_failures_end_the_run_and_the_others_commit_what_they_have() -> None:
    ledger = Ledger(owed=units(4), befalls=[failing(EngineDied)] * 100)
    with pytest.raises(EngineDied, match=r"workers failed 7 times \(run\.max_failures\).*start the same command again"):
        work_off(ledger, max_failures=7)
    assert ledger.drained >= 2


@pytest.mark.parametrize("error", [StoreError, Interrupted])
def test_other_errors_end_the_run_at_once_and_workers_are_drained(error: type[Exception]) -> None:
    ledger = Ledger(owed=units(4), befalls=[failing(error)])
    with pytest.raises(error, match="as the test wants it"):
        work_off(ledger)
    assert ledger.drained == 2


def test_a_signal_drains_the_workers() -> None:
    looks = iter(range(10))

    def check() -> None:
        if next(looks) == 3:
            raise Interrupted("stop")

    ledger = Ledger(owed=units(50), hangs={1})
    with pytest.raises(Interrupted, match="stop"):
        work_off(ledger, check=check, stall_seconds=100)
    assert ledger.drained == 2


def test_the_last_units_are_given_out_longest_first() -> None:
    order: list[str] = []
    sizes = Random(5).sample(range(1000), 3 * TAIL_UNITS)

    class NotingWorker(ScriptedWorker):
        async def finish_unit(self, task: UnitTask) -> Receipt:
            order.append(task.unit.unit_id)
            return await super().finish_unit(task)

    ledger = Ledger(owed=units(len(sizes)))
    jobs = [job(unit, size=size) for unit, size in zip(ledger.owed, sizes, strict=True)]
    pool = WorkerPool(hire=lambda attempt: NotingWorker(ledger, attempt), workers=1)
    at_work = scheduler(pool, jobs, RunConfig(**{**QUICK, "units_in_flight": 1}))  # type: ignore[arg-type]
    asyncio.run(at_work.work_off())
    names, first = list(ledger.owed), len(sizes) - TAIL_UNITS
    assert order[:first] == names[:first]
    assert order[first:] == sorted(names[first:], key=lambda name: -sizes[names.index(name)])
    assert at_work.at_end_of_input is not None
