"""The workers of one start, and the loop that keeps them busy. It knows units and receipts, never rows, and nothing of Ray.

A worker that dies, hangs or answers wrongly is replaced. Its units go back to the queue; one that has failed `run.attempts`
times is a suspect: it gets a worker to itself and is taken apart (`jobs`). A worker that was taken away with its machine costs
its units nothing. The clock is the event loop's.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pipeline.config import RunConfig
from pipeline.errors import ClusterError, EngineDied, StepvalueError, WorkerLost
from pipeline.failpoints import failpoint
from pipeline.records import Load, Status
from pipeline.run.jobs import Job
from pipeline.run.worker import Learnt, Receipt, Snapshot, Task

LOOK_SECONDS = 0.5
"""How often the driver looks up while nothing comes in."""
DRAIN_SECONDS = 20.0
"""How long a worker may take to commit what it has, before it is ended."""
STOP_SECONDS = 20.0
LOST_IN_A_ROW = 100
"""Workers that may be taken away before one finishes anything: a place where none can live is no bad luck."""

Watcher = Callable[[Status], None]


class Hand(Protocol):
    """A worker as its driver sees it. Calls raise EngineDied when it is dead, WorkerLost when its machine is gone."""

    async def start(self) -> str: ...

    async def label_unit(self, task: Task) -> Receipt: ...

    async def owed(self, task: Task) -> list[str]: ...

    async def snapshot(self) -> Snapshot: ...

    async def drain(self) -> None: ...

    async def stop(self) -> None: ...

    def kill(self) -> None:
        """End it at once; calls under way raise EngineDied or never return."""
        ...


Hire = Callable[[int], Hand]
"""A new worker; the argument counts the workers in its place, from 1."""


@dataclass(slots=True, eq=False)
class _Place:
    """A worker's place: who has it, what it works on, and when it last made progress."""

    hand: Hand
    starting: "asyncio.Task[str] | None"
    moved_at: float
    attempt: int = 1
    jobs: "dict[asyncio.Task[Receipt], Job]" = field(default_factory=dict)
    exclusive: bool = False
    snapshot: Snapshot = field(default_factory=Snapshot)


