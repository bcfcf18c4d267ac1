"""The `plan` command: counts what a run would label and estimates its cost.

The estimates rest on randomly drawn problems with the measurements of a pilot, or with assumptions instead (`CostBasis`).
"""

import asyncio
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.analysis.plan import expected
from pipeline.analysis.plan import pilot as assumed
from pipeline.analysis.plan.expected import Amounts, BelievedValues, SampledProblems, Stratum
from pipeline.analysis.plan.pilot import ROLLOUTS, UNKNOWN_SD, PilotResult, run_pilot
from pipeline.analysis.plan.survey import (
    CHARACTERS_PER_TOKEN,
    OF_CHAINS,
    CharacterTokenizer,
    Counter,
    Survey,
    survey_input,
)
from pipeline.config.label import LabelConfig
from pipeline.core.errors import ClusterError, EngineDied, PolicyError, UsageError
from pipeline.core.forecast import Forecast, Limit, Pilot, PlannedWork, Range
from pipeline.core.records import InputRow
from pipeline.data.prompts import root_id
from pipeline.engines.base import PolicyFacts, Unloaded
from pipeline.engines.registry import policy_for
from pipeline.estimators.base import Estimator
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.estimators.tree import Tree
from pipeline.graders.registry import checker_for
from pipeline.runtime.async_grader import AsyncGrader
from pipeline.runtime.chain_run.run import Hiring
from pipeline.runtime.chain_run.task import RunPlace
from pipeline.runtime.driver import place_of
from pipeline.runtime.planner import Draws
from pipeline.runtime.run_budget import requested_beyond_identity
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import Watcher
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.temporary import temporary_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBasis:
    """What the cost estimates rest on; `pilot` also holds assumptions."""

    planned: PlannedWork
    sampled: SampledProblems
    pilot: Pilot


def plan(config: LabelConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, *, made_at: str) -> Forecast:
    """Count the input, label a few problems in a scratch folder, and estimate the cost of the whole run.

    If the policy cannot be loaded here, the cost rests on assumptions, and without its tokenizer tokens are estimated from
    characters. Raises InputError, Interrupted, and UsageError if there is no pilot but the policy would have to draw chains.
    """
    place = place_of(config)
    identity_of_run = place.identity
    staged_id = str(identity_of_run[STAGED_INPUT])
    context = config.policy.max_model_len
    policy: PolicyFacts = Unloaded(tokenizer=CharacterTokenizer(), max_model_len=context or sys.maxsize)
    why_not = estimated = ""
    try:
        policy = asyncio.run(policy_for(config.policy).facts(config.sampling))
        context = policy.max_model_len
    except PolicyError as error:
        why_not = str(error)
        estimated = f"tokens are estimated from characters, {CHARACTERS_PER_TOKEN} for a token: {why_not}"
    survey = survey_input(config, policy, staged_id, ROLLOUTS, watch, stop)
    too_long = None if context is None else survey.planned.too_long
    survey = replace(survey, planned=replace(survey.planned, estimated=estimated, context=context, too_long=too_long))
    rng = np.random.default_rng(config.plan.seed)
    pilot: PilotResult | None = None
    if not config.plan.pilot:
        why_not = "plan.pilot=false"
    elif not why_not:
        try:
            pilot = _piloted(config, survey, identity_of_run, hiring, watch, stop)
        except (PolicyError, ClusterError, EngineDied) as error:
            why_not = str(error)
    if pilot is None and survey.bare:
        raise UsageError(
            f"{survey.bare} problems come without a chain: only a pilot can measure the length of the policy's chains, and "
            f"there is no pilot ({why_not})"
        )
    ground = (
        assumed_basis(config, policy, survey, why_not, place)
        if pilot is None
        else measured_basis(config, policy, survey, pilot)
    )
    gpus = config.plan.gpus or max(1, round(ground.pilot.workers * ground.pilot.devices))
    fleet = (ground.pilot, gpus, config.plan.gpu_hour_price)
    costs = {name: expected.cost_of(name, each, *fleet) for name, each in _amounts(config, ground, pilot, rng)}
    cost = costs.pop(config.estimator.name)
    starting = expected.cost_of_start(*fleet)
    hours = cost.device_hours.high - starting.device_hours.high if cost.device_hours and cost.money else None
    return Forecast(
        made_at=made_at,
        identity=identity_of_run,
        settings=requested_beyond_identity(config),
        planned=ground.planned,
        pilot=ground.pilot,
        gpus=gpus,
        gpu_hour_price=config.plan.gpu_hour_price,
        starting=starting,
        cost=cost,
        others=tuple(costs.values()),
        limit=Limit(tokens=max(1, math.ceil(cost.tokens.high)), device_hours=hours or None),
    )


