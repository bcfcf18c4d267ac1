"""The driver's view of its workers: a worker's handle and where it is, the worker slot that successive workers take, and the
job of a unit.

A unit that fails repeatedly is split until the request that kills the engine is found.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

from pipeline.core.errors import StepvalueError
from pipeline.core.progress import Status
from pipeline.runtime.worker import LearnedState, Probe, Receipt, Snapshot, UnitTask

DRAIN_SECONDS = 20.0
"""How long a worker may take to commit its finished rollouts before it is killed."""
STOP_SECONDS = 20.0
"""How long a worker may take to free its device before it is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLocation:
    """Where a worker is. `machine`: its name or address. `node_id`: Ray's id of the node; several may be on one machine.

    `gpus`: ids of the worker's GPUs on the node. `shared`: whether other workers may have the same GPU.
    """

    machine: str = "this machine"
    node_id: str = ""
    gpus: tuple[str, ...] = ()
    shared: bool = False

    def __str__(self) -> str:
        return ", ".join([self.machine, *(f"GPU {gpu}" for gpu in self.gpus)])


class StartPhase(Enum):
    """The phases of a worker's start, in their order."""

    RESOURCES = "waiting for resources"
    DOWNLOAD = "downloading the model"
    TURN = "waiting for another engine to start on the same GPU"
    LOAD = "loading the model"


class WorkerHandle(Protocol):
    """A worker as the driver sees it. Calls raise EngineDied if the worker is dead, and WorkerLost if its machine is gone."""

    async def location(self) -> WorkerLocation:
        """Where the worker is, as soon as the cluster has given it its resources."""
        ...

    async def fetch(self) -> None:
        """Download to the worker's machine what its engine loads. Raises PolicyError."""
        ...

    async def start(self) -> str:
        """Load the policy and return its identity. Raises PolicyError, and PlaceError where only this place is to blame."""
        ...

    async def wait_for_capacity(self, begun: int) -> None: ...

    async def finish_unit(self, task: UnitTask) -> Receipt: ...

    async def missing_requests(self, task: UnitTask) -> list[str]: ...

    async def snapshot(self) -> Snapshot: ...

    async def drain(self) -> None: ...

    async def stop(self) -> None: ...

    def kill(self) -> None:
        """Kill the worker at once. Pending calls raise EngineDied or never return."""
        ...


Watcher = Callable[[Status], None]
"""A function that receives each status of a run. The event loop calls it, so it must return at once."""


def no_watcher(_status: Status) -> None:
    """A watcher that ignores every status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPool:
    """Creates workers. `hire`: creates one; its argument counts the workers of the slot, from 1. `workers`: the most at a time.
    `devices`: devices of each worker, see `config.label.PlanConfig`.

    `watch`: a further watcher that receives each status, such as the metrics of the cluster. `wait_seconds`: how long workers
    may wait for resources; `resources` says in a clause what a worker needs and what is there. `has_free_device`: whether
    another device is free for a worker now; asked when no worker is left, or before a place is given up.
    """

    hire: Callable[[int], WorkerHandle]
    workers: int
    devices: float = 1.0
    watch: Watcher = no_watcher
    wait_seconds: float = math.inf
    resources: Callable[[], str] = str
    has_free_device: Callable[[], bool] = bool


@dataclass(slots=True, eq=False)
class Job:
    """A unit that needs work: the task `asked` of it.

    `died_at`: where its last worker died. `groups`: for a suspect unit, the groups of request ids that are still to be tried;
    the next group is the last one. `alone_at`: where an engine died from the next group, if that is a single request.
    """

    asked: UnitTask
    failures: int = 0
    died_at: WorkerLocation | None = None
    groups: list[Sequence[str]] = field(default_factory=list)
    alone_at: WorkerLocation | None = None
    written_off: set[str] = field(default_factory=set)

    def task(self, learned: LearnedState | None = None) -> UnitTask:
        """The task of the whole unit. `learned`: the state that its estimator may begin with."""
        return replace(self.asked, learned=learned)

    def probe(self, learned: LearnedState | None = None) -> UnitTask:
        """The task of a suspect unit's next group."""
        probe = Probe(only=frozenset(self.groups[-1]), failed=frozenset(self.written_off))
        return replace(self.task(learned), probe=probe)

    def pass_group(self) -> None:
        """Note that the engine has answered the next group."""
        self.groups.pop()
        self.alone_at = None

    def fail_group(self, place: WorkerLocation, *, has_others: bool) -> None:
        """Note that an engine has died from the next group. The group is split in half; a single request is written off.

        `has_others`: whether there are other places. A single request is then tried at a second one first.
        """
        if not self.groups:
            return
        group = self.groups.pop()
        if len(group) > 1:
            middle = len(group) // 2
            self.groups += [group[middle:], group[:middle]]
        elif group and has_others and self.alone_at in (None, place):
            self.alone_at = place
            self.groups.append(group)
        elif group:
            self.alone_at = None
            self.written_off.add(group[0])
            self.groups.append([])


@dataclass(slots=True, eq=False)
class WorkerSlot:
    """A worker slot: its current worker, the jobs of that worker, and when the worker last made progress.

    `starting`: set until the worker has started; `phase` says how far it is. `failed_starts`: of this slot, in a row.
    `reserved`: earlier workers of the slot that keep failed places. The worker has its `location` since `placed_at` and is
    ready since `ready_at`. `asking`: set while the driver waits for the worker to have capacity for another unit. `ending`: set
    once the worker is given up. `begun`: number of units given to it so far.
    """

    handle: WorkerHandle
    moved_at: float
    attempt: int = 1
    phase: StartPhase | None = StartPhase.RESOURCES
    failed_starts: int = 0
    reserved: tuple[WorkerHandle, ...] = ()
    location: WorkerLocation | None = None
    placed_at: float | None = None
    ready_at: float | None = None
    starting: "asyncio.Task[Any] | None" = None
    asking: "asyncio.Task[Any] | None" = None
    ending: "asyncio.Task[Any] | None" = None
    jobs: "dict[asyncio.Task[Any], Job]" = field(default_factory=dict)
    begun: int = 0
    exclusive: bool = False
    snapshot: Snapshot = field(default_factory=Snapshot)

    @property
    def place(self) -> WorkerLocation:
        """The location of a worker that has started."""
        assert self.location is not None
        return self.location

    @property
    def under_way(self) -> "list[asyncio.Task[Any]]":
        return [task for task in (self.starting, self.asking, *self.jobs) if task is not None]


async def free_device(slot: WorkerSlot) -> None:
    """End the engine of a worker that could not start. The worker itself goes on, so that no other gets its place."""
    try:
        await asyncio.wait_for(slot.handle.stop(), STOP_SECONDS)
    except (StepvalueError, TimeoutError):
        slot.handle.kill()


async def end_worker(slot: WorkerSlot) -> None:
    """Let a worker commit its finished rollouts and free its device, then kill it. It works in every state of the worker."""
    with suppress(StepvalueError, TimeoutError):
        if slot.starting is None:
            await asyncio.wait_for(slot.handle.drain(), DRAIN_SECONDS)
            await asyncio.wait_for(slot.handle.stop(), STOP_SECONDS)
    slot.handle.kill()
    under_way = slot.under_way
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
