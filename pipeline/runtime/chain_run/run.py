"""The driver of a run: stages its input, has workers do the units that need it, and says what the directory holds.

The driver handles units and receipts. Workers read the rows of units and write results.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from pipeline.core.errors import StoreError, named
from pipeline.core.failpoints import failpoint
from pipeline.core.formatting import format_unfinished
from pipeline.core.progress import Status, Summary
from pipeline.runtime.chain_run.task import HeldRun, Task
from pipeline.runtime.scheduler import Scheduler
from pipeline.runtime.state import state_of
from pipeline.runtime.stop import StopSignal, ended_politely
from pipeline.runtime.worker_handle import Watcher, WorkerPool
from pipeline.storage.editions import arrange
from pipeline.storage.lock import hold_lock
from pipeline.storage.repair import repaired, sequences
from pipeline.storage.run_record import as_recorded, claim
from pipeline.storage.units import units_of

Hiring = Callable[[Task[Any]], AbstractContextManager[WorkerPool]]
"""A context that provides the workers of a run."""
Running = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine to its end from synchronous code, as `asyncio.run` does."""


def run_task(task: Task[Any], hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running = asyncio.run) -> Summary:
    """Do all units of a run. A later start continues with the units that are not done, and with rows that are new.

    Raises InputError, UsageError, PolicyError, ClusterError, RunConflict, StoreError, EngineDied, BudgetSpent, and Interrupted
    if `stop` has received a signal. Committed work is always kept.
    """
    with named(task.names):
        place = task.wanted(watch)
        storage, asked = place.storage, place.identity
        task.check_place(place)
        with hold_lock(storage, lock=task.config.run.lock) as alone:
            identity = as_recorded(storage, asked, alone=alone)
            damaged = claim(storage, identity, alone=alone)
            held = HeldRun(storage=storage, identity=identity, asked=asked, stop=stop, damaged=damaged)
            with task.recorded(held, watch) as watcher:
                return run_held(task, held, hiring, watcher, run)


def run_held(task: Task[Any], held: HeldRun, hiring: Hiring, watch: Watcher, run: Running = asyncio.run) -> Summary:
    """`run_task` on a run directory that this driver has locked and claimed."""
    storage, stop = held.storage, held.stop
    staged = task.staged(held)
    units = list(units_of(storage, staged))
    found, damaged = repaired(storage, units)
    held.damaged.extend(damaged)
    goal = task.goal(held, units, found)
    before = state_of(units, found, goal.targets, goal.growths)
    failpoint("driver.planned")

    def shown(status: Status) -> None:
        logged = before.logged
        watch(
            replace(status, counted=task.counted, rollouts_before=logged[task.counted], tokens_before=logged["tokens"])
        )

    last = Status(stage="starting", units=len(units), units_done=len(units) - len(before.jobs))
    shown(last)
    seconds, speed = (0.0, 0.0), None
    if before.jobs:
        watcher, learned = task.begun(held, before, shown)
        asked = time.monotonic()
        with ended_politely(), hiring(task) as offer:
            hired = time.monotonic() - asked
            stop.listen()
            scheduler = Scheduler(
                task.config.run,
                offer,
                jobs=before.jobs,
                learned=learned,
                units=len(units),
                watch=watcher,
                check=stop.check,
                doing=task.doing,
            )
            run(scheduler.work_off())
            last, seconds = scheduler.status, (hired + scheduler.seconds_starting, scheduler.seconds_labelling)
            speed = scheduler.throughput
        found = sequences(storage)
    after = state_of(units, found, goal.targets, goal.growths)
    if after.jobs:
        raise StoreError(
            f"{storage.run_dir}: {format_unfinished(len(after.jobs), len(units))} again: start the same command again"
        )
    failpoint("driver.arrange")
    done = replace(last, units_done=last.units)
    finished = task.finished(
        held, (staged, *goal.growths), units, after, lambda stage: shown(replace(done, stage=stage))
    )
    arrange(storage, finished.files, found.values())
    failpoint("driver.arranged")
    first_new = next((unit.unit_id for unit in units if unit.unit_id not in before.wholes), "")
    return Summary(
        run_dir=storage.run_dir,
        tally=staged.tally + after.tally,
        units=len(units),
        units_done_now=len(before.jobs),
        added=after.logged - before.logged,
        seconds_starting=seconds[0],
        seconds_working=seconds[1],
        damaged=tuple(held.damaged),
        labels=finished.labels,
        overspent=finished.overspent,
        throughput=speed,
        first_new=first_new if before.wholes else "",
    )
