"""The task `label`: where a run goes, what its units must reach, and what finishes it.

The driver does not handle rollouts or labels; workers write them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from pipeline.config.label import LabelConfig, RunConfig
from pipeline.core.errors import Absent, Damaged, RunConflict, StepvalueError
from pipeline.core.forecast import Forecast, Limit, encode_forecast
from pipeline.core.formatting import first_of, format_count
from pipeline.core.output import say
from pipeline.core.progress import Status
from pipeline.core.records import UnitTarget
from pipeline.data.rows import input_digest
from pipeline.engines.base import OnDevices, Surroundings
from pipeline.engines.registry import policy_for
from pipeline.estimators.registry import estimator_for
from pipeline.runtime.chain_run.task import Arranged, Goal, HeldRun, RunPlace, Task
from pipeline.runtime.heartbeat import heartbeat
from pipeline.runtime.intake import refuse_equal_chains
from pipeline.runtime.labelling import Labelling, engine_for
from pipeline.runtime.problem_budget import UnitSpending, unit_targets
from pipeline.runtime.relabel_hint import relabel_hint
from pipeline.runtime.run_budget import LOOK_SECONDS, Spending, Throttle, budget_from_plan, overspent_note
from pipeline.runtime.staged_input import staged_input
from pipeline.runtime.state import RunState, identity, run_name, start_settings
from pipeline.runtime.tracking import Sink, tracker_for, tracking
from pipeline.runtime.worker import LearnedState, learned_state_of
from pipeline.runtime.worker_handle import Watcher
from pipeline.storage.commits import UNIT, Commit, RecordSequence, log_tally, resolve
from pipeline.storage.edition_writer import EditionWriter
from pipeline.storage.editions import common_state, edition_sequence, own_editions, repaired_editions, whose_labels
from pipeline.storage.growths import growth_sequence, growths_needed, growths_of
from pipeline.storage.location import storage_at
from pipeline.storage.repair import repair
from pipeline.storage.run_record import as_recorded, check_claim, differs_in_input, recorded_identity
from pipeline.storage.shards import intact_bytes, set_aside_damaged
from pipeline.storage.starts import PLAN, read_starts
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun
from pipeline.storage.units import UnitRef, staged_rows, unit_rows

DEFAULT_FOLDER = Path("runs")
MOST_RUNS = 1000
"""The largest number of folders that are searched for a run with another input."""


def place_of(config: LabelConfig, digest: Callable[[str], str] = input_digest) -> RunPlace:
    """Where a run with these settings goes, and what it is. `digest`: the hash of the input at a path. Changes nothing.

    Raises InputError, UsageError, PolicyError and StoreError.
    """
    run_identity = identity(config, digest(config.data.path), policy_for(config.policy).fingerprint())
    storage = storage_at(config.run_dir or str(DEFAULT_FOLDER / run_name(run_identity)))
    return RunPlace(storage=storage, identity=run_identity)


def check_place(place: RunPlace) -> None:
    """Raise RunConflict if another run is in the directory, with the command that makes the wanted labels if no new rollout is
    needed for them, and StoreError."""
    wanted = as_recorded(place.storage, place.identity)
    try:
        check_claim(place.storage, wanted)
    except RunConflict as error:
        raise RunConflict(*error.args, relabel_hint(place.storage, wanted)) from error


def _with_other_input(asked: Mapping[str, object]) -> str:
    """A run below the default folder that only has another input than this start; empty if there is none."""
    with suppress(OSError):
        for folder in sorted(DEFAULT_FOLDER.iterdir())[:MOST_RUNS]:
            with suppress(StepvalueError):
                if differs_in_input(recorded_identity(storage_at(str(folder))), asked):
                    return str(folder)
    return ""


class LabelTask(Task[LabelConfig]):
    """Labels a whole input. `run.run_task` with it may raise BudgetSpent, and UsageError for a budget of another run and an
    unusable tracker, too."""

    doing = "labelling"
    counted = "rollouts"
    _tracker: Sink | None = None
    _budget: Forecast | None = None

    @property
    def _limit(self) -> Limit | None:
        """Of what all starts of the run may cost; None: no limit."""
        planned = Limit(tokens=None) if self._budget is None else self._budget.limit
        hours = [each for each in (planned.device_hours, self.config.most_hours) if each is not None]
        limit = replace(planned, device_hours=min(hours, default=None))
        return None if limit == Limit(tokens=None) else limit

    def storage(self) -> Storage:
        assert self.config.run_dir is not None
        return storage_at(self.config.run_dir)

    def identity(self) -> dict[str, object]:
        return place_of(self.config).identity

    def wanted(self, watch: Watcher) -> RunPlace:
        config = self.config
        self._tracker = tracker_for(config.run.track)
        watch(Status(stage="reading the input"))
        place = place_of(config)
        self._budget = budget_from_plan(config.budget, place.identity, config) if config.budget else None
        if config.run_dir is None and not place.storage.names("") and (other := _with_other_input(place.identity)):
            say(f"{other} is a run with these settings and another input: to add rows to it, give run_dir={other}")
        self.config = replace(config, run_dir=place.storage.run_dir)
        return place

    def check_place(self, place: RunPlace) -> None:
        check_place(place)

    @contextmanager
    def recorded(self, held: HeldRun, watch: Watcher) -> Iterator[Watcher]:
        config, storage = self.config, held.storage
        if self._budget is not None:
            storage.replace(PLAN, encode_forecast(self._budget))
        with (
            tracking(self._tracker, config, storage.run_dir, watch) as tracked,
            heartbeat(storage, config.plan.gpu_hour_price, tracked, start_settings(config, held.identity)) as beat,
        ):
            yield beat

    def model(self) -> OnDevices:
        return policy_for(self.config.policy)

    def spread(self, parts: int) -> LabelConfig:
        return replace(self.config, policy=policy_for(self.config.policy).with_tensor_parallel(parts))

    def planned_devices(self) -> int | None:
        return self.config.plan.gpus

    def work(self, around: Surroundings) -> Labelling:
        return Labelling(self.config, engine_for(self.config, around), self.storage())

    def staged(self, held: HeldRun) -> Commit:
        staged = staged_input(self.config, held)
        rows = (row for rows in staged_rows(held.storage, staged) for row in rows)
        refuse_equal_chains(rows, self.config.sampling)
        return staged

    def goal(self, held: HeldRun, units: Sequence[UnitRef], found: Mapping[str, RecordSequence]) -> Goal:
        growing, damaged = repair(held.storage, growth_sequence(held.storage))
        held.damaged.extend(damaged)
        growths = growths_of(growing)
        targets = {
            unit_id: replace(target, growths=growths_needed(growths))
            for unit_id, target in _unit_targets(held.storage, self.config, units, found).items()
        }
        return Goal(targets=targets, growths=growths)

    def begun(self, held: HeldRun, before: RunState, watch: Watcher) -> tuple[Watcher, LearnedState | None]:
        if unpaid := sum(job.asked.unit_target.unit_budget == 0 for job in before.jobs):
            say(
                f"estimator.run_budget leaves nothing for {format_count(unpaid, 'unit')}, whose labels rest on no further "
                "rollouts: start again with a larger one to sample for them"
            )
        known = filter(None, (_learned_together(held.storage), *map(learned_state_of, before.wholes.values())))
        if self._limit is not None:
            watch = _limited(held.storage, self.config.run, self._limit, before, watch)
            often = min(self.config.run.progress_seconds, LOOK_SECONDS)
            self.config = replace(self.config, run=replace(self.config.run, progress_seconds=often))
        return watch, max(known, key=lambda each: each.chains, default=None)

    def finished(
        self,
        held: HeldRun,
        planned: tuple[Commit, ...],
        units: Sequence[UnitRef],
        after: RunState,
        show: Callable[[str], None],
    ) -> Arranged:
        storage, limit = held.storage, self._limit
        editions, damaged = repaired_editions(storage, after.wholes)
        held.damaged.extend(damaged)
        labelled = StoredRun(
            storage=storage,
            identity=held.identity,
            units=tuple(units),
            wholes=after.wholes,
            editions=editions,
            planned=planned,
        )
        own = labelled.edition is None and after.tally["chains"] and not common_state(after.wholes, None)
        if own and (estimator := estimator_for(self.config.estimator)).learner:
            # The engines have ended. A stop leaves the labels that the units have, and the next start begins here.
            show("learning from all chains")
            writer = EditionWriter(storage, labelled, estimator, look=held.stop.check)
            writer.write_all()
            writer.publish(labelled.settings)
            labelled = replace(labelled, editions=edition_sequence(storage))
        return Arranged(
            files=labelled.current_files,
            labels=whose_labels(labelled.editions, labelled.wholes),
            overspent=overspent_note(limit, after.tally["tokens"] + after.tally["solution_tokens"]) if limit else "",
        )


def _learned_together(storage: Storage) -> LearnedState | None:
    """What the run has last learned from all of its units. None where it has not, or where the file is lost."""
    found = map(learned_state_of, own_editions(edition_sequence(storage)))
    for learned in filter(None, found):
        try:
            intact_bytes(storage, learned.shard)
            return learned
        except Damaged:
            set_aside_damaged(storage, learned.shard.file)
        except Absent:
            continue
    return None


def _limited(storage: Storage, config: RunConfig, limit: Limit, before: RunState, watch: Watcher) -> Watcher:
    """A watcher that stops the run at its limit, if it is called often enough.

    Raises BudgetSpent if earlier starts have already reached the limit.
    """
    starts = read_starts(storage)
    if starts.damaged and limit.device_hours is not None:
        say(
            f"{first_of(starts.damaged)} cannot be read, so the limit of {limit.device_hours:g} device hours does not count "
            "the hours of these starts; lower limit.device_hours in the plan by those that you know of"
        )
    hours = sum(start.status.working_hours for start in starts.starts)
    tokens = before.logged["tokens"] + before.logged["solution_tokens"]
    spending = Spending(limit, tokens, hours)
    shown = Throttle(watch, config.progress_seconds)

    def watch_spending(status: Status) -> None:
        shown(status)
        spending.check(status)

    spending.check(Status(stage="starting", units=len(before.wholes) + len(before.jobs), units_done=len(before.wholes)))
    return watch_spending


def _unit_targets(
    storage: Storage, config: LabelConfig, units: Sequence[UnitRef], found: Mapping[str, RecordSequence]
) -> dict[str, UnitTarget]:
    """The target of each unit, by unit id. The number of chains is only counted if the run has a budget."""
    estimator = estimator_for(config.estimator)
    budgeted = estimator.budget is not None and estimator.budget.run is not None
    spent = {}
    for unit in units:
        sequence = found.get(unit.unit_id) or RecordSequence(kind=UNIT, sequence_id=unit.unit_id)
        rows = unit_rows(storage, unit) if budgeted else ()
        spent[unit.unit_id] = UnitSpending(
            chains=sum(1 if row.solution else config.sampling.solutions for row in rows),
            logged=log_tally(sequence).totals,
            whole=resolve(sequence).whole,
        )
    return unit_targets(estimator, config.sampling.rollouts, spent)