class Crew:
    """See the module. `check` is called whenever the driver looks up, and may raise. `learnt`: what units may begin with."""

    def __init__(
        self,
        config: RunConfig,
        hire: Hire,
        *,
        jobs: Iterable[Job],
        learnt: Learnt | None = None,
        units: int,
        watch: Watcher,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._hire = hire
        self._waiting = deque(jobs)
        self._learnt = learnt
        self._suspects: deque[Job] = deque()
        self._owed = len(self._waiting)
        self._units = units
        self._units_done = units - self._owed
        self._watch = watch
        self._check = check
        self._places: list[_Place] = []
        self._failures = 0
        self._written_off = 0
        self._failed_starts = 0
        self._lost_in_a_row = 0
        self._past: list[Snapshot] = []
        self._began = 0.0
        self.seconds_starting = 0.0
        self.seconds_labelling = 0.0

    async def work_off(self, workers: int) -> None:
        """Have all jobs done by so many workers. Raises EngineDied where too much fails, ClusterError, StoreError, PolicyError,
        and what `check` raises; what has come in is committed before."""
        self._began = self._now()
        try:
            self._show("loading the policy")
            for _ in range(min(workers, len(self._waiting))):
                self._places.append(self._new_place())
            await self._loop()
            self.seconds_labelling = self._now() - self._began - self.seconds_starting
        finally:
            await self._dismiss()

    async def _loop(self) -> None:
        shown_at = self._now()
        while self._waiting or self._suspects or any(place.jobs for place in self._places):
            self._check()
            for place in self._places:
                self._fill(place)
            under_way = [task for place in self._places for task in (*place.jobs, place.starting) if task is not None]
            await asyncio.wait(under_way, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for place in list(self._places):
                await self._take(place)
            if self._now() - shown_at >= self._config.progress_seconds:
                shown_at = self._now()
                await self._look_around()
        await self._look_around()

    def _fill(self, place: _Place) -> None:
        if place.starting is not None or place.exclusive:
            return
        if not place.jobs and self._suspects:
            job = self._suspects.popleft()
            place.exclusive = True
            self._begin(place, job, self._take_apart(place.hand, job))
        while not place.exclusive and self._waiting and len(place.jobs) < self._config.units_in_flight:
            job = self._waiting.popleft()
            self._begin(place, job, place.hand.label_unit(job.task(self._learnt)))

    def _begin(self, place: _Place, job: Job, work: Coroutine[Any, Any, Receipt]) -> None:
        if not place.jobs:
            place.moved_at = self._now()
        place.jobs[asyncio.create_task(work)] = job
        failpoint("driver.submitted")

    async def _take_apart(self, hand: Hand, job: Job) -> Receipt:
        """The next step with a suspect unit."""
        if not job.groups:
            owed = await hand.owed(job.task(self._learnt))
            if not owed:
                return await hand.label_unit(job.task(self._learnt))
            job.groups.append(owed)
        receipt = await hand.label_unit(job.probe(self._learnt))
        job.survived()
        return receipt

    async def _take(self, place: _Place) -> None:
        """Take what a worker has finished. The first failure ends the worker."""
        done = [task for task in (place.starting, *place.jobs) if task is not None and task.done()]
        for task in done:
            try:
                result = task.result()
            except EngineDied as error:
                await self._replace(place, error)
                return
            if isinstance(result, Receipt):
                self._finished(place, task, result)
            else:
                self._started(place)

    def _started(self, place: _Place) -> None:
        place.starting = None
        place.moved_at = self._now()
        self._failed_starts = 0
        self.seconds_starting = self.seconds_starting or self._now() - self._began
        self._show("labelling")

    def _finished(self, place: _Place, task: "asyncio.Task[Any]", receipt: Receipt) -> None:
        failpoint("driver.receipt")
        job = place.jobs.pop(task)
        place.moved_at = self._now()
        place.exclusive = False
        self._lost_in_a_row = 0
        if not receipt.whole:
            self._suspects.appendleft(job)
            return
        self._units_done += 1
        if receipt.learnt and receipt.learnt.chains > (self._learnt.chains if self._learnt else 0):
            self._learnt = receipt.learnt
        self._written_off += receipt.engine_failed
        if self._written_off > self._config.max_failures:
            self._give_up(f"{self._written_off} requests got no answer from any engine (run.max_failures)")

    async def _replace(self, place: _Place, error: EngineDied) -> None:
        """End a worker and start a new one in its place; its units go back to the head of the queue."""
        jobs, exclusive = list(place.jobs.values()), place.exclusive
        await _end(place)
        self._past.append(replace(place.snapshot, load=Load()))
        if isinstance(error, WorkerLost):
            self._lost_in_a_row += 1
        else:
            self._charge(jobs, error, exclusive=exclusive)
        if self._lost_in_a_row >= LOST_IN_A_ROW:
            self._give_up(f"{LOST_IN_A_ROW} workers were taken away and nothing was finished, the last time: {error}")
        for job in reversed(jobs):
            suspect = job.failures >= self._config.attempts
            (self._suspects if suspect else self._waiting).appendleft(job)
        self._show(f"replacing a worker ({error})")
        self._places[self._places.index(place)] = self._new_place(place.attempt + 1)

    def _charge(self, jobs: list[Job], error: EngineDied, *, exclusive: bool) -> None:
        self._failures += 1
        if not jobs:
            self._failed_starts += 1
        for job in jobs:
            job.failures += 1
            if exclusive:
                job.failed()
        if self._failed_starts >= self._config.attempts:
            self._give_up(f"{self._failed_starts} workers in a row failed before they had work, the last one: {error}")
        if self._failures >= self._config.max_failures:
            self._give_up(f"workers failed {self._failures} times (run.max_failures), the last time: {error}")

    def _give_up(self, reason: str) -> None:
        raise EngineDied(
            f"{reason}; {self._units_done} of {self._units} units are whole and what came of others is kept: mend the cause "
            "and start the same command again"
        )

    def _new_place(self, attempt: int = 1) -> _Place:
        hand = self._hire(attempt)
        return _Place(hand=hand, starting=asyncio.create_task(hand.start()), moved_at=self._now(), attempt=attempt)

    async def _look_around(self) -> None:
        """Fetch each worker's counters, and replace the ones that have stopped moving."""
        ready = [place for place in self._places if place.starting is None]
        for place, snapshot in zip(ready, await asyncio.gather(*map(self._snapshot, ready)), strict=True):
            if snapshot != place.snapshot:
                place.moved_at = self._now()
            place.snapshot = snapshot
            limit = self._config.stall_seconds
            if place.jobs and self._now() - place.moved_at > limit:
                await self._replace(place, EngineDied(f"no token came within run.stall_seconds={limit:g}"))
        await self._check_starts()
        self._show("labelling" if self.seconds_starting else "loading the policy")

    async def _snapshot(self, place: _Place) -> Snapshot:
        try:
            return await asyncio.wait_for(place.hand.snapshot(), self._config.progress_seconds)
        except (EngineDied, TimeoutError):
            return place.snapshot

    async def _check_starts(self) -> None:
        """Give up waiting for workers that do not start; without any other, that ends the run."""
        limit = self._config.start_timeout_seconds
        late = [place for place in self._places if place.starting and self._now() - place.moved_at > limit]
        for place in late:
            place.hand.kill()
            self._places.remove(place)
        if late and not self._places:
            raise ClusterError(
                f"no worker started within run.start_timeout_seconds={limit:g}: free the cluster's resources or lower "
                "cluster.workers"
            )

    def _show(self, stage: str) -> None:
        snapshots = [*self._past, *(place.snapshot for place in self._places)]
        begun = sum(snapshot.begun for snapshot in snapshots)
        planned = sum(snapshot.planned for snapshot in snapshots)
        self._watch(
            Status(
                stage=stage,
                units=self._units,
                units_done=self._units_done,
                rollouts=sum(snapshot.rollouts for snapshot in snapshots),
                rollouts_expected=planned * self._owed // begun if begun else 0,
                tokens=sum(snapshot.tokens for snapshot in snapshots),
                load=Load(
                    running=sum(snapshot.load.running for snapshot in snapshots),
                    waiting=sum(snapshot.load.waiting for snapshot in snapshots),
                ),
            )
        )

    async def _dismiss(self) -> None:
        await asyncio.gather(*map(_end, self._places))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


async def _end(place: _Place) -> None:
    """Have a worker commit what it has, free its device, and end it, whatever state it is in."""
    with suppress(StepvalueError, TimeoutError):
        if place.starting is None:
            await asyncio.wait_for(place.hand.drain(), DRAIN_SECONDS)
            await asyncio.wait_for(place.hand.stop(), STOP_SECONDS)
    place.hand.kill()
    under_way = [task for task in (*place.jobs, place.starting) if task is not None]
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
    place.jobs = {}
