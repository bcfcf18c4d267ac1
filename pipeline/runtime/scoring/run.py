"""The driver of a score run: stages the chains, has workers score the units that need it, and says what the directory holds.

The driver handles units and receipts. Workers read chains and write scores.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pipeline.config.score import ScoreConfig
from pipeline.core.errors import RunConflict, StoreError
from pipeline.core.formatting import format_unfinished
from pipeline.core.ids import content_id
from pipeline.core.progress import Status
from pipeline.core.records import Totals, UnitTarget
from pipeline.core.schemas import SCHEMA_VERSION
from pipeline.data.rows import input_digest
from pipeline.graders.registry import grader_version
from pipeline.runtime.heartbeat import heartbeat
from pipeline.runtime.held_run import ended_politely, repaired, sequences
from pipeline.runtime.scheduler import Scheduler
from pipeline.runtime.scoring.calibrated import calibration_id
from pipeline.runtime.scoring.staging import staged_chains
from pipeline.runtime.scoring.worker import scoring_worker
from pipeline.runtime.state import section_identity, state_of
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import Watcher, WorkerPool
from pipeline.runtime.workload import Workload
from pipeline.scorers.registry import scorer_for
from pipeline.storage.location import storage_at
from pipeline.storage.lock import hold_lock
from pipeline.storage.run_record import COMMAND, SCORE, STAGED_INPUT, as_recorded, check_claim, claim
from pipeline.storage.storage import Storage
from pipeline.storage.stored_labels import label_shards
from pipeline.storage.stored_run import readable_run
from pipeline.storage.units import units_of

Hiring = Callable[[Workload], AbstractContextManager[WorkerPool]]
"""A context that provides workers."""
Running = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine to its end from synchronous code, as `asyncio.run` does."""
_COUNTED = "chains"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRun:
    """What a directory of scores holds, and what this start did. `totals`: `chains`; `prefixes`: steps with a score; `tokens`;
    `too_long`, `ungraded` and `engine_failed`: chains with a step without a score, by reason; `rejected`: rows left out."""

    run_dir: str
    totals: Totals
    units: int
    units_done_now: int
    chains_now: int
    seconds_starting: float
    seconds_scoring: float
    damaged: tuple[str, ...] = ()


def score_run(
    config: ScoreConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running = asyncio.run
) -> ScoredRun:
    """Score all chains into the folder `config.out`. A later start continues with the units that are not done, and with chains
    that are new.

    Raises InputError, UsageError, PolicyError, ClusterError, RunConflict, StoreError, EngineDied, and Interrupted if `stop` has
    received a signal. Committed work is always kept.
    """
    watch(Status(stage="reading the chains", counted=_COUNTED))
    storage, asked = storage_at(config.out), identity(config)
    config = replace(config, out=storage.run_dir)
    with _about_out():
        check_claim(storage, as_recorded(storage, asked))
    with _about_out(), hold_lock(storage, lock=config.run.lock) as alone:
        run_identity = as_recorded(storage, asked, alone=alone)
        damaged = claim(storage, run_identity, alone=alone)
        with heartbeat(storage, None, watch) as beat:
            found = _scored(config, storage, run_identity, asked, hiring, beat, stop, run)
    return replace(found, damaged=(*damaged, *found.damaged))


@contextmanager
def _about_out() -> Iterator[None]:
    """Conflicts name the setting that says where this run is."""
    try:
        yield
    except RunConflict as error:
        raise RunConflict(str(error).replace("run_dir", "out")) from error


def _scored(
    config: ScoreConfig,
    storage: Storage,
    run_identity: dict[str, object],
    asked: dict[str, object],
    hiring: Hiring,
    watch: Watcher,
    stop: StopSignal,
    run: Running,
) -> ScoredRun:
    staged, damaged_input = staged_chains(storage, config, run_identity, asked, stop.check)
    units = list(units_of(storage, staged))
    found, damaged = repaired(storage, units)
    targets = dict.fromkeys((unit.unit_id for unit in units), UnitTarget())
    before = state_of(units, found, targets)

    def shown(status: Status) -> None:
        watch(
            replace(status, counted=_COUNTED, rollouts_before=before.logged.chains, tokens_before=before.logged.tokens)
        )

    shown(Status(stage="starting", units=len(units), units_done=len(units) - len(before.jobs)))
    seconds = (0.0, 0.0)
    if before.jobs:
        with ended_politely(), hiring(scoring(config)) as offer:
            stop.listen()
            scheduler = Scheduler(
                config.run,
                offer,
                jobs=before.jobs,
                units=len(units),
                watch=shown,
                check=stop.check,
                doing="scoring",
            )
            run(scheduler.work_off())
            seconds = scheduler.seconds_starting, scheduler.seconds_labelling
    after = state_of(units, sequences(storage), targets) if before.jobs else before
    if after.jobs:
        raise StoreError(
            f"{storage.run_dir}: {format_unfinished(len(after.jobs), len(units))} again: start the same command again"
        )
    return ScoredRun(
        run_dir=storage.run_dir,
        totals=replace(after.totals, rows=staged.totals.rows, rejected=staged.totals.rejected),
        units=len(units),
        units_done_now=len(before.jobs),
        chains_now=after.logged.chains - before.logged.chains,
        seconds_starting=seconds[0],
        seconds_scoring=seconds[1],
        damaged=(*damaged_input, *damaged),
    )


def scoring(config: ScoreConfig) -> Workload:
    """What the workers of `score` do. Raises UsageError for a scorer that is not installed."""
    scorer = scorer_for(config.scorer)
    return Workload(
        model=scorer,
        settings=lambda parts: replace(config, scorer=scorer.with_tensor_parallel(parts)),
        make=scoring_worker,
        run_dir=config.out,
        units_in_flight=config.run.units_in_flight,
        cluster=config.cluster,
    )


def identity(config: ScoreConfig) -> dict[str, object]:
    """The identity of a score run: what determines its scores, as dotted key -> plain value.

    Raises InputError, UsageError and StoreError for chains that cannot be read, and UsageError for a missing model folder.
    """
    scorer = scorer_for(config.scorer)
    fields: dict[str, object] = {
        COMMAND: SCORE,
        "schema": SCHEMA_VERSION,
        "scorer_fingerprint": scorer.fingerprint(),
        "aggregation": config.aggregation.value,
        "calibration": calibration_id(config),
        **section_identity("scorer", config.scorer),
        **scorer.identity(),
    }
    if config.run_dir:
        storage = storage_at(config.run_dir)
        run = readable_run(storage, partial=config.partial)
        labels = [shard.sha256 for shard in label_shards(storage, run)]
        fields |= {"source": run.identity[STAGED_INPUT], "input": content_id("labels", *labels)}
    else:
        fields |= {
            "input": input_digest(config.data.path),
            "grader_version": grader_version(),
            **section_identity("data", config.data),
            **section_identity("grader", config.grader),
        }
    return {**fields, STAGED_INPUT: content_id("chains", json.dumps(fields, sort_keys=True))}
