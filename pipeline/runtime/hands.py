"""A worker as its driver sees it, and the place that one worker after the other takes."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline.core.errors import StepvalueError
from pipeline.core.progress import Status
from pipeline.runtime.jobs import Job
from pipeline.runtime.worker import Receipt, Snapshot, Task

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
