"""A run of `search`: which problems are searched, what its workers do, and which settings make it another run."""

import asyncio
import json
from dataclasses import replace

from pipeline.config.search import SearchRunConfig
from pipeline.core.errors import UsageError
from pipeline.core.ids import content_id
from pipeline.core.progress import ChainRun
from pipeline.core.tables import SCHEMA_VERSION
from pipeline.data.rows import input_digest
from pipeline.engines.registry import policy_for
from pipeline.graders.registry import grader_version
from pipeline.runtime.answer_ending import stops_at_answer
from pipeline.runtime.chain_run.run import ChainRunTask, Hiring, Running, run_over_chains
from pipeline.runtime.scoring.calibrated import calibration_id
from pipeline.runtime.searching.devices import divided, shared_devices
from pipeline.runtime.searching.problems import search_source
from pipeline.runtime.searching.worker import searching_worker
from pipeline.runtime.state import section_identity
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import Watcher
from pipeline.runtime.workload import Workload
from pipeline.scorers.registry import scorer_for
from pipeline.searches.registry import search_for
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import COMMAND, SEARCH, STAGED_INPUT


def search_run(
    config: SearchRunConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running = asyncio.run
) -> ChainRun:
    """Search all problems of `config.data` into the folder `config.run_dir`. A later start continues with the units that are
    not done, and with problems that are new.

    The totals are those of `searches.totals.search_totals`. Raises as `run_over_chains` does, and UsageError for settings that
    exclude each other.
    """
    storage = storage_at(config.run_dir)
    config = replace(config, run_dir=storage.run_dir)
    check_search(config)
    task = ChainRunTask(
        source=search_source(config),
        storage=storage,
        asked=lambda: identity(config),
        run=config.run,
        workload=lambda: searching(config),
        doing="searching",
        counted="problems",
        count=lambda totals: totals.chains,
    )
    return run_over_chains(task, hiring, watch, stop, run)


def check_search(config: SearchRunConfig) -> None:
    """Raise UsageError for a method, policy or scorer that is not installed, and for settings that exclude each other, or with
    which no chain would end."""
    search = search_for(config.search)
    if not search.scores and config.calibration is not None:
        raise UsageError(f"calibration has no effect: search={config.search.method} asks for no scores; leave it out")
    if search.scores:
        scorer_for(config.scorer)
    if search.scores and search.newest_only:  # It grows chains step by step.
        policy_for(config.policy).check_stepwise()
    try:
        config.policy.check_complete(config.sampling)
    except ValueError as error:
        raise UsageError(str(error)) from error


def searching(config: SearchRunConfig) -> Workload:
    """What the workers of `search` do. Raises UsageError for a method, policy or scorer that is not installed."""
    config = divided(config)
    policy, uses_scorer = policy_for(config.policy), search_for(config.search).scores

    def settings(parts: int) -> SearchRunConfig:
        spread = replace(config, policy=policy.with_tensor_parallel(parts))
        return replace(spread, scorer=scorer_for(config.scorer).with_tensor_parallel(parts)) if uses_scorer else spread

    return Workload(
        model=shared_devices(config),
        settings=settings,
        make=searching_worker,
        run_dir=config.run_dir,
        units_in_flight=config.run.units_in_flight,
        cluster=config.cluster,
    )


def identity(config: SearchRunConfig) -> dict[str, object]:
    """The identity of a search: what determines its samples, its scores and its choices, as dotted key -> plain value.

    Raises InputError for data that cannot be read, and UsageError for a missing model folder.
    """
    policy, search = policy_for(config.policy), search_for(config.search)
    fields: dict[str, object] = {
        COMMAND: SEARCH,
        "schema": SCHEMA_VERSION,
        "grader_version": grader_version(),
        "policy_fingerprint": policy.fingerprint(),
        **section_identity("policy", config.policy),
        **policy.identity(),
        **section_identity("sampling", config.sampling),
        "sampling.stop_at_answer": stops_at_answer(config),
        **section_identity("search", config.search),
        **section_identity("data", config.data),
        **section_identity("grader", config.grader),
        "calibration": calibration_id(config),
        "input": input_digest(config.data.path),
    }
    if search.scores:
        scorer = scorer_for(config.scorer)
        fields |= {
            "scorer_fingerprint": scorer.fingerprint(),
            **section_identity("scorer", config.scorer),
            **scorer.identity(),
        }
    return {**fields, STAGED_INPUT: content_id("problems", json.dumps(fields, sort_keys=True))}
