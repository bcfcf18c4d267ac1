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
from pipeline.core.records import Goal
from pipeline.runtime.unit import Probe
from pipeline.runtime.worker import Learnt, Receipt, Snapshot, Task
from pipeline.storage.units import UnitRef

DRAIN_SECONDS = 20.0
"""How long a worker may take to commit what it has, before it is ended."""
STOP_SECONDS = 20.0


class Hand(Protocol):
    """A worker as its driver sees it. Calls raise EngineDied when it is dead, WorkerLost when its machine is gone."""

    async def start(self) -> str: ...

    async def room(self, begun: int) -> None: ...

    async def label_unit(self, task: Task) -> Receipt: ...

    async def owed(self, task: Task) -> list[str]: ...

    async def snapshot(self) -> Snapshot: ...

    async def drain(self) -> None: ...

    async def stop(self) -> None: ...

    def kill(self) -> None:
        """End it at once; calls under way raise EngineDied or never return."""
        ...


Watcher = Callable[[Status], None]
"""Who is told how a run goes, from the event loop: it returns at once."""
Hire = Callable[[int], Hand]
"""A new worker; the argument counts the workers in its place, from 1."""


def nobody(_status: Status) -> None:
    """A watcher that does not look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """How to hire workers, how many there may be at once, and how many devices each takes; see `run_settings.PlanConfig`.

    `watch`: who else is told each status, where the workers come from.
    """

    hire: Hire
    workers: int
    devices: float = 1.0
    watch: Watcher = nobody


@dataclass(slots=True, eq=False)
class Job:
    """A unit on its way. `groups` are the requests of a suspect unit that are still to be tried, the next one last."""

    unit: UnitRef
    known_length: int
    goal: Goal
    failures: int = 0
    groups: list[Sequence[str]] = field(default_factory=list)
    written_off: set[str] = field(default_factory=set)

    def task(self, learnt: Learnt | None = None) -> Task:
        """The whole unit, for a worker who may begin with what others have learnt."""
        return Task(unit=self.unit, known_length=self.known_length, goal=self.goal, learnt=learnt)

    def probe(self, learnt: Learnt | None = None) -> Task:
        """The next group of a suspect unit."""
        probe = Probe(only=frozenset(self.groups[-1]), failed=frozenset(self.written_off))
        return replace(self.task(learnt), probe=probe)

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
class Place:
    """A worker's place: who has it, what it works on, and when it last made progress.

    `starting` until the worker, who came at `hired_at`, has started; `asking` while it is asked whether it has room for another
    unit; `ending` when it is given up. It was given `begun` units so far.
    """

    hand: Hand
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


async def ended(place: Place) -> None:
    """Have a worker commit what it has, free its device, and end it, whatever state it is in."""
    with suppress(StepvalueError, TimeoutError):
        if place.starting is None:
            await asyncio.wait_for(place.hand.drain(), DRAIN_SECONDS)
            await asyncio.wait_for(place.hand.stop(), STOP_SECONDS)
    place.hand.kill()
    under_way = place.under_way
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
