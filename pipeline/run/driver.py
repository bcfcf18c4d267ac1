"""The driver: which units are owed, who works on them, what to do when a worker dies. It never sees a row.

Ray's own retries are off. A worker that dies, hangs or loses its engine is replaced, and its units are tried again by the
next one; a unit that fails `run.attempts` times ends the run, which keeps everything that was committed.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from pipeline.config import LabelConfig
from pipeline.engine.fingerprint import policy_fingerprint
from pipeline.errors import ClusterError, EngineDied, StepvalueError
from pipeline.grading.choose import checker_for
from pipeline.records import Load, Status, Summary, Totals
from pipeline.rows import input_digest
from pipeline.run.cluster import Share, cluster, share
from pipeline.run.intake import stage
from pipeline.run.plan import identity, owed, run_name
from pipeline.run.stop import StopSignal
from pipeline.run.worker import Receipt, Snapshot, Worker
from pipeline.store.commits import INPUT, UNIT, Commit, committed, committed_ids, committed_unit
from pipeline.store.lock import run_lock
from pipeline.store.run_record import STAGED_INPUT, claim, refuse_strangers
from pipeline.store.strays import set_aside_stray_labels
from pipeline.store.units import UnitRef, units_of

_SPARE_CALLS = 4  # concurrent calls an actor takes beside its units: snapshots and stop
_STOP_SECONDS = 20.0
_NO_UNIT = "start"  # what a worker fails at that has no unit yet
_LOOK_SECONDS = 0.5  # how often the driver looks up while nothing comes in


DEFAULT_FOLDER = Path("runs")

Watcher = Callable[[Status], None]


def label(config: LabelConfig, watch: Watcher, stop: StopSignal) -> Summary:
    """Label everything the input asks for; started again on the same run directory, only what is still owed.

    Raises InputError, PolicyError, ClusterError, RunConflict, StoreError, EngineDied, or Interrupted when `stop` says so; what
    was committed stays.
    """
    watch(Status(stage="reading the input"))
    facts = identity(config, input_digest(config.data.path), policy_fingerprint(config.policy))
    run_dir = Path(config.run_dir or DEFAULT_FOLDER / run_name(facts)).expanduser().resolve()
    config = replace(config, run_dir=str(run_dir))
    refuse_strangers(run_dir)
    with run_lock(run_dir):
        claim(run_dir, facts)
        staged = _staged(run_dir, config, str(facts[STAGED_INPUT]), stop)
        units = list(units_of(run_dir, staged))
        todo = owed(units, committed_ids(run_dir, UNIT))
        crew = _Crew(config, len(units), len(units) - len(todo), watch, stop)
        if todo:
            watch(Status(stage="starting Ray", units=len(units), units_done=len(units) - len(todo)))
            with cluster(config.cluster):
                stop.listen()
                crew.work_off(todo, share(config.cluster, config.policy))
        set_aside_stray_labels(run_dir)
    return Summary(
        run_dir=run_dir,
        totals=sum((commit.totals for commit in committed(run_dir, UNIT)), staged.totals),
        units=len(units),
        units_done_now=len(todo),
        rollouts_now=crew.finished.rollouts,
        tokens_now=crew.finished.tokens,
        seconds_starting=crew.seconds_starting,
        seconds_labelling=crew.seconds_labelling,
    )


def _staged(run_dir: Path, config: LabelConfig, staged_id: str, stop: StopSignal) -> Commit:
    known = committed_unit(run_dir, INPUT, staged_id)
    if known:
        return known
    with checker_for(config.grader) as checker:
        return stage(run_dir, staged_id, config.data, config.run, checker, stop.check)


@dataclass(slots=True, eq=False)
class _Hand:
    """A worker's place: its actor, the start that is still awaited, what it works on, and when it last made progress."""

    actor: Any
    starting: Any
    attempt: int = 1
    units: dict[Any, UnitRef] = field(default_factory=dict)
    snapshot: Snapshot = field(default_factory=Snapshot)
    moved_at: float = field(default_factory=time.monotonic)


