"""The scheduler of one start: keeps the workers busy with units. It handles units and receipts, not rows.

A worker signals when it has capacity for another unit, so that its engine always has enough requests. The last units of the
input are given out longest first. A worker that dies, hangs or gives wrong answers is replaced, and its units go back to the
queue. `starting` decides whether a worker that cannot start is replaced, `places` where the units go next. A unit that has
failed `run.attempts` times is a suspect: it gets a worker of its own and is split (`worker_handle`). The loss of a worker with
its machine does not count as a failure of its units.

The work for each receipt does not depend on the number of workers and units. The clock is that of the event loop. This module
does not depend on Ray.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from pipeline.config.label import RunConfig
from pipeline.core.errors import EngineDied, PlaceError, StepvalueError, WorkerLost
from pipeline.core.failpoints import failpoint
from pipeline.core.formatting import format_count, format_unfinished
from pipeline.core.hardware import Throughput
from pipeline.core.progress import Status, replaced_worker
from pipeline.engines.roofline import Effort, throughput
from pipeline.estimators.base import MANY
from pipeline.runtime.starting import NextStart, WorkerStarts
from pipeline.runtime.worker import LearnedState, Receipt, Snapshot
from pipeline.runtime.worker_handle import (
    Job,
    StartPhase,
    Watcher,
    WorkerHandle,
    WorkerPool,
    WorkerSlot,
    end_worker,
    free_device,
)

LOOK_SECONDS = 0.5
"""How often the driver calls `check` while nothing happens."""
TAIL_UNITS = 8
"""Number of units per worker, at the end of the input, that are given out longest first."""
LOST_IN_A_ROW = 100
"""Number of workers lost in a row, without a finished unit, after which the run stops: more than that is not bad luck."""


class Scheduler:
    """Schedules units, see the module. `check` is called regularly and may raise. `learned`: the state that units begin with.
    `doing`: what the workers do, as the stage of a status.

    `snapshot`: the sum of the last snapshots of all workers. `at_end_of_input`: the `snapshot` after the last unit was given
    out. `throughput`: the speed of the engines at the last snapshot.
    """

    def __init__(
        self,
        config: RunConfig,
        offer: WorkerPool,
        *,
        jobs: Iterable[Job],
        learned: LearnedState | None = None,
        units: int,
        watch: Watcher,
        check: Callable[[], None] = lambda: None,
        doing: str = "labelling",
    ) -> None:
        self._config = config
        self._doing = doing
        self._pool = offer
        self._waiting = deque(jobs)
        self._learned = learned
        self._suspects: deque[Job] = deque()
        self._owed = len(self._waiting)
        self._units = units
        self._units_done = units - self._owed
        self._watch = watch
        self._check = check
        self._slots: dict[WorkerSlot, None] = {}
        self._handlers: dict[asyncio.Task[Any], Callable[[asyncio.Task[Any]], None]] = {}
        self._ended: deque[asyncio.Task[Any]] = deque()
        self._wake = asyncio.Event()
        self._looking: asyncio.Task[Any] | None = None
        self._failures = 0
        self._written_off = 0
        self._starts = WorkerStarts(config, offer)
        self._lost_in_a_row = 0
        self._past = Snapshot()
        self._past_seconds = self._past_starting = 0.0
        self._began = 0.0
        self.seconds_starting = 0.0
        self.seconds_labelling = 0.0
        self.at_end_of_input: Snapshot | None = None
        self.throughput: Throughput | None = None

    async def work_off(self) -> None:
        """Have the workers of the pool do all jobs.

        Raises EngineDied if too much fails, ClusterError, StoreError, PolicyError, and what `check` raises. Finished rollouts
        are committed before.
        """
        self._began = self._now()
        self._waiting = _longest_last_units_first(self._waiting, self._pool.workers * TAIL_UNITS)
        try:
            self._show(StartPhase.LOAD.value)
            for _ in range(min(self._pool.workers, len(self._waiting))):
                self._add_worker()
            await self._loop()
            self.seconds_labelling = self._now() - self._began - self.seconds_starting
        finally:
            await self._dismiss()

    async def _loop(self) -> None:
        looked_at = self._now()
        pause = min(LOOK_SECONDS, self._config.progress_seconds)
        while self._units_done < self._units:
            self._check()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)
            self._wake.clear()
            while self._ended:
                task = self._ended.popleft()
                self._handlers.pop(task)(task)
            if self._looking is None and self._now() - looked_at >= self._config.progress_seconds:
                looked_at = self._now()
                self._look_around()
        self.at_end_of_input = self.at_end_of_input or self.snapshot
        await self._take_stock()
        self._show(self._doing)

    def _spawn(
        self, work: Coroutine[Any, Any, Any], handler: Callable[["asyncio.Task[Any]"], None]
    ) -> "asyncio.Task[Any]":
        """Run `work`; the loop calls `handler` when it has ended."""
        task = asyncio.create_task(work)
        self._handlers[task] = handler
        task.add_done_callback(self._note)
        return task

    def _note(self, task: "asyncio.Task[Any]") -> None:
        self._ended.append(task)
        self._wake.set()

    def _add_worker(self, after: WorkerSlot | None = None, *, reserve: bool = False) -> None:
        """Start a worker, as the successor of the worker `after`. `reserve`: in another place than that one, if any is free."""
        attempt = after.attempt + 1 if after else 1
        slot = WorkerSlot(handle=self._pool.hire(attempt), moved_at=self._now(), attempt=attempt)
        if after is not None:
            slot.failed_starts = after.failed_starts
            slot.reserved = (*after.reserved, *([after.handle] if reserve else []))
        self._slots[slot] = None
        slot.starting = self._spawn(self._starts.start(slot), partial(self._started, slot))

    def _started(self, slot: WorkerSlot, task: "asyncio.Task[Any]") -> None:
        if not self._is_well(slot, task):
            return
        slot.starting = None
        slot.moved_at = slot.ready_at = self._now()
        for failed in self._starts.succeeded(slot):
            self._add_worker(failed, reserve=True)
        if not self.seconds_starting:
            self.seconds_starting = self._now() - self._began
            self._show(self._doing)
        self._fill(slot)

    def _fill(self, slot: WorkerSlot) -> None:
        """Give a worker without work a suspect unit, or wait until a worker has capacity for another unit."""
        if slot.ending is not None or slot.starting is not None or slot.exclusive:
            return
        if not slot.jobs and (job := self._next(self._suspects, slot)):
            self._suspects.remove(job)
            slot.exclusive = True
            self._begin(slot, job, self._take_apart(slot.handle, job))
        elif slot.asking is None and len(slot.jobs) < self._config.units_in_flight and self._next(self._waiting, slot):
            slot.asking = self._spawn(slot.handle.wait_for_capacity(slot.begun), partial(self._take_more, slot))

    def _take_more(self, slot: WorkerSlot, task: "asyncio.Task[Any]") -> None:
        if not self._is_well(slot, task):
            return
        slot.asking = None
        if not slot.exclusive and (job := self._next(self._waiting, slot)):
            self._waiting.remove(job)
            slot.begun += 1
            self._begin(slot, job, slot.handle.finish_unit(job.task(self._learned)))
            if not self._waiting and self.at_end_of_input is None:
                self._look_around()
        self._fill(slot)

    def _next(self, jobs: "deque[Job]", slot: WorkerSlot) -> Job | None:
        """The first of the jobs that the worker may have, those without a death first."""
        places, now = self._starts.places, self._now()
        fresh = next((job for job in jobs if job.died_at is None), None)
        return fresh or next((job for job in jobs if places.may_take(slot, job, self._slots, now)), None)

    def _begin(self, slot: WorkerSlot, job: Job, work: Coroutine[Any, Any, Receipt]) -> None:
        if not slot.jobs:
            slot.moved_at = self._now()
        slot.jobs[self._spawn(work, partial(self._finished, slot))] = job
        failpoint("driver.submitted")

    async def _take_apart(self, handle: WorkerHandle, job: Job) -> Receipt:
        """Do the next step with a suspect unit: sample one group of its requests, or label it if it needs no more."""
        if not job.groups:
            missing = await handle.missing_requests(job.task(self._learned))
            if not missing:
                return await handle.finish_unit(job.task(self._learned))
            job.groups.append(missing)
        receipt = await handle.finish_unit(job.probe(self._learned))
        job.pass_group()
        return receipt

    def _is_well(self, slot: WorkerSlot, task: "asyncio.Task[Any]") -> bool:
        """Whether a call of a worker succeeded. A worker is given up after its first EngineDied; other errors are raised,
        because another worker could not avoid them."""
        if task.cancelled():
            return False
        error = task.exception()
        if slot.ending is not None:
            return False
        if isinstance(error, EngineDied | PlaceError):
            self._give_up_on(slot, error)
        elif error is not None:
            raise error
        return error is None

    def _finished(self, slot: WorkerSlot, task: "asyncio.Task[Any]") -> None:
        if not self._is_well(slot, task):
            return
        failpoint("driver.receipt")
        receipt: Receipt = task.result()
        job = slot.jobs.pop(task)
        slot.moved_at = self._now()
        slot.exclusive = False
        self._lost_in_a_row = 0
        self._starts.places.finished(slot.place)
        if receipt.whole:
            self._take_receipt(receipt)
        else:
            self._suspects.appendleft(job)
        self._fill(slot)

    def _take_receipt(self, receipt: Receipt) -> None:
        self._units_done += 1
        if receipt.learned and receipt.learned.chains > (self._learned.chains if self._learned else 0):
            self._learned = receipt.learned
        self._written_off += receipt.engine_failed
        if self._written_off > self._config.max_failures:
            self._stop_trying(f"no engine could answer {self._written_off} requests (run.max_failures)")

    def _give_up_on(self, slot: WorkerSlot, error: EngineDied | PlaceError) -> None:
        """End a worker. After it has ended, its units go back to the queue and a new worker takes its slot."""
        ending = free_device(slot) if isinstance(error, PlaceError) else end_worker(slot)
        slot.ending = self._spawn(ending, partial(self._replace, slot, error))
        if slot.starting is None:
            self._starts.warn(replaced_worker(str(error)))
        self._show("replacing a worker")

    def _replace(self, slot: WorkerSlot, error: StepvalueError, _: "asyncio.Task[Any]") -> None:
        jobs = list(slot.jobs.values())
        if isinstance(error, WorkerLost):
            self._lost_in_a_row += 1
            self._starts.places.lost(slot.location)
        elif slot.starting is None:
            self._charge(slot, error)
        if self._lost_in_a_row >= LOST_IN_A_ROW:
            self._stop_trying(
                f"{LOST_IN_A_ROW} workers in a row were lost with their machines and no unit was finished; last error: {error}"
            )
        self._leave(slot)
        self._past += slot.snapshot.left_by(len(jobs))
        for job in reversed(jobs):
            suspect = job.failures >= self._config.attempts
            (self._suspects if suspect else self._waiting).appendleft(job)
        if jobs or isinstance(error, WorkerLost):
            self._add_worker(slot)
        else:
            self._start_again(slot, error)
        for other in self._slots:
            self._fill(other)

    def _start_again(self, slot: WorkerSlot, error: StepvalueError) -> None:
        """Start a worker again that failed before it had work, or go on without it. Raises an error if it was the last one."""
        follows = self._starts.failed(slot, error, workers=len(self._slots))
        if follows is NextStart.NOW:
            self._add_worker(slot, reserve=isinstance(error, PlaceError))
        elif not self._slots and self._starts.tries_elsewhere(slot, follows):
            self._add_worker(slot, reserve=True)
        elif not self._slots:
            if (common := self._starts.error()) is not None:
                raise common
            self._stop_trying(
                f"no worker is left: the last one failed {slot.failed_starts} times before it had work; last error: {error}"
            )

    def _leave(self, slot: WorkerSlot) -> None:
        del self._slots[slot]
        self._past_seconds += self._seconds_of(slot)
        self._past_starting += self._seconds_of(slot, slot.ready_at)

    def _seconds_of(self, slot: WorkerSlot, until: float | None = None) -> float:
        return 0.0 if slot.placed_at is None else (until or self._now()) - slot.placed_at

    def _charge(self, slot: WorkerSlot, error: StepvalueError) -> None:
        """Count the failure of a worker that had started, and of its jobs. Raises EngineDied after too many."""
        places = self._starts.places
        self._failures += places.died(slot.place, slot.jobs.values(), error)
        for job in slot.jobs.values():
            job.failures += 1
            if slot.exclusive:
                job.fail_group(slot.place, has_others=places.has_others(slot.place))
        if self._failures >= self._config.max_failures:
            self._stop_trying(
                f"workers failed {format_count(self._failures, 'time')} (run.max_failures); last error: {error}"
            )

    def _stop_trying(self, reason: str) -> None:
        raise EngineDied(
            f"{reason}. {format_unfinished(self._units - self._units_done, self._units)}, and their finished rollouts are "
            "kept: fix the cause and start the same command again"
        )

    def _look_around(self) -> None:
        """Fetch the counters of each worker, and give up workers that make no progress."""
        if self._looking is None:
            self._looking = self._spawn(self._take_stock(), self._looked_around)

    def _looked_around(self, task: "asyncio.Task[Any]") -> None:
        self._looking = None
        task.result()
        if not self._waiting and self.at_end_of_input is None:
            self.at_end_of_input = self.snapshot
        limit = self._config.stall_seconds
        for slot in list(self._slots):
            if slot.jobs and slot.ending is None and self._now() - slot.moved_at > limit:
                self._give_up_on(slot, EngineDied(f"no progress within run.stall_seconds={limit:g}"))
        for slot, error in list(self._starts.late(self._slots)):
            self._give_up_on(slot, error)
        self._starts.check_resources(self._slots)
        for slot in self._slots:
            self._fill(slot)
        self._show(self._doing if self.seconds_starting else self._starts.stage(self._slots))

    async def _take_stock(self) -> None:
        ready = [slot for slot in self._slots if slot.starting is None and slot.ending is None]
        for slot, snapshot in zip(ready, await asyncio.gather(*map(self._look_at, ready)), strict=True):
            if snapshot.progress != slot.snapshot.progress:
                slot.moved_at = self._now()
            slot.snapshot = snapshot

    async def _look_at(self, slot: WorkerSlot) -> Snapshot:
        try:
            return await asyncio.wait_for(slot.handle.snapshot(), self._config.progress_seconds)
        except (EngineDied, TimeoutError):
            return slot.snapshot

    @property
    def snapshot(self) -> Snapshot:
        return sum((slot.snapshot for slot in self._slots), self._past)

    def _speed(self) -> Throughput | None:
        """The speed of the engines since the first worker started; None if there is nothing to measure."""
        seen, before = self.snapshot, self.at_end_of_input
        if seen.hardware is None:
            return None
        unfilled = seen.work.unfilled_seconds
        return throughput(
            Effort(
                hardware=seen.hardware,
                work=seen.work,
                wall_seconds=self._now() - self._began - self.seconds_starting,
                engine_seconds=seen.seconds,
                tail_seconds=unfilled - before.work.unfilled_seconds if before else None,
                distinct_prompt=seen.distinct_prompt,
                grading_seconds=seen.grading_seconds,
            )
        )

    def _show(self, stage: str) -> None:
        seen = self.snapshot
        self.throughput = self._speed()
        self.status = Status(
            stage=stage,
            units=self._units,
            units_done=self._units_done,
            prefixes=seen.prefixes,
            prefixes_decided=seen.decided,
            rollouts=seen.rollouts,
            rollouts_expected=max(seen.rollouts, seen.planned * self._owed // seen.begun) if seen.begun else 0,
            rollouts_most=seen.most * self._owed // seen.begun if seen.begun and seen.most < MANY else 0,
            tokens=seen.tokens,
            generated=seen.work.generated,
            verdicts=seen.verdicts,
            load=seen.load,
            workers=sum(slot.starting is None and slot.ending is None for slot in self._slots),
            device_seconds=self._pool.devices * (self._past_seconds + sum(map(self._seconds_of, self._slots))),
            starting_seconds=self._pool.devices
            * (self._past_starting + sum(self._seconds_of(slot, slot.ready_at) for slot in self._slots)),
            share_of_bound=self.throughput.share if self.throughput else None,
            warnings=self._starts.warnings,
        )
        self._pool.watch(self.status)
        self._watch(self.status)

    async def _dismiss(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await asyncio.gather(*(slot.ending or end_worker(slot) for slot in self._slots))
        self._starts.release(self._slots)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _longest_last_units_first(jobs: "deque[Job]", tail: int) -> "deque[Job]":
    """The jobs in order, except that the last `tail` ones are sorted by size, largest first, so that the run ends with short
    units."""
    ordered = list(jobs)
    body, last = ordered[:-tail], ordered[-tail:]
    return deque([*body, *sorted(last, key=lambda job: -job.asked.unit.size)])
