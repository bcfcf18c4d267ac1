"""A run of `score`: what its workers do, and which settings make it another run."""

import asyncio
import json
from dataclasses import replace

from pipeline.config.score import ScoreConfig
from pipeline.core.errors import RUN_DIR, named
from pipeline.core.ids import content_id
from pipeline.core.progress import ChainRun
from pipeline.core.tables import SCHEMA_VERSION
from pipeline.runtime.chain_run.given import given_identity
from pipeline.runtime.chain_run.run import ChainRunTask, Hiring, Running, run_over_chains
from pipeline.runtime.scoring.calibrated import calibration_id
from pipeline.runtime.scoring.work import score_source
from pipeline.runtime.scoring.worker import scoring_worker
from pipeline.runtime.state import section_identity
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import Watcher
from pipeline.runtime.workload import Workload
from pipeline.scorers.registry import scorer_for
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import COMMAND, OTHER_RUN, SCORE, STAGED_INPUT


def score_run(
    config: ScoreConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running = asyncio.run
) -> ChainRun:
    """Score all chains into the folder `config.out`. A later start continues with the units that are not done, and with chains
    that are new.

    In the totals, `chains` are scored, `prefixes` are steps with a score, and `too_long`, `ungraded` and `engine_failed` chains
    with a step without a score, by reason. Raises as `run_over_chains` does.
    """
    with named({RUN_DIR: "out"}):
        storage = storage_at(config.out)
    config = replace(config, out=storage.run_dir)
    task = ChainRunTask(
        source=score_source(config),
        storage=storage,
        asked=lambda: identity(config),
        run=config.run,
        workload=lambda: scoring(config),
        doing="scoring",
        counted="chains",
        count=lambda totals: totals.chains,
        names={RUN_DIR: "out", OTHER_RUN: "belongs to another run: use another out"},
    )
    return run_over_chains(task, hiring, watch, stop, run)


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
    fields |= given_identity(config)
    return {**fields, STAGED_INPUT: content_id("chains", json.dumps(fields, sort_keys=True))}