def proposed_setting(config: LabelConfig) -> str:
    """A sentence about a setting that would use the GPUs better. Empty if there is none."""
    share = policy_for(config.policy).better_gpus_per_worker()
    if share is None or config.cluster.gpus_per_worker is not None:
        return ""
    return (
        f"cluster.gpus_per_worker={share:g} runs {round(1 / share)} engines on each GPU: with a model of this size, "
        "the scheduling of one engine on the CPU limits its speed, not the GPU"
    )


def measured_basis(config: LabelConfig, policy: PolicyFacts, survey: Survey, pilot: PilotResult) -> CostBasis:
    """The basis measured by a pilot: first the problems with chains, then the bare ones."""
    given, trees = asyncio.run(_drawn_trees(config, policy, survey.drawn, pilot.solutions))
    drawn, trees_of_bare = asyncio.run(_drawn_trees(config, policy, survey.drawn_bare, pilot.solutions))
    trees += trees_of_bare
    of_rollouts = zip(pilot.tokens, pilot.tokens_of_rollouts, strict=True)
    sampled = SampledProblems(
        strata=_strata(survey, trees),
        trees=trees,
        drawn_tokens=[float(tokens - own) for tokens, own in of_rollouts],
        believed=_completed(pilot.believed, trees),
    )
    summary = Pilot(
        measured=True,
        problems=len(trees),
        chains=(given.counted + drawn.counted)["chains"],
        prefixes=(given.counted + drawn.counted)["prefixes"],
        rollouts=sum(pilot.rollouts),
        tokens=sum(pilot.tokens),
        seconds=pilot.summary.seconds_working,
        completion_tokens=expected.mean(pilot.tokens_of_rollouts, pilot.rollouts),
        success_rate=expected.success_rate(sampled),
        tokens_per_second=pilot.tokens_per_second,
        workers=pilot.offer.workers,
        devices=pilot.offer.devices,
        start_seconds=pilot.summary.seconds_starting,
    )
    planned = _with_drawn_chains(survey, drawn) if survey.bare else survey.planned
    return CostBasis(planned=planned, sampled=sampled, pilot=summary)


def assumed_basis(config: LabelConfig, policy: PolicyFacts, survey: Survey, why_not: str, place: RunPlace) -> CostBasis:
    """The basis assumed from the settings, without a pilot. All problems have chains."""
    _, trees = asyncio.run(_drawn_trees(config, policy, survey.drawn, None))
    length, rate = assumed.completion_tokens(config), assumed.success_rate(config)
    planned = survey.planned
    context = planned.prompt_tokens / max(1, planned.prefixes) + length.expected / 2
    sampled = SampledProblems(
        strata=_strata(survey, trees),
        trees=trees,
        drawn_tokens=[0.0] * len(trees),
        believed=assumed.believed_values([tree for tree in trees if tree is not None], length.expected, rate.expected),
    )
    devices = config.cluster.gpus_per_worker or float(policy_for(config.policy).given_tensor_parallel() or 1)
    seconds, source = assumed.start_seconds(config, place, devices)
    pilot = Pilot(
        measured=False,
        why_not=why_not,
        completion_tokens=length,
        success_rate=rate,
        tokens_per_second=assumed.tokens_per_second(config, context),
        workers=config.cluster.workers or 1,
        devices=devices,
        start_seconds=seconds,
        started_as=source,
    )
    return CostBasis(planned=planned, sampled=sampled, pilot=pilot)


def _piloted(
    config: LabelConfig,
    survey: Survey,
    identity_of_run: Mapping[str, object],
    hiring: Hiring,
    watch: Watcher,
    stop: StopSignal,
) -> PilotResult:
    # Workers on other machines see the folder of plan.json but not the temporary folder of this machine.
    place: AbstractContextManager[Path | str] = temporary_folder("stepvalue-pilot-")
    if config.cluster.address is not None:
        place = tempfile.TemporaryDirectory(prefix=".stepvalue-pilot-", dir=Path(config.plan.out).resolve().parent)  # noqa: TID251
    with place as folder:
        storage = LocalStorage(Path(folder) / "run")
        chains = survey.planned.chains + survey.bare * config.sampling.solutions
        estimator = _alone(estimator_for(config.estimator), chains)
        scratch = replace(config, run_dir=storage.run_dir, budget=None, estimator=estimator.settings)
        return run_pilot(scratch, [*survey.drawn, *survey.drawn_bare], storage, identity_of_run, hiring, watch, stop)