class _Crew:
    """The workers of one start, and the loop that keeps them busy."""

    def __init__(self, config: LabelConfig, units: int, units_done: int, watch: Watcher, stop: StopSignal) -> None:
        self._config = config
        self._watch = watch
        self._stop = stop
        self._units = units
        self._units_done = units_done
        self._owed = units - units_done
        self._waiting: deque[UnitRef] = deque()
        self._failures: dict[str, int] = {}
        self._hands: list[_Hand] = []
        self._share = Share(workers=0, cpus=0, gpus=0)
        self._began = time.monotonic()
        self.finished = Totals()
        self.seconds_starting = 0.0
        self.seconds_labelling = 0.0

    def work_off(self, todo: list[UnitRef], share_: Share) -> None:
        """Have all units labelled and committed."""
        self._began = time.monotonic()
        self._waiting.extend(todo)
        self._share = share_
        try:
            self._show("loading the policy")
            for _ in range(min(share_.workers, len(todo))):
                actor = self._actor(attempt=1)
                self._hands.append(_Hand(actor=actor, starting=actor.start.remote()))
            self._loop()
            self.seconds_labelling = time.monotonic() - self._began - self.seconds_starting
        finally:
            self._dismiss()

    def _actor(self, attempt: int) -> Any:
        remote = ray.remote(Worker).options(
            num_cpus=self._share.cpus,
            num_gpus=self._share.gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=self._config.run.units_in_flight + _SPARE_CALLS,
        )
        return remote.remote(self._config, cpus=max(1, int(self._share.cpus)), attempt=attempt)

    def _loop(self) -> None:
        shown_at = time.monotonic()
        every = self._config.run.progress_seconds
        while self._waiting or any(hand.units for hand in self._hands):
            self._stop.check()
            for hand in self._hands:
                self._fill(hand)
            owner = {
                future: hand for hand in self._hands for future in [*hand.units, hand.starting] if future is not None
            }
            ready, _ = ray.wait(list(owner), num_returns=1, timeout=_LOOK_SECONDS)
            for future in ready:
                self._take(owner[future], future)
            if time.monotonic() - shown_at >= every:
                shown_at = time.monotonic()
                self._look_around()
        self._look_around()

    def _fill(self, hand: _Hand) -> None:
        while hand.starting is None and self._waiting and len(hand.units) < self._config.run.units_in_flight:
            unit = self._waiting.popleft()
            if not hand.units:
                hand.moved_at = time.monotonic()
            hand.units[hand.actor.label_unit.remote(unit)] = unit

    def _take(self, hand: _Hand, future: Any) -> None:
        hand.moved_at = time.monotonic()
        try:
            result = _result(future)
        except EngineDied as error:
            self._replace(hand, str(error))
            return
        if future is hand.starting:
            hand.starting = None
            self.seconds_starting = self.seconds_starting or time.monotonic() - self._began
            self._show("labelling")
            return
        receipt: Receipt = result
        del hand.units[future]
        self.finished += receipt.totals
        self._units_done += 1

    def _look_around(self) -> None:
        """Fetch each worker's counters, and replace the ones that have stopped moving."""
        for hand in [hand for hand in self._hands if hand.starting is None]:
            try:
                snapshot = _result(hand.actor.snapshot.remote(), timeout=self._config.run.progress_seconds)
            except (EngineDied, TimeoutError):
                snapshot = hand.snapshot
            if snapshot != hand.snapshot:
                hand.moved_at = time.monotonic()
            hand.snapshot = snapshot
            limit = self._config.run.stall_seconds
            if hand.units and time.monotonic() - hand.moved_at > limit:
                self._replace(hand, f"no rollout finished within run.stall_seconds={limit:g}")
        self._check_starts()
        self._show("labelling" if self.seconds_starting else "loading the policy")

    def _check_starts(self) -> None:
        """Give up waiting for workers that do not start; without any other, that ends the run."""
        limit = self._config.run.start_timeout_seconds
        late = [hand for hand in self._hands if hand.starting is not None and time.monotonic() - hand.moved_at > limit]
        for hand in late:
            _kill(hand.actor)
            self._hands.remove(hand)
        if late and not self._hands:
            raise ClusterError(
                f"no worker started within run.start_timeout_seconds={limit:g}: free the cluster's resources or lower "
                "cluster.workers"
            )

    def _replace(self, hand: _Hand, reason: str) -> None:
        """Kill a worker and start a new one in its place; its units go back to the head of the queue."""
        units = list(hand.units.values())
        hand.units = {}
        _kill(hand.actor)
        for unit in reversed(units):
            self._waiting.appendleft(unit)
        for failed in [unit.unit_id for unit in units] or [_NO_UNIT]:
            failures = self._failures[failed] = self._failures.get(failed, 0) + 1
            if failures >= self._config.run.attempts:
                raise EngineDied(
                    f"a {'unit' if units else 'worker'} failed {failures} times ({reason}); {self._units_done} of "
                    f"{self._units} units are committed: mend the cause and start the same command again"
                )
        hand.attempt += 1
        self._show(f"replacing a worker ({reason})")
        hand.actor = self._actor(attempt=hand.attempt)
        hand.starting = hand.actor.start.remote()
        hand.moved_at = time.monotonic()

    def _show(self, stage: str) -> None:
        snapshots = [hand.snapshot for hand in self._hands]
        begun = sum(snapshot.begun for snapshot in snapshots)
        planned = sum(snapshot.planned for snapshot in snapshots)
        self._watch(
            Status(
                stage=stage,
                units=self._units,
                units_done=self._units_done,
                rollouts=max(self.finished.rollouts, sum(snapshot.rollouts for snapshot in snapshots)),
                rollouts_expected=planned * self._owed // begun if begun else 0,
                tokens=max(self.finished.tokens, sum(snapshot.tokens for snapshot in snapshots)),
                load=Load(
                    running=sum(snapshot.load.running for snapshot in snapshots),
                    waiting=sum(snapshot.load.waiting for snapshot in snapshots),
                ),
            )
        )

    def _dismiss(self) -> None:
        stops = [hand.actor.stop.remote() for hand in self._hands]
        if stops:
            ray.wait(stops, num_returns=len(stops), timeout=_STOP_SECONDS)
        for hand in self._hands:
            _kill(hand.actor)


def _result(future: Any, timeout: float | None = None) -> Any:
    """The value of a future. A worker's own errors come back as they were raised, a dead worker as EngineDied."""
    try:
        return ray.get(future, timeout=timeout)
    except RayTaskError as error:
        if isinstance(error.cause, StepvalueError):
            raise error.cause from None
        raise
    except RayActorError as error:
        raise EngineDied(f"a worker died: {_first_line(error)}") from error


def _first_line(error: RayError) -> str:
    return next((line.strip() for line in _lines(error)), type(error).__name__)


def _lines(error: RayError) -> Iterator[str]:
    return (line for line in str(error).splitlines() if line.strip())


def _kill(actor: Any) -> None:
    ray.kill(actor, no_restart=True)
