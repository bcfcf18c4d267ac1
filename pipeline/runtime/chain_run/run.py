"""The driver of a run over chains: stages the chains, has workers do the units that need it, and says what the directory holds.

The driver handles units and receipts. Workers read chains and write results.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from pipeline.core.errors import StoreError, named
from pipeline.core.formatting import format_unfinished
from pipeline.core.progress import ChainRun, Status
from pipeline.core.records import UnitTarget
from pipeline.runtime.chain_run.staging import staged_chains
from pipeline.runtime.chain_run.task import Task, workload_of
from pipeline.runtime.heartbeat import heartbeat
from pipeline.runtime.scheduler import Scheduler
from pipeline.runtime.state import RunState, state_of
from pipeline.runtime.stop import StopSignal, ended_politely
from pipeline.runtime.worker_handle import Watcher, WorkerPool
from pipeline.runtime.workload import Workload
from pipeline.storage.editions import arrange, current_edition, current_files, edition_sequence
from pipeline.storage.lock import hold_lock
from pipeline.storage.repair import repaired, sequences
from pipeline.storage.run_record import as_recorded, check_claim, claim
from pipeline.storage.units import units_of

Hiring = Callable[[Workload], AbstractContextManager[WorkerPool]]
"""A context that provides workers."""
Running = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine to its end from synchronous code, as `asyncio.run` does."""


def run_task(task: Task[Any], hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running = asyncio.run) -> ChainRun:
    """Do all chains. A later start continues with the units that are not done, and with chains that are new.

    Raises InputError, UsageError, PolicyError, ClusterError, RunConflict, StoreError, EngineDied, and Interrupted if `stop` has
    received a signal. Committed work is always kept.
    """
    watch(Status(stage="reading the chains", counted=task.counted))
    with named(task.names):
        storage, asked = task.storage(), task.identity()
        check_claim(storage, as_recorded(storage, asked))
        with hold_lock(storage, lock=task.config.run.lock) as alone:
            run_identity = as_recorded(storage, asked, alone=alone)
            damaged = claim(storage, run_identity, alone=alone)
            with heartbeat(storage, None, watch) as beat:
                found = _done(task, run_identity, asked, hiring, beat, stop, run)
    return replace(found, damaged=(*damaged, *found.damaged))


def _done(
    task: Task[Any],
    run_identity: Mapping[str, object],
    asked: Mapping[str, object],
    hiring: Hiring,
    watch: Watcher,
    stop: StopSignal,
    run: Running,
) -> ChainRun:
    storage, config = task.storage(), task.config.run
    staged, damaged_input = staged_chains(storage, task.source(), config.unit_problems, run_identity, asked, stop.check)
    units = list(units_of(storage, staged))
    found, damaged = repaired(storage, units)
    targets = dict.fromkeys((unit.unit_id for unit in units), UnitTarget())
    before = state_of(units, found, targets)
    seconds = _worked_off(task, before, len(units), hiring, watch, stop, run)
    found = sequences(storage) if before.jobs else found
    after = state_of(units, found, targets)
    if after.jobs:
        raise StoreError(
            f"{storage.run_dir}: {format_unfinished(len(after.jobs), len(units))} again: start the same command again"
        )
    edition = current_edition(edition_sequence(storage), after.wholes)
    arrange(storage, current_files((staged, *after.wholes.values()), edition), found.values())
    return ChainRun(
        run_dir=storage.run_dir,
        totals=replace(after.totals, rows=staged.totals.rows, rejected=staged.totals.rejected),
        units=len(units),
        units_done_now=len(before.jobs),
        now=after.logged - before.logged,
        seconds_starting=seconds[0],
        seconds_working=seconds[1],
        damaged=(*damaged_input, *damaged),
    )


def _worked_off(
    task: Task[Any],
    before: RunState,
    units: int,
    hiring: Hiring,
    watch: Watcher,
    stop: StopSignal,
    run: Running,
) -> tuple[float, float]:
    """Have workers do what is left. Returns the seconds until the first worker had started, and those after."""

    def shown(status: Status) -> None:
        logged = before.logged
        watch(replace(status, counted=task.counted, rollouts_before=task.count(logged), tokens_before=logged.tokens))

    shown(Status(stage="starting", units=units, units_done=units - len(before.jobs)))
    if not before.jobs:
        return 0.0, 0.0
    with ended_politely(), hiring(workload_of(task)) as offer:
        stop.listen()
        scheduler = Scheduler(
            task.config.run, offer, jobs=before.jobs, units=units, watch=shown, check=stop.check, doing=task.doing
        )
        run(scheduler.work_off())
        return scheduler.seconds_starting, scheduler.seconds_labelling
