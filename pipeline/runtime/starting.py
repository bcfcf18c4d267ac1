"""The starts of workers: their phases, the limit of each phase, and what follows when a start fails.

A start waits for resources, downloads the model, waits for its turn if it shares a GPU, and loads the policy. Where the model
or a setting is to blame (PolicyError), no worker can start and the run ends. Any other failure costs one worker:

- Before any worker has started, a place that failed (PlaceError) waits for the others. If one of them starts, the place is the
  cause and another one is tried. If all fail, another free device is tried, `run.attempts` times in all. Without one, the
  cause is common to them and the first error is raised.
- A failed place stays reserved for a while, so that the next worker gets another one. If no other is free, it is tried again.
- A worker that died or was late is started again. After `run.attempts` failures in a row the run goes on without it.
- A worker that gets a place which `places` gives up keeps it idle until the place is taken back or the run ends, and another
  worker takes its slot.

This module decides and keeps the warnings. `scheduler` carries it out.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from enum import Enum
from itertools import chain

from pipeline.config.label import RunConfig
from pipeline.core.errors import ClusterError, EngineDied, PlaceError, StepvalueError
from pipeline.core.formatting import format_count
from pipeline.core.progress import failed_start
from pipeline.runtime.places import RESERVED_SECONDS, WorkerPlaces
from pipeline.runtime.worker_handle import StartPhase, WorkerHandle, WorkerLocation, WorkerPool, WorkerSlot

WARNINGS = 20
"""The last ones that are kept. The terminal has shown all of them."""


class NextStart(Enum):
    """What follows a failed start."""

    NOW = "it is started again"
    LATER = "it is started again as soon as another worker has started"
    NEVER = "it is not started again"


def next_start(error: StepvalueError, *, failed: int, attempts: int, any_started: bool) -> NextStart:
    """`failed`: the number of failed starts of this worker in a row. `any_started`: whether any of the run has started."""
    if isinstance(error, PlaceError) and not any_started:
        return NextStart.LATER
    return NextStart.NOW if failed < attempts else NextStart.NEVER


class WorkerStarts:
    """The starts of a run's workers, see the module. `places`: those of the workers that have started.

    `warnings`: what users should know, the oldest first.
    """

    def __init__(self, config: RunConfig, pool: WorkerPool) -> None:
        self._config = config
        self._pool = pool
        self._turns: dict[WorkerLocation, asyncio.Lock] = {}
        self._failed: list[WorkerSlot] = []
        self._errors: list[StepvalueError] = []
        self._reserved: list[WorkerHandle] = []
        self._idle: dict[WorkerLocation, list[WorkerHandle]] = {}
        self._waiting_shown = 0
        self.places = WorkerPlaces(config.attempts)
        self.any_started = False
        self.warnings: tuple[str, ...] = ()

    async def start(self, slot: WorkerSlot) -> None:
        """Start a worker through all phases. Raises PolicyError and EngineDied."""
        place = await slot.handle.location()
        while warning := self.places.give_up(place, self._pool.has_free_device):
            self._idle.setdefault(place, []).append(slot.handle)
            if warning not in self.warnings:
                self.warn(warning)
            self._use_again(self._idle.keys() - self.places.given_up)
            slot.handle = self._pool.hire(slot.attempt)
            slot.moved_at = _now()
            place = await slot.handle.location()
        slot.location = place
        slot.placed_at = _now()
        self._reserve(slot)
        _enter(slot, StartPhase.DOWNLOAD)
        await slot.handle.fetch()
        _enter(slot, StartPhase.TURN)
        async with self._turn(slot.location):
            _enter(slot, StartPhase.LOAD)
            await slot.handle.start()

    def succeeded(self, slot: WorkerSlot) -> list[WorkerSlot]:
        """Note that a worker has started. Returns the failed ones that can be started again now."""
        slot.phase = None
        slot.failed_starts = 0
        self.places.started(slot.place)
        self.any_started = True
        again, self._failed = self._failed, []
        return again

    def failed(self, slot: WorkerSlot, error: StepvalueError, *, workers: int) -> NextStart:
        """Decide what follows the failed start of a worker, while the run has `workers` others."""
        slot.failed_starts += 1
        self._errors.append(error)
        follows = next_start(
            error, failed=slot.failed_starts, attempts=self._config.attempts, any_started=self.any_started
        )
        if follows is NextStart.LATER:
            self._failed.append(slot)
        elif follows is NextStart.NEVER:
            self._reserve(slot, own=True)
            self.places.lost(slot.location)
        rest = f"; the run goes on with {workers} of {format_count(self._pool.workers, 'worker')}"
        where = f" on {slot.location}" if slot.location else ""
        self.warn(failed_start(where, str(error), follows.value + (rest if follows is NextStart.NEVER else "")))
        return follows

    def tries_elsewhere(self, slot: WorkerSlot, follows: NextStart) -> bool:
        """Whether the only worker, which failed because of its place, is started again because another place is free."""
        if (
            follows is not NextStart.LATER
            or slot.failed_starts >= self._config.attempts
            or not self._pool.has_free_device()
        ):
            return False
        self._failed.remove(slot)
        return True

    def error(self) -> StepvalueError | None:
        """The error of a run whose workers all failed because of their places before any started. None if it was otherwise."""
        if self.any_started or not self._errors or not all(isinstance(error, PlaceError) for error in self._errors):
            return None
        first, more = self._errors[0], len(self._errors) - 1
        if not more:
            return first
        return PlaceError(f"{first} (and {format_count(more, 'other worker')} could not start either)")

    def late(self, slots: Iterable[WorkerSlot]) -> Iterator[tuple[WorkerSlot, EngineDied]]:
        """The workers that have exceeded the limit of their phase, but for the wait for resources, each with what to report."""
        config = self._config
        limits = {
            StartPhase.DOWNLOAD: (
                "download the model",
                "run.download_timeout_seconds",
                config.download_timeout_seconds,
            ),
            StartPhase.LOAD: ("load the model", "run.start_timeout_seconds", config.start_timeout_seconds),
        }
        for slot in slots:
            if slot.phase in limits and slot.starting is not None and slot.ending is None:
                what, setting, limit = limits[slot.phase]
                if _now() - slot.moved_at > limit:
                    yield slot, EngineDied(f"it did not {what} within {setting}={limit:g}")

    def check_resources(self, slots: Collection[WorkerSlot]) -> None:
        """Let workers that find no other place have the failed one again. Warn about workers that wait too long for resources.

        Raises ClusterError if these are all workers that there are, or what `error` returns.
        """
        waiting = [slot for slot in slots if slot.phase is StartPhase.RESOURCES and slot.ending is None]
        for slot in waiting:
            if slot.reserved and _now() - slot.moved_at > RESERVED_SECONDS * 2 ** max(0, slot.failed_starts - 1):
                for handle in slot.reserved:
                    handle.kill()
                slot.reserved = ()
        limit = self._pool.wait_seconds
        late = [slot for slot in waiting if _now() - slot.moved_at > limit]
        if late and len(late) == len(slots):
            raise self.error() or ClusterError(
                f"no worker got its resources within cluster.wait_seconds={limit:g}: {self._pool.resources()}; free them, add "
                "nodes, or lower cluster.workers, cluster.gpus_per_worker or cluster.cpus_per_worker"
            )
        if len(late) > self._waiting_shown:
            self.warn(
                f"{format_count(len(late), 'worker')} of {self._pool.workers} still got no resources within "
                f"cluster.wait_seconds={limit:g} ({self._pool.resources()}): the run goes on with the others, and these join "
                "when resources are free"
            )
        self._waiting_shown = max(self._waiting_shown, len(late))

    def stage(self, slots: Iterable[WorkerSlot]) -> str:
        """What the run waits for before its first worker has started: the last phase that any worker has reached."""
        reached = {slot.phase for slot in slots if slot.ending is None}
        phases = [phase for phase in StartPhase if phase in reached and phase is not StartPhase.TURN]
        return str((phases[-1] if phases else StartPhase.LOAD).value)

    def warn(self, warning: str) -> None:
        """Keep a warning for the next status."""
        self.warnings = (*self.warnings, warning)[-WARNINGS:]

    def release(self, slots: Iterable[WorkerSlot]) -> None:
        """Free the reserved places and those of the ended workers of `slots`, at the end of the run."""
        for slot in (*slots, *self._failed):
            self._reserve(slot, own=True)
        for handle in (*self._reserved, *chain.from_iterable(self._idle.values())):
            handle.kill()
        self._reserved.clear()
        self._idle.clear()

    def _turn(self, location: WorkerLocation) -> "AbstractAsyncContextManager[None]":
        """vLLM refuses to start while another engine takes or frees memory of its GPU."""
        return self._turns.setdefault(location, asyncio.Lock()) if location.shared else nullcontext()

    def _use_again(self, places: Iterable[WorkerLocation]) -> None:
        """Free places that are kept idle."""
        for place in places:
            self.warn(f"the run uses {place} again")
            for handle in self._idle.pop(place):
                handle.kill()

    def _reserve(self, slot: WorkerSlot, *, own: bool = False) -> None:
        """Reserve, until the run ends, the failed places of a slot's earlier workers, and that of its `own`."""
        self._reserved += [*slot.reserved, *([slot.handle] if own else [])]
        slot.reserved = ()


def _enter(slot: WorkerSlot, phase: StartPhase) -> None:
    slot.phase, slot.moved_at = phase, _now()


def _now() -> float:
    return asyncio.get_running_loop().time()
