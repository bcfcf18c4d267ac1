"""The driver of a run: finds the units that need work, has workers label them, and finishes the run directory.

The driver does not handle rollouts or labels; workers write them.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.config.label import LabelConfig, RunConfig
from pipeline.core.errors import Interrupted, RunConflict, StoreError
from pipeline.core.failpoints import failpoint
from pipeline.core.forecast import Limit, encode_forecast
from pipeline.core.formatting import first_of, format_unfinished
from pipeline.core.output import say
from pipeline.core.progress import Status, Summary
from pipeline.core.records import Totals, UnitTarget
from pipeline.data.rows import input_digest
from pipeline.engines.registry import policy_for
from pipeline.estimators.registry import estimator_for
from pipeline.graders.registry import checker_for
from pipeline.runtime.heartbeat import heartbeat
from pipeline.runtime.intake import stage
from pipeline.runtime.problem_budget import UnitSpending, unit_targets
from pipeline.runtime.relabel_hint import relabel_hint
from pipeline.runtime.run_budget import LOOK_SECONDS, DeviceCost, Spending, Throttle, budget_from_plan, overspent_note
from pipeline.runtime.scheduler import Scheduler
from pipeline.runtime.state import RunState, identity, run_name, state_of
from pipeline.runtime.stop import INTERRUPTED, StopSignal
from pipeline.runtime.track.tracking import tracker_for, tracking
from pipeline.runtime.worker_handle import Watcher, WorkerPool
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    CommitState,
    RecordSequence,
    log_totals,
    publish,
    record_sequences,
    resolve,
)
from pipeline.storage.editions import arrange_labels, current_edition, current_label_files, repaired_editions
from pipeline.storage.location import storage_at
from pipeline.storage.lock import hold_lock
from pipeline.storage.repair import repair
from pipeline.storage.run_record import STAGED_INPUT, check_claim, claim, settings_copy, with_recorded_schema
from pipeline.storage.starts import PLAN, read_starts
from pipeline.storage.storage import Storage
from pipeline.storage.units import UnitRef, unit_rows, units_of

DEFAULT_FOLDER = Path("runs")

Hiring = Callable[[LabelConfig], AbstractContextManager[WorkerPool]]
"""A context that provides workers."""
Running = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine to its end from synchronous code, as `asyncio.run` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """A run directory, and the identity of the run that the settings want in it."""

    storage: Storage
    identity: dict[str, object]


def place_of(config: LabelConfig, digest: Callable[[str], str] = input_digest) -> RunPlace:
    """Where a run with these settings goes, and what it is. `digest`: the hash of the input at a path. Changes nothing.

    Raises InputError, UsageError, PolicyError and StoreError.
    """
    run_identity = identity(config, digest(config.data.path), policy_for(config.policy).fingerprint())
    storage = storage_at(config.run_dir or str(DEFAULT_FOLDER / run_name(run_identity)))
    return RunPlace(storage=storage, identity=with_recorded_schema(storage, run_identity))


def check_place(place: RunPlace) -> None:
    """Raise RunConflict if another run is in the directory, with the command that makes the wanted labels if no new rollout is
    needed for them, and StoreError."""
    try:
        check_claim(place.storage, place.identity)
    except RunConflict as error:
        raise RunConflict(f"{error}{relabel_hint(place.storage, place.identity)}") from error


def label(config: LabelConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running = asyncio.run) -> Summary:
    """Label the whole input. A later start on the same run directory continues with the units that are not done.

    Raises InputError, UsageError (for a missing model folder, a budget of another run or an unusable tracker), PolicyError,
    ClusterError, RunConflict, StoreError, EngineDied, BudgetSpent, and Interrupted if `stop` has received a signal. Committed
    work is always kept.
    """
    tracker = tracker_for(config.run.track)
    watch(Status(stage="reading the input"))
    place = place_of(config)
    storage, run_identity = place.storage, place.identity
    budget = budget_from_plan(config.budget, run_identity, config) if config.budget else None
    config = replace(config, run_dir=storage.run_dir)
    check_place(place)
    with hold_lock(storage, lock=config.run.lock) as alone:
        damaged = claim(storage, run_identity, alone=alone)
        if budget is not None:
            storage.replace(PLAN, encode_forecast(budget))
        limit = None if budget is None else budget.limit
        with (
            tracking(tracker, config, storage.run_dir, watch) as tracked,
            heartbeat(storage, config.plan.gpu_hour_price, tracked) as beat,
        ):
            summary = label_held(config, storage, run_identity, hiring, beat, stop, run, limit=limit)
        spent = summary.totals.tokens + summary.totals.solution_tokens
        return replace(
            summary,
            damaged=(*damaged, *summary.damaged),
            overspent="" if limit is None else overspent_note(limit, spent),
        )


def label_held(
    config: LabelConfig,
    storage: Storage,
    run_identity: dict[str, object],
    hiring: Hiring,
    watch: Watcher,
    stop: StopSignal,
    run: Running = asyncio.run,
    *,
    limit: Limit | None = None,
) -> Summary:
    """`label` on a run directory that this driver has locked and claimed."""
    staged, damaged_input = _staged(storage, config, run_identity, stop)
    units = list(units_of(storage, staged))
    found, damaged = _repaired(storage, units)
    asked = _unit_targets(storage, config, units, found)
    before = state_of(units, found, asked)
    failpoint("driver.planned")
    watch = partial(_with_earlier_counts, before.logged, watch)
    watch(Status(stage="starting", units=len(units), units_done=len(units) - len(before.jobs)))
    seconds = (0.0, 0.0)
    speed = None
    if before.jobs:
        watch, pace = _limited(storage, config.run, limit, before, watch)
        with _ended_politely(), hiring(config) as offer:
            stop.listen()
            scheduler = Scheduler(
                pace,
                offer,
                jobs=before.jobs,
                learned=before.learned,
                units=len(units),
                watch=watch,
                check=stop.check,
            )
            run(scheduler.work_off())
            seconds = scheduler.seconds_starting, scheduler.seconds_labelling
            speed = scheduler.throughput
    after = state_of(units, _sequences(storage), asked) if before.jobs else before
    if after.jobs:
        raise StoreError(
            f"{storage.run_dir}: {format_unfinished(len(after.jobs), len(units))} again: start the same command again"
        )
    failpoint("driver.arrange")
    editions, lost = repaired_editions(storage, after.wholes)
    arrange_labels(storage, current_label_files(after.wholes, current_edition(editions, after.wholes)))
    failpoint("driver.arranged")
    return Summary(
        run_dir=storage.run_dir,
        totals=staged.totals + after.totals,
        units=len(units),
        units_done_now=len(before.jobs),
        rollouts_now=after.logged.rollouts - before.logged.rollouts,
        tokens_now=after.logged.tokens - before.logged.tokens,
        seconds_starting=seconds[0],
        seconds_labelling=seconds[1],
        damaged=(*damaged_input, *damaged, *lost),
        labels=_whose_labels(editions, after.wholes),
        throughput=speed,
    )


def _limited(
    storage: Storage, config: RunConfig, limit: Limit | None, before: RunState, watch: Watcher
) -> tuple[Watcher, RunConfig]:
    """A watcher that stops the run at its limit, if there is one, and settings that call the watcher often enough.

    Raises BudgetSpent if earlier starts have already reached the limit.
    """
    if limit is None:
        return watch, config
    starts = read_starts(storage)
    if starts.damaged and limit.device_hours is not None:
        say(
            f"{first_of(starts.damaged)} cannot be read, so the limit of {limit.device_hours:g} device hours does not count "
            "the hours of these starts; lower limit.device_hours in the plan by those that you know of"
        )
    hours = sum(start.status.device_hours for start in starts.starts)
    tokens = before.logged.tokens + before.logged.solution_tokens
    spending = Spending(limit, DeviceCost(tokens=tokens, device_hours=hours))
    shown = Throttle(watch, config.progress_seconds)

    def watch_spending(status: Status) -> None:
        shown(status)
        spending.check(status)

    spending.check(Status(stage="starting", units=len(before.wholes) + len(before.jobs), units_done=len(before.wholes)))
    return watch_spending, replace(config, progress_seconds=min(config.progress_seconds, LOOK_SECONDS))


def _with_earlier_counts(logged: Totals, watch: Watcher, status: Status) -> None:
    """Pass on a status of this start, together with the counts of earlier starts."""
    watch(replace(status, rollouts_before=logged.rollouts, tokens_before=logged.tokens))


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Turn SystemExit into Interrupted: while Ray starts, its own SIGTERM handler ends the process with the signal's number."""
    try:
        yield
    except SystemExit as error:
        raise Interrupted(INTERRUPTED) from error


