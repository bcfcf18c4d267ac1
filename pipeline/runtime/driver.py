"""The driver: which units are owed, who works on them, what the run directory holds in the end. It never sees a row."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.config.label import LabelConfig, RunConfig
from pipeline.core.errors import Interrupted, RunConflict, StoreError
from pipeline.core.failpoints import failpoint
from pipeline.core.forecast import Limit, encoded_forecast
from pipeline.core.progress import Status, Summary
from pipeline.core.records import Goal, Totals
from pipeline.core.words import first_of
from pipeline.data.rows import input_digest
from pipeline.engines.registry import policy_for
from pipeline.estimators.registry import estimator_for
from pipeline.graders.registry import checker_for
from pipeline.runtime.budgets import Spent, goals
from pipeline.runtime.crew import Crew
from pipeline.runtime.hands import Offer, Watcher
from pipeline.runtime.intake import stage
from pipeline.runtime.spending import LOOK_SECONDS, Outlay, Seldom, Spending, overspent, planned_budget
from pipeline.runtime.state import RunState, identity, run_name, state_of
from pipeline.runtime.stop import INTERRUPTED, StopSignal
from pipeline.runtime.telling import telling
from pipeline.runtime.track.tracked import tracked, tracker_for
from pipeline.storage.commits import INPUT, UNIT, Commit, CommitChain, State, chains, logged_totals, publish, standing
from pipeline.storage.editions import arrange_labels, current_edition, current_label_files, mended_editions
from pipeline.storage.lock import held
from pipeline.storage.place import storage_at
from pipeline.storage.repair import repaired
from pipeline.storage.run_record import STAGED_INPUT, check_claim, claim, settings_copy
from pipeline.storage.starts import PLAN, read_starts
from pipeline.storage.storage import Storage
from pipeline.storage.units import UnitRef, unit_rows, units_of

DEFAULT_FOLDER = Path("runs")

Hiring = Callable[[LabelConfig], AbstractContextManager[Offer]]
"""Where workers come from, once it is entered."""
Running = Callable[[Coroutine[Any, Any, None]], None]
"""A way to run a coroutine to its end, from code that is none."""


def label(config: LabelConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running = asyncio.run) -> Summary:
    """Label everything the input asks for; started again on the same run directory, only what is still owed.

    Raises InputError, UsageError for a budget that is none of this run and a tracker that cannot be used, PolicyError,
    ClusterError, RunConflict, StoreError, EngineDied, BudgetSpent, or Interrupted when `stop` says so; what was committed
    stays.
    """
    tracker = tracker_for(config.run.track)
    watch(Status(stage="reading the input"))
    facts = identity(config, input_digest(config.data.path), policy_for(config.policy).fingerprint())
    budget = planned_budget(config.budget, facts, config) if config.budget else None
    storage = storage_at(config.run_dir or str(DEFAULT_FOLDER / run_name(facts)))
    config = replace(config, run_dir=storage.place)
    check_claim(storage, facts)
    with held(storage, lock=config.run.lock) as alone:
        damaged = claim(storage, facts, alone=alone)
        if budget is not None:
            storage.replace(PLAN, encoded_forecast(budget))
        limit = None if budget is None else budget.limit
        with (
            tracked(tracker, config, storage.place, watch) as tracking,
            telling(storage, config.plan.gpu_hour_price, tracking) as told,
        ):
            summary = label_held(config, storage, facts, hiring, told, stop, run, limit=limit)
        spent = summary.totals.tokens + summary.totals.solution_tokens
        return replace(
            summary,
            damaged=(*damaged, *summary.damaged),
            overspent="" if limit is None else overspent(limit, spent),
        )


def label_held(
    config: LabelConfig,
    storage: Storage,
    facts: dict[str, object],
    hiring: Hiring,
    watch: Watcher,
    stop: StopSignal,
    run: Running = asyncio.run,
    *,
    limit: Limit | None = None,
) -> Summary:
    """`label` on a run directory that is this driver's own."""
    staged, damaged_input = _staged(storage, config, facts, stop)
    units = list(units_of(storage, staged))
    found, damaged = _repaired(storage, units)
    asked = _goals(storage, config, units, found)
    before = state_of(units, found, asked)
    failpoint("driver.planned")
    watch = partial(_behind, before.logged, watch)
    watch(Status(stage="starting", units=len(units), units_done=len(units) - len(before.jobs)))
    seconds = (0.0, 0.0)
    speed = None
    if before.jobs:
        watch, pace = _limited(storage, config.run, limit, before, watch)
        with _ended_politely(), hiring(config) as offer:
            stop.listen()
            crew = Crew(
                pace,
                offer,
                jobs=before.jobs,
                learnt=before.learnt,
                units=len(units),
                watch=watch,
                check=stop.check,
            )
            run(crew.work_off())
            seconds = crew.seconds_starting, crew.seconds_labelling
            speed = crew.throughput
    after = state_of(units, _chains(storage), asked) if before.jobs else before
    if after.jobs:
        raise StoreError(f"{len(after.jobs)} units of {storage.place} are owed again: start the same command again")
    failpoint("driver.arrange")
    editions, lost = mended_editions(storage, after.wholes)
    arrange_labels(storage, current_label_files(after.wholes, current_edition(editions, after.wholes)))
    failpoint("driver.arranged")
    return Summary(
        run_dir=storage.place,
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
    """A watcher that ends the run at its limit, if it has one, and settings with which it looks often enough.

    Raises BudgetSpent where earlier starts have spent it.
    """
    if limit is None:
        return watch, config
    starts = read_starts(storage)
    if starts.damaged and limit.device_hours is not None:
        sys.stderr.write(
            f"stepvalue: {first_of(starts.damaged)} cannot be read: the limit of {limit.device_hours:g} device hours "
            "cannot count what these starts took; lower limit.device_hours in the plan by as much as you know of\n"
        )
    hours = sum(start.status.device_hours for start in starts.told)
    tokens = before.logged.tokens + before.logged.solution_tokens
    spending = Spending(limit, Outlay(tokens=tokens, device_hours=hours))
    shown = Seldom(watch, config.progress_seconds)

    def watch_spending(status: Status) -> None:
        shown(status)
        spending.check(status)

    spending.check(Status(stage="starting", units=len(before.wholes) + len(before.jobs), units_done=len(before.wholes)))
    return watch_spending, replace(config, progress_seconds=min(config.progress_seconds, LOOK_SECONDS))


def _behind(logged: Totals, watch: Watcher, status: Status) -> None:
    """Tell a status of this start with what earlier ones have committed."""
    watch(replace(status, rollouts_before=logged.rollouts, tokens_before=logged.tokens))


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Ray has its own handler of SIGTERM in place while it starts, which ends the process with the signal's number."""
    try:
        yield
    except SystemExit as error:
        raise Interrupted(INTERRUPTED) from error


def _whose_labels(editions: CommitChain, wholes: Mapping[str, Commit]) -> str:
    """Where the current labels are not what this command alone would have made, or no longer are: why, for the user."""
    current = current_edition(editions, wholes)
    if current is not None:
        return f"of edition {current.number} (relabel or regrade)"
    made = [commit.number for commit in editions.commits if commit.state is State.WHOLE]
    if made:
        return f"the run's own: edition {made[-1]} is damaged, or rollouts were added or redone since; make it again"
    return ""


def _staged(
    storage: Storage, config: LabelConfig, facts: dict[str, object], stop: StopSignal
) -> tuple[Commit, list[str]]:
    """The record of the staged input, made where there is none that is intact; and what of it was damaged."""
    staged_id = str(facts[STAGED_INPUT])
    found, damaged = repaired(storage, _input_chain(storage, staged_id))
    known = standing(found).whole
    if known:
        return known, damaged
    with checker_for(config.grader) as checker:
        staged = stage(storage, staged_id, config.data, config.run, checker, stop.check)
    commit = Commit(
        kind=INPUT,
        chain_id=staged_id,
        number=found.length,
        state=State.WHOLE,
        shards=staged.shards,
        totals=staged.totals,
        settings=settings_copy(facts),
        seconds=staged.seconds,
    )
    if publish(storage, commit):
        return commit, damaged
    raced = standing(_input_chain(storage, staged_id)).whole
    if raced is None:
        raise RunConflict(f"another job works on {storage.place}: wait for it, or choose another run_dir")
    return raced, damaged


def _input_chain(storage: Storage, staged_id: str) -> CommitChain:
    found = {each.chain_id: each for each in chains(storage, INPUT)}
    return found.get(staged_id) or CommitChain(kind=INPUT, chain_id=staged_id)


def _chains(storage: Storage) -> dict[str, CommitChain]:
    return {found.chain_id: found for found in chains(storage, UNIT)}


def _goals(
    storage: Storage, config: LabelConfig, units: Sequence[UnitRef], found: Mapping[str, CommitChain]
) -> dict[str, Goal]:
    """What is asked of each unit. How many chains a unit has matters for a run's budget alone."""
    estimator = estimator_for(config.estimator)
    budgeted = estimator.budget is not None and estimator.budget.run is not None
    spent = {}
    for unit in units:
        chain = found.get(unit.unit_id) or CommitChain(kind=UNIT, chain_id=unit.unit_id)
        rows = unit_rows(storage, unit) if budgeted else ()
        spent[unit.unit_id] = Spent(
            chains=sum(1 if row.solution else config.sampling.solutions for row in rows),
            logged=logged_totals(chain),
            whole=standing(chain).whole,
        )
    return goals(estimator, config.sampling.rollouts, spent)


def _repaired(storage: Storage, units: list[UnitRef]) -> tuple[dict[str, CommitChain], list[str]]:
    """The chains of the units, every file of them checked; and the names of what was damaged and is set aside."""
    found = _chains(storage)
    damaged: list[str] = []
    for unit in units:
        if unit.unit_id in found:
            found[unit.unit_id], names = repaired(storage, found[unit.unit_id])
            damaged += names
    return found, damaged
