"""What a driver deals in: workers as it sees them, the places that one after the other takes, and units on their way.

A unit that fails again and again is taken apart until the request to blame is alone.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pipeline.core.errors import StepvalueError
from pipeline.core.progress import Status
from pipeline.core.records import UnitTarget
from pipeline.runtime.unit import Probe
from pipeline.runtime.worker import LearnedState, Receipt, Snapshot, UnitTask
from pipeline.storage.units import UnitRef

DRAIN_SECONDS = 20.0
"""How long a worker may take to commit what it has, before it is ended."""
STOP_SECONDS = 20.0


class WorkerHandle(Protocol):
    """A worker as its driver sees it. Calls raise EngineDied when it is dead, WorkerLost when its machine is gone."""

    async def start(self) -> str: ...

    async def wait_for_capacity(self, begun: int) -> None: ...

    async def label_unit(self, task: UnitTask) -> Receipt: ...

    async def owed(self, task: UnitTask) -> list[str]: ...

    async def snapshot(self) -> Snapshot: ...

    async def drain(self) -> None: ...

    async def stop(self) -> None: ...

    def kill(self) -> None:
        """End it at once; calls under way raise EngineDied or never return."""
        ...


Watcher = Callable[[Status], None]
"""Who is told how a run goes, from the event loop: it returns at once."""
StartWorker = Callable[[int], WorkerHandle]
"""A new worker; the argument counts the workers in its place, from 1."""


def no_watcher(_status: Status) -> None:
    """A watcher that does not look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPool:
    """How to hire workers, how many there may be at once, and how many devices each takes; see `run_settings.PlanConfig`.

    `watch`: who else is told each status, where the workers come from.
    """

    hire: StartWorker
    workers: int
    devices: float = 1.0
    watch: Watcher = no_watcher


@dataclass(slots=True, eq=False)
class Job:
    """A unit on its way. `groups` are the requests of a suspect unit that are still to be tried, the next one last."""

    unit: UnitRef
    known_length: int
    unit_target: UnitTarget
    failures: int = 0
    groups: list[Sequence[str]] = field(default_factory=list)
    written_off: set[str] = field(default_factory=set)

    def task(self, learned: LearnedState | None = None) -> UnitTask:
        """The whole unit, for a worker who may begin with what others have learnt."""
        return UnitTask(unit=self.unit, known_length=self.known_length, unit_target=self.unit_target, learned=learned)

    def probe(self, learned: LearnedState | None = None) -> UnitTask:
        """The next group of a suspect unit."""
        probe = Probe(only=frozenset(self.groups[-1]), failed=frozenset(self.written_off))
        return replace(self.task(learned), probe=probe)

    def survived(self) -> None:
        """The engine has answered the next group."""
        self.groups.pop()

    def failed(self) -> None:
        """The engine has died of the next group: its halves are tried, and a single request is written off."""
        if not self.groups:
            return
        group = self.groups.pop()
        if len(group) > 1:
            middle = len(group) // 2
            self.groups += [group[middle:], group[:middle]]
        elif group:
            self.written_off.add(group[0])
            self.groups.append([])


@dataclass(slots=True, eq=False)
class WorkerSlot:
    """A worker's place: who has it, what it works on, and when it last made progress.

    `starting` until the worker, who came at `hired_at`, has started; `asking` while it is asked whether it has room for another
    unit; `ending` when it is given up. It was given `begun` units so far.
    """

    handle: WorkerHandle
    hired_at: float
    moved_at: float
    attempt: int = 1
    starting: "asyncio.Task[Any] | None" = None
    asking: "asyncio.Task[Any] | None" = None
    ending: "asyncio.Task[Any] | None" = None
    jobs: "dict[asyncio.Task[Any], Job]" = field(default_factory=dict)
    begun: int = 0
    exclusive: bool = False
    snapshot: Snapshot = field(default_factory=Snapshot)

    @property
    def under_way(self) -> "list[asyncio.Task[Any]]":
        return [task for task in (self.starting, self.asking, *self.jobs) if task is not None]


async def end_worker(place: WorkerSlot) -> None:
    """Have a worker commit what it has, free its device, and end it, whatever state it is in."""
    with suppress(StepvalueError, TimeoutError):
        if place.starting is None:
            await asyncio.wait_for(place.handle.drain(), DRAIN_SECONDS)
            await asyncio.wait_for(place.handle.stop(), STOP_SECONDS)
    place.handle.kill()
    under_way = place.under_way
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