def _whose_labels(editions: RecordSequence, wholes: Mapping[str, Commit]) -> str:
    """A note for the user if the current labels come from an edition, or no longer do; else an empty text."""
    current = current_edition(editions, wholes)
    if current is not None:
        return f"of edition {current.number} (relabel or regrade)"
    made = [commit.number for commit in editions.commits if commit.state is CommitState.WHOLE]
    if made:
        return (
            f"the run's own: edition {made[-1]} is damaged, or rollouts were added or replaced since it was made; "
            "make it again with relabel or regrade"
        )
    return ""


def _staged(
    storage: Storage, config: LabelConfig, run_identity: dict[str, object], stop: StopSignal
) -> tuple[Commit, list[str]]:
    """The record of the staged input, and the names of its damaged files. The input is staged if no intact record exists."""
    staged_id = str(run_identity[STAGED_INPUT])
    found, damaged = repair(storage, _input_sequence(storage, staged_id))
    known = resolve(found).whole
    if known:
        return known, damaged
    with checker_for(config.grader) as checker:
        staged = stage(storage, staged_id, config.data, config.run, checker, stop.check)
    commit = Commit(
        kind=INPUT,
        sequence_id=staged_id,
        number=found.length,
        state=CommitState.WHOLE,
        shards=staged.shards,
        totals=staged.totals,
        settings=settings_copy(run_identity),
        seconds=staged.seconds,
    )
    if publish(storage, commit):
        return commit, damaged
    raced = resolve(_input_sequence(storage, staged_id)).whole
    if raced is None:
        raise RunConflict(f"another job works on {storage.run_dir}: wait for it, or choose another run_dir")
    return raced, damaged


def _input_sequence(storage: Storage, staged_id: str) -> RecordSequence:
    found = {each.sequence_id: each for each in record_sequences(storage, INPUT)}
    return found.get(staged_id) or RecordSequence(kind=INPUT, sequence_id=staged_id)


def _sequences(storage: Storage) -> dict[str, RecordSequence]:
    return {found.sequence_id: found for found in record_sequences(storage, UNIT)}


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
            logged=log_totals(sequence),
            whole=resolve(sequence).whole,
        )
    return unit_targets(estimator, config.sampling.rollouts, spent)


def _repaired(storage: Storage, units: list[UnitRef]) -> tuple[dict[str, RecordSequence], list[str]]:
    """The record sequences of the units with every file checked, and the names of the damaged files, which are set aside."""
    found = _sequences(storage)
    damaged: list[str] = []
    for unit in units:
        if unit.unit_id in found:
            found[unit.unit_id], names = repair(storage, found[unit.unit_id])
            damaged += names
    return found, damaged
