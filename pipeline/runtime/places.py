"""The places of a run's workers: which of them let their workers die at work, and where a unit goes after such a death.

A broken device may load the model and then fail at every unit. Its place (a machine, or devices of one) is given up after
`run.attempts` deaths in a row, if another place is good or free. A suspect unit, or one that killed an engine elsewhere before,
explains a death, which then does not count against the place, if that has finished anything. A single request explains only
its first death there: where no worker of another place takes it, this one has to go.

Units that kill every engine may be all that is left at the end of a run, and then a good place is given up for them. Where the
next one is broken, it has finished nothing, so that their deaths count there too, and the places given up are taken back.

A unit whose worker died goes next to another place, one without deaths in a row, while there is one. So broken places cannot
make a unit fail again and again, and a unit that kills every engine makes no place look broken.

This module decides. `starting` keeps the places that are given up, `scheduler` gives out the units.
"""

from collections.abc import Callable, Collection, Iterable

from pipeline.core.errors import StepvalueError
from pipeline.core.progress import given_up_place
from pipeline.runtime.worker_handle import Job, WorkerLocation, WorkerSlot

RESERVED_SECONDS = 10.0
"""How long a worker waits for another place than a failed one before it may get that one again. Doubles with each failure."""


class WorkerPlaces:
    """The places where a worker of the run has started, each with its deaths in a row; see the module."""

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._deaths: dict[WorkerLocation, int] = {}
        self._errors: dict[WorkerLocation, StepvalueError] = {}
        self._finished: set[WorkerLocation] = set()
        self.given_up: set[WorkerLocation] = set()

    def started(self, place: WorkerLocation) -> None:
        """Note that a worker has loaded its model there."""
        self._deaths.setdefault(place, 0)

    def finished(self, place: WorkerLocation) -> None:
        """Note that a worker there has finished a unit, or a part of one."""
        self._deaths[place] = 0
        self._finished.add(place)
        self.given_up.discard(place)

    def died(self, place: WorkerLocation, jobs: Collection[Job], error: StepvalueError) -> bool:
        """Note that a worker died there with these jobs. Returns whether that is a failure of the run."""
        self._errors[place] = error
        explained = any(
            job.alone_at != place and (job.died_at not in (None, place) or job.failures >= self._attempts)
            for job in jobs
        )
        if not explained or place not in self._finished:
            self._deaths[place] = self._deaths.get(place, 0) + 1
        for job in jobs:
            job.died_at = place
        return place not in self.given_up

    def lost(self, place: WorkerLocation | None) -> None:
        """Note that no worker can be there any more."""
        if place is not None:
            self._deaths.pop(place, None)
            self.given_up.discard(place)

    def has_others(self, place: WorkerLocation) -> bool:
        """Whether a worker has started at another place that is not given up, or that may be taken back for this one."""
        others = self._deaths.keys() - {place}
        return bool(others - self.given_up if place in self._finished else others)

    def give_up(self, place: WorkerLocation, has_free_device: Callable[[], bool]) -> str | None:
        """Decide whether a worker that got this place leaves it unused. Returns the warning of it, or None.

        Where all places die, none is to blame.
        """
        deaths = self._deaths.get(place, 0)
        good = any(not self._deaths[other] for other in self._deaths.keys() - {place} - self.given_up)
        if deaths >= self._attempts and (good or has_free_device() or self._take_back(place)):
            self.given_up.add(place)
            return given_up_place(str(place), deaths, str(self._errors[place]))
        self.given_up.discard(place)
        return None

    def _take_back(self, place: WorkerLocation) -> bool:
        """Take back all places that are given up but for this one. Returns whether there were any."""
        back = self.given_up - {place}
        self._deaths.update(dict.fromkeys(back, 0))
        self.given_up -= back
        return bool(back)

    def may_take(self, slot: WorkerSlot, job: Job, slots: Iterable[WorkerSlot], now: float) -> bool:
        """Whether a worker, one of `slots`, may have a job. After a death of the job, that depends on who else is there."""
        if job.died_at is None:
            return True
        elsewhere = slot.location != job.died_at
        if elsewhere and self._is_good(slot.location):
            return True
        # A worker without a place may still get one, for a while.
        there = (each for each in slots if each.location is not None or now - each.moved_at <= RESERVED_SECONDS)
        others = [other for other in there if other is not slot and other.location != job.died_at]
        return not any(self._is_good(other.location) for other in others) and (elsewhere or not others)

    def _is_good(self, place: WorkerLocation | None) -> bool:
        return place is None or not self._deaths.get(place)
