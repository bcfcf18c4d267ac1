"""A run of `judge`: which chains are judged, what its workers do, and which settings make it another judge."""

import asyncio
import json
from dataclasses import replace

from pipeline.config.judge import JudgeRunConfig
from pipeline.core.errors import UsageError
from pipeline.core.ids import content_id
from pipeline.core.progress import ChainRun
from pipeline.core.tables import CHAINS, CHAINS_WITH_ANSWERS, SCHEMA_VERSION
from pipeline.engines.base import OnDevices
from pipeline.engines.registry import policy_for
from pipeline.engines.settings import EmbeddedConfig
from pipeline.judges import PARSER_VERSION
from pipeline.judges.base import Judge
from pipeline.judges.registry import judge_for
from pipeline.runtime.chain_run.chains import ChainSource, labelled_chains, labelled_identity
from pipeline.runtime.chain_run.run import ChainRunTask, Hiring, Running, run_over_chains
from pipeline.runtime.judging.worker import judging_worker
from pipeline.runtime.state import section_identity
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import Watcher
from pipeline.runtime.workload import Workload
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import COMMAND, JUDGE, OTHER_RUN, STAGED_INPUT
from pipeline.storage.stored_critiques import judge_storage


def judge_run(
    config: JudgeRunConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, run: Running = asyncio.run
) -> ChainRun:
    """Judge all chains of the run in `config.run_dir`, into its folder `judges/NAME`. A later start continues with the units
    that are not done, and with chains that are new.

    The totals are those of `stored_critiques.critique_totals`. Raises as `run_over_chains` does, and UsageError for a run
    without labels, a judge without a name and one that writes and has no model.
    """
    config = replace(config, run_dir=storage_at(config.run_dir).run_dir)
    checked_judge(config)
    name = config.judge.name
    has = f"has the critiques of judge.name={name} with other settings: choose another judge.name"
    task = ChainRunTask(
        source=judge_source(config),
        storage=judge_storage(storage_at(config.run_dir), name),
        asked=lambda: identity(config),
        run=config.run,
        workload=lambda: judging(config),
        doing="judging",
        counted="critiques",
        count=lambda totals: totals.rollouts,
        names={OTHER_RUN: has},
    )
    return run_over_chains(task, hiring, watch, stop, run)


def judge_source(config: JudgeRunConfig) -> ChainSource:
    """The chains to judge. Known answers are among them only with `judge.show_answer`."""
    schema = CHAINS_WITH_ANSWERS.schema if config.judge.show_answer else CHAINS.schema
    return ChainSource(
        place=config.run_dir,
        tables=lambda _: labelled_chains(config.run_dir, schema, partial=config.partial),
        to_do="judge",
        done="judged",
        results="critiques",
        elsewhere="another judge.name",
    )


def checked_judge(config: JudgeRunConfig) -> Judge:
    """The judge of the settings. Raises UsageError for one that is not installed, has no name, or writes and has no model."""
    judge = judge_for(config.judge)
    if config.judge.name == "???":
        raise UsageError("judge.name is not set: give judge.name=NAME, your name for this judge")
    if judge.writes and config.policy.kind == EmbeddedConfig.usual():
        raise UsageError(
            f"judge={config.judge.kind} writes with a model: give policy.model=NAME_OR_FOLDER, or policy=openai with "
            "policy.model and policy.openai.urls"
        )
    if judge.writes:
        try:
            config.policy.check_complete(judge.sampling())
        except ValueError as error:
            raise UsageError(str(error)) from error
    return judge


class _NoModel(OnDevices):
    """What a judge needs of devices that writes with no model."""

    async def fetch(self) -> None:
        return


def judging(config: JudgeRunConfig) -> Workload:
    """What the workers of `judge` do. Raises UsageError for a judge or a policy that is not installed."""
    if not judge_for(config.judge).writes:
        model: OnDevices = _NoModel()
        return _workload(config, model)
    policy = policy_for(config.policy)
    return replace(
        _workload(config, policy),
        settings=lambda parts: replace(config, policy=policy.with_tensor_parallel(parts)),
    )


def _workload(config: JudgeRunConfig, model: OnDevices) -> Workload:
    return Workload(
        model=model,
        settings=lambda _: config,
        make=judging_worker,
        run_dir=config.run_dir,
        units_in_flight=config.run.units_in_flight,
        cluster=config.cluster,
    )


def identity(config: JudgeRunConfig) -> dict[str, object]:
    """The identity of a judge's run: what determines its critiques and their readings, as dotted key -> plain value.

    Raises UsageError and StoreError for chains that cannot be read, and UsageError for a missing model folder or template.
    """
    judge = judge_for(config.judge)
    fields: dict[str, object] = {
        COMMAND: JUDGE,
        "schema": SCHEMA_VERSION,
        "parser_version": PARSER_VERSION,
        **section_identity("judge", config.judge),
        **judge.identity(),
    }
    if judge.writes:
        policy = policy_for(config.policy)
        fields |= {
            "policy_fingerprint": policy.fingerprint(),
            **section_identity("policy", config.policy),
            **policy.identity(),
        }
    fields |= labelled_identity(config.run_dir, partial=config.partial)
    return {**fields, STAGED_INPUT: content_id("chains", json.dumps(fields, sort_keys=True))}
