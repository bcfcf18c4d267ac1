"""A worker: one engine, several units at once. It writes the files of its units and returns a receipt for each.

What it does with a unit is its `UnitWork`. `actors` wraps the worker in a Ray actor. This module does not depend on Ray.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

from pipeline.core.errors import EngineDied
from pipeline.core.failpoints import failpoint
from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load, Verdicts
from pipeline.core.records import UnitTarget
from pipeline.core.tables import LEARNED
from pipeline.engines.roofline import common
from pipeline.runtime.sampling import Backpressure
from pipeline.runtime.unit_log import Finished, UnitLog
from pipeline.storage.commits import Commit
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.unit_files import UnitFiles
from pipeline.storage.units import UnitRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A part of a unit's work: ask the engine `only` for these requests, and write off the requests in `failed`, which kill
    engines."""

    only: frozenset[str]
    failed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedState:
    """The file of a state that an estimator has learned, and the number of chains that it was learned from."""

    shard: ShardRecord
    chains: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTask:
    """A unit to do up to its target, as a whole or only the part that `probe` names.

    `known_length`: number of the unit's commit records that the driver knows. A unit that has not begun uses the state
    `learned` for its decisions. `growths`: the records of the run's growths.
    """

    unit: UnitRef
    unit_target: UnitTarget
    known_length: int = 0
    learned: LearnedState | None = None
    probe: Probe | None = None
    growths: tuple[Commit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the driver receives when a task ends.

    `whole`: the unit needs no more rollouts. `engine_failed` of its rollouts are requests that were written off.
    """

    whole: bool
    engine_failed: int = 0
    learned: LearnedState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a worker: counters since its start, and the load of its engine.

    `planned`: rollouts requested so far by `begun` units. `most`: those that their budget allows. `prefixes`: the prefixes of
    these units that can be sampled; `decided` of them need no more rollouts. `seconds`: time since the engine started.
    `grading_seconds`: time spent on verdicts, summed over all processes. `distinct_prompt`: distinct prompt tokens of the units
    that have ended. `hardware`: the hardware of the engine; for a sum of snapshots, the hardware that all engines have in
    common."""

    begun: int = 0
    planned: int = 0
    most: int = 0
    prefixes: int = 0
    decided: int = 0
    rollouts: int = 0
    tokens: int = 0
    verdicts: Verdicts = field(default_factory=Verdicts)
    seconds: float = 0.0
    grading_seconds: float = 0.0
    distinct_prompt: int = 0
    work: EngineWork = field(default_factory=EngineWork)
    load: Load = field(default_factory=Load)
    hardware: Hardware | None = None

    def __add__(self, other: "Snapshot") -> "Snapshot":
        counted = [part.name for part in fields(self) if part.name != "hardware"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in counted}
        return Snapshot(**sums, hardware=common(self.hardware, other.hardware))

    def left_by(self, unfinished: int) -> "Snapshot":
        """What counts on of a worker that has ended with this number of units unfinished. Those begin again elsewhere and are
        counted then, but their finished rollouts are not requested again. All units count as equally large."""
        if not unfinished:
            return replace(self, load=Load())
        begun = max(0, self.begun - unfinished)
        most, prefixes = (each * begun // self.begun if self.begun else 0 for each in (self.most, self.prefixes))
        return replace(
            self,
            load=Load(),
            begun=begun,
            planned=self.rollouts,
            most=most,
            prefixes=prefixes,
            decided=min(self.decided, prefixes),
        )

    @property
    def progress(self) -> tuple[object, ...]:
        """A value that changes with any progress, and never with time alone."""
        return self.begun, self.planned, self.rollouts, self.tokens, self.work.generated, self.load


Log = TypeVar("Log", bound=UnitLog)
Result = TypeVar("Result")


class UnitWork(Protocol[Log]):
    """What a kind of run does in a worker, with its engine. `backpressure`: known after `start`."""

    backpressure: Backpressure

    async def fetch(self) -> None:
        """Download to this machine what the engine loads, if it loads anything. Raises PolicyError."""
        return

    async def start(self) -> str:
        """Load the model and return its identity. Raises PolicyError."""
        ...

    async def open(self, storage: Storage, task: UnitTask, files: UnitFiles) -> Log:
        """The log of a unit, not read yet, with the rows of its input. Raises StoreError."""
        ...

    async def work(self, task: UnitTask, log: Log) -> Finished | None:
        """Do what the unit lacks, or the part that its probe names, and add it to the log. None if the unit needs more after
        it. Raises EngineDied, and StoreError."""
        ...

    async def missing(self, task: UnitTask, log: Log) -> list[str]:
        """Ids of what the unit needs next from the engine."""
        ...

    def snapshot(self) -> Snapshot:
        """Counts since the start, and the load of the engine."""
        ...

    async def close(self) -> None:
        """Free the device, and end the processes."""
        ...


class Worker:
    """See the module. `flush_seconds`: how often new rows of a unit are committed."""

    def __init__(
        self,
        work: UnitWork[Any],
        storage: Storage,
        flush_seconds: float,
    ) -> None:
        self._work = work
        self._storage = storage
        self._flush_seconds = flush_seconds
        self._began: float | None = None
        self._open: dict[UnitLog, None] = {}

    async def fetch(self) -> None:
        """Download to this machine what the worker loads. Raises PolicyError."""
        await self._work.fetch()

    async def start(self) -> str:
        """Load the model and return its identity. Raises PolicyError."""
        model = await self._work.start()
        self._began = _now()
        return model

    async def finish_unit(self, task: UnitTask) -> Receipt:
        """Do what a unit still needs and commit its files. Raises EngineDied if the engine stopped working, and StoreError."""
        pressure = self._started().backpressure
        pressure.begin(task.unit.unit_id)
        try:
            return await self._finished(task)
        finally:
            pressure.ready(task.unit.unit_id)

    async def _finished(self, task: UnitTask) -> Receipt:
        log = await self._opened(task)
        self._open[log] = None
        try:
            while (whole := log.done) is None:
                finished = await self._worked(task, log)
                if finished is None:
                    return Receipt(whole=False)
                await log.complete(finished)
        finally:
            del self._open[log]
        return Receipt(
            whole=True,
            engine_failed=whole.tally["engine_failed"],
            learned=learned_state_of(whole),
        )

    async def _worked(self, task: UnitTask, log: UnitLog) -> Finished | None:
        try:
            finished = await _with_flushes(log.flush, self._flush_seconds, self._work.work(task, log))
        except EngineDied:
            await log.flush()
            raise
        if finished is None:
            await log.flush()
        return finished

    async def wait_for_capacity(self, begun: int) -> None:
        """Return when the engine needs another unit to stay busy, but not before `begun` units have arrived."""
        await self._started().backpressure.wait(begun)

    async def missing_requests(self, task: UnitTask) -> list[str]:
        """Ids of what a unit needs next from the engine; an empty list if it is whole."""
        log = await self._opened(task)
        return [] if log.done else await self._started().missing(task, log)

    async def snapshot(self) -> Snapshot:
        if self._began is None:
            return Snapshot()
        return replace(self._work.snapshot(), seconds=_now() - self._began)

    async def drain(self) -> None:
        """Commit all finished results. Raises StoreError."""
        for log in list(self._open):
            await log.flush()

    async def stop(self) -> None:
        """Free the device."""
        await self._work.close()

    def _started(self) -> UnitWork[Any]:
        if self._began is None:
            raise EngineDied("the worker has not been started")
        return self._work

    async def _opened(self, task: UnitTask) -> UnitLog:
        offered = (task.learned.shard,) if task.learned else ()
        files = UnitFiles(self._storage, task.unit.unit_id, task.known_length, offered)
        log: UnitLog = await self._started().open(self._storage, task, files)
        await log.read()
        failpoint("worker.opened")
        return log


async def _with_flushes(
    flush: Callable[[], Coroutine[Any, Any, None]], seconds: float, work: Coroutine[Any, Any, Result]
) -> Result:
    """The result of `work`, while `flush` is called every `seconds`. Raises what either of them raises, and ends both."""
    working = asyncio.create_task(work)
    flushing = asyncio.create_task(_regularly(flush, seconds))
    try:
        await asyncio.wait([working, flushing], return_when=asyncio.FIRST_COMPLETED)
        if flushing.done():
            flushing.result()
        return await working
    finally:
        for task in (working, flushing):
            task.cancel()


async def _regularly(flush: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        await flush()


def _now() -> float:
    return asyncio.get_running_loop().time()


def learned_state_of(whole: Commit) -> LearnedState | None:
    """The state that an estimator has learned after this whole unit, or from all units of this edition; None if it does not
    learn."""
    for shard in whole.shards:
        if shard.table in LEARNED:
            return LearnedState(shard=shard, chains=whole.learned_from)
    return None