def _alone(estimator: Estimator, chains: int) -> Estimator:
    """The estimator with its run budget turned into a budget per chain."""
    budget = estimator.budget
    if budget is None or budget.run is None:
        return estimator
    share = max(1, budget.run // max(1, chains))
    return estimator.with_budget(min(share, budget.chain or share), budget.unit)


def _amounts(
    config: LabelConfig, ground: CostBasis, pilot: PilotResult | None, rng: np.random.Generator
) -> Iterator[tuple[str, Amounts]]:
    """The cost with the estimator of the settings, then with each of our others. Each of these gets those of the given settings
    that it has."""
    own, rollouts = config.estimator.name, config.sampling.rollouts
    for name in dict.fromkeys([own, *ESTIMATORS.ours]):
        estimator = estimator_for(config.estimator if name == own else ESTIMATORS.load(name).adapt(config.estimator))
        alone = _alone(estimator, ground.planned.chains)
        if pilot is None:
            amounts = _assumed_amounts(rollouts, ground, alone, rng)
        elif name == own:
            amounts = expected.extrapolate(ground.sampled, pilot.rollouts, pilot.tokens)
            amounts = expected.amounts_with_learning(amounts, ground.sampled, pilot.trials, alone, rollouts, rng)
        else:
            amounts = expected.amounts_by_simulation(ground.sampled, estimator, rollouts, rng)
        yield name, amounts


def _assumed_amounts(rollouts: int, ground: CostBasis, estimator: Estimator, rng: np.random.Generator) -> Amounts:
    """The simulated cost at the assumed success rate. The range includes the cost at the low and at the high rate."""
    length, rate = ground.pilot.completion_tokens, ground.pilot.success_rate

    def rollouts_at(at: float) -> Range:
        believed = assumed.believed_values(ground.sampled.labelled, length.expected, at)
        sampled = replace(ground.sampled, believed=believed)
        return expected.amounts_by_simulation(sampled, estimator, rollouts, rng).rollouts

    found = rollouts_at(rate.expected)
    for other in (rollouts_at(rate.low), rollouts_at(rate.high)):
        found = expected.widen(expected.widen(found, other.low), other.high)
    return Amounts(rollouts=found, tokens=expected.product(found, length))


def _strata(survey: Survey, trees: Sequence[Tree | None]) -> list[Stratum]:
    """One stratum of problems with chains and one of bare problems. Cost grows with the number of open prefixes, so that is the
    size of a problem with chains. A bare problem has size 1, because the policy has not drawn its chains yet."""
    given = trees[: len(survey.drawn)]
    sizes = [0.0 if tree is None else float((~tree.closed).sum()) for tree in given]
    return [
        Stratum(sizes=sizes, size=float(survey.planned.prefixes)),
        Stratum(sizes=[1.0] * len(survey.drawn_bare), size=float(survey.bare)),
    ]


def _with_drawn_chains(survey: Survey, drawn: Counter) -> PlannedWork:
    """The counted work, plus the counts of the drawn bare problems scaled up to all bare problems."""
    planned, factor = survey.planned, survey.bare / max(1, len(survey.drawn_bare))
    more: dict[str, Any] = {name: getattr(planned, name) + round(drawn.counted[name] * factor) for name in OF_CHAINS}
    return replace(planned, **more, chains_drawn=True)


async def _drawn_trees(
    config: LabelConfig, policy: PolicyFacts, drawn: Sequence[Sequence[InputRow]], draws: Draws | None
) -> tuple[Counter, list[Tree | None]]:
    """The counts of the drawn problems alone, and the tree of each problem; None for a problem with nothing left to label."""
    with checker_for(config.grader) as checker:
        judge = AsyncGrader(checker, config.grader.processes)
        try:
            counter = Counter(config, policy, judge)
            trees = await counter.count([row for rows in drawn for row in rows], draws)
        finally:
            judge.close()
    by_root = {tree.chains[0].prefix_ids[0]: tree for tree in trees}
    return counter, [by_root.get(root_id(rows[0].problem.problem_id)) for rows in drawn]


def _completed(believed: Mapping[str, BelievedValues], trees: Sequence[Tree | None]) -> dict[str, BelievedValues]:
    """Adds the prefixes that the pilot did not measure; they get the average of the others."""
    usual = BelievedValues(
        mean=float(np.mean([each.mean for each in believed.values()] or [0.5])),
        sd=UNKNOWN_SD,
        tokens=float(np.mean([each.tokens for each in believed.values()] or [1.0])),
    )
    known = (tree for tree in trees if tree is not None)
    return {prefix: believed.get(prefix, usual) for tree in known for prefix in tree.prefix_ids}
