"""The `plan` command: what a run would label, and what that would cost."""

import asyncio
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipeline.choices import EstimatorName
from pipeline.config import EstimatorConfig, LabelConfig
from pipeline.engine.base import PolicyFacts
from pipeline.engine.fingerprint import policy_fingerprint
from pipeline.engine.unloaded import unloaded
from pipeline.errors import ClusterError, EngineDied, PolicyError, UsageError
from pipeline.estimate.kernel import PRIOR
from pipeline.estimate.tree import Tree
from pipeline.forecast import Forecast, Limit, Pilot, Planned, Range
from pipeline.grading.choose import checker_for
from pipeline.plan import assumed
from pipeline.plan.counted import Counter, Draws
from pipeline.plan.expected import (
    Amounts,
    Fleet,
    Sampled,
    by_simulation,
    cost_of,
    extrapolated,
    settings_for,
    success_rate,
    with_learning,
)
from pipeline.plan.extrapolated import mean, product, spread
from pipeline.plan.pilot import ROLLOUTS, UNKNOWN_SD, Measured, measured
from pipeline.plan.simulated import Believed
from pipeline.plan.survey import Survey, surveyed
from pipeline.prompts import root_id
from pipeline.records import InputRow
from pipeline.rows import input_digest
from pipeline.run.crew import Watcher
from pipeline.run.driver import Hiring
from pipeline.run.judge import Judge
from pipeline.run.spending import asked_beyond_identity
from pipeline.run.state import identity
from pipeline.run.stop import StopSignal
from pipeline.store.local import LocalStorage
from pipeline.store.run_record import STAGED_INPUT

_NO_PILOT = "plan.pilot=false"


def plan(config: LabelConfig, hiring: Hiring, watch: Watcher, stop: StopSignal, *, made_at: str) -> Forecast:
    """Count the input, label a few problems in a scratch folder, and tell what the whole will cost.

    Where the policy cannot be loaded here, the cost rests on assumptions. Raises InputError, Interrupted, PolicyError where not
    even the tokenizer can be loaded, and UsageError where chains would have to be drawn by a policy that cannot be loaded.
    """
    identity_of_run = identity(config, input_digest(config.data.path), policy_fingerprint(config.policy))
    staged_id = str(identity_of_run[STAGED_INPUT])
    policy = asyncio.run(unloaded(config))
    survey = surveyed(config, policy, staged_id, ROLLOUTS, watch, stop)
    rng = np.random.default_rng(config.plan.seed)
    pilot: Measured | None = None
    why_not = _NO_PILOT
    if config.plan.pilot:
        try:
            pilot = _piloted(config, survey, identity_of_run, hiring, watch, stop)
        except (PolicyError, ClusterError, EngineDied) as error:
            why_not = str(error)
    if pilot is None and survey.bare:
        raise UsageError(
            f"{survey.bare} problems come without a chain: how long the policy's own are only a pilot can tell, and there is "
            f"none ({why_not})"
        )
    ground = _ground(config, policy, survey, pilot, why_not)
    amounts = _amounts(config, ground, pilot, rng)
    costs = {
        name: cost_of(name, each, _fleet(config, ground.pilot))
        for name, each in ((config.estimator.name, amounts), *_others(config, ground, rng))
    }
    cost = costs.pop(config.estimator.name)
    hours = cost.device_hours.high if cost.device_hours and config.plan.gpu_hour_price is not None else None
    return Forecast(
        made_at=made_at,
        identity=identity_of_run,
        settings=asked_beyond_identity(config),
        planned=ground.planned,
        pilot=ground.pilot,
        gpus=_gpus(config, ground.pilot),
        gpu_hour_price=config.plan.gpu_hour_price,
        cost=cost,
        others=tuple(costs.values()),
        limit=Limit(tokens=math.ceil(cost.tokens.high), device_hours=hours),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What expectations rest on."""

    planned: Planned
    sampled: Sampled
    pilot: Pilot


def _piloted(
    config: LabelConfig,
    survey: Survey,
    identity_of_run: Mapping[str, object],
    hiring: Hiring,
    watch: Watcher,
    stop: StopSignal,
) -> Measured:
    # Workers on other machines see the folder of plan.json, and not this one's scratch.
    shared = None if config.cluster.address is None else Path(config.plan.out).resolve().parent
    with tempfile.TemporaryDirectory(prefix=".stepvalue-pilot-", dir=shared) as folder:
        storage = LocalStorage(Path(folder))
        estimator = _alone(config.estimator, survey.planned.chains or survey.bare * config.sampling.solutions)
        scratch = replace(config, run_dir=storage.place, budget=None, estimator=estimator)
        return measured(scratch, survey.drawn, storage, identity_of_run, hiring, watch, stop)


def _alone(estimator: EstimatorConfig, chains: int) -> EstimatorConfig:
    """The settings of a run's budget as they are for each of its chains."""
    if estimator.run_budget is None:
        return estimator
    share = max(1, estimator.run_budget // max(1, chains))
    return replace(estimator, run_budget=None, budget=min(share, estimator.budget or share))


def _ground(config: LabelConfig, policy: PolicyFacts, survey: Survey, pilot: Measured | None, why_not: str) -> _Ground:
    drawn = [list(rows) for rows in survey.drawn]
    counter, trees = asyncio.run(_counted_again(config, policy, drawn, pilot))
    counted, planned = counter.counted, survey.planned
    if survey.bare:
        factor = planned.problems / max(1, counted.problems)
        planned = replace(
            planned,
            chains=round(counted.chains * factor),
            steps=round(counted.steps * factor),
            prefixes=round(counted.prefixes * factor),
            prompt_tokens=round(counted.prompt_tokens * factor),
            distinct_prompt_tokens=round(counter.distinct_prompt_tokens * factor),
            chains_drawn=True,
        )
        sizes = [1.0] * len(drawn)
    else:
        sizes = [0.0 if tree is None else float((~tree.closed).sum()) for tree in trees]
    known = [tree for tree in trees if tree is not None]
    if pilot is None:
        length, rate = assumed.completion_tokens(config), assumed.success_rate(config)
        context = planned.prompt_tokens / max(1, planned.prefixes) + length.expected / 2
        told = Pilot(
            measured=False,
            why_not=why_not,
            completion_tokens=length,
            success_rate=rate,
            tokens_per_second=assumed.tokens_per_second(config, context),
            workers=config.cluster.workers or 1,
            devices=config.cluster.gpus_per_worker or float(config.policy.tensor_parallel or 1),
        )
        believed = assumed.believed(known, length.expected, rate.expected)
        drawn_tokens = [0.0] * len(drawn)
    else:
        believed = _filled(pilot.believed, known)
        drawn_tokens = [float(all_ - own) for all_, own in zip(pilot.tokens, pilot.of_rollouts, strict=True)]
    sampled = Sampled(
        trees=trees,
        sizes=sizes,
        drawn_tokens=drawn_tokens,
        believed=believed,
        size=float(planned.problems if survey.bare else planned.prefixes),
        problems=planned.problems,
    )
    if pilot is not None:
        told = Pilot(
            measured=True,
            problems=len(drawn),
            chains=counted.chains,
            prefixes=counted.prefixes,
            rollouts=sum(pilot.rollouts),
            tokens=sum(pilot.tokens),
            seconds=pilot.summary.seconds_labelling,
            completion_tokens=mean(pilot.of_rollouts, pilot.rollouts),
            success_rate=success_rate(sampled),
            tokens_per_second=pilot.tokens_per_second,
            workers=pilot.offer.workers,
            devices=pilot.offer.devices,
            start_seconds=pilot.summary.seconds_starting,
        )
    return _Ground(planned=planned, sampled=sampled, pilot=told)


async def _counted_again(
    config: LabelConfig, policy: PolicyFacts, drawn: Sequence[list[InputRow]], pilot: Measured | None
) -> tuple[Counter, list[Tree | None]]:
    """The drawn problems alone, with the chains that the pilot's policy drew; and their trees, in their order."""
    with checker_for(config.grader) as checker:
        judge = Judge(checker, config.grader.processes)
        try:
            counter = Counter(config, policy, judge)
            draws = None if pilot is None else Draws(solutions=pilot.solutions)
            trees = await counter.count([row for rows in drawn for row in rows], draws)
        finally:
            judge.close()
    by_root = {tree.chains[0].prefix_ids[0]: tree for tree in trees}
    return counter, [by_root.get(root_id(rows[0].problem.problem_id)) for rows in drawn]


def _filled(believed: Mapping[str, Believed], trees: Sequence[Tree]) -> dict[str, Believed]:
    """With prefixes of which the pilot saw nothing, for they do not fit the context: they are as others are on average."""
    usual = Believed(
        mean=float(np.mean([each.mean for each in believed.values()] or [0.5])),
        sd=UNKNOWN_SD,
        tokens=float(np.mean([each.tokens for each in believed.values()] or [1.0])),
    )
    return {prefix: believed.get(prefix, usual) for tree in trees for prefix in tree.prefix_ids}


def _amounts(config: LabelConfig, ground: _Ground, pilot: Measured | None, rng: np.random.Generator) -> Amounts:
    """What the run itself takes."""
    estimator, rollouts = config.estimator, config.sampling.rollouts
    if pilot is None:
        return _assumed_amounts(config, ground, estimator, rng)
    amounts = extrapolated(ground.sampled, pilot.rollouts, pilot.tokens)
    if estimator.name is not EstimatorName.pooled:
        return amounts
    alone = _alone(estimator, ground.planned.chains)
    return with_learning(amounts, ground.sampled, pilot.trials, alone, rollouts, rng)


def _others(config: LabelConfig, ground: _Ground, rng: np.random.Generator) -> list[tuple[EstimatorName, Amounts]]:
    found = []
    for name in EstimatorName:
        if name is not config.estimator.name:
            wanted = settings_for(name, config.estimator)
            found.append(
                (
                    name,
                    by_simulation(ground.sampled, wanted, config.sampling.rollouts, PRIOR, rng)
                    if ground.pilot.measured
                    else _assumed_amounts(config, ground, wanted, rng),
                )
            )
    return found


def _assumed_amounts(
    config: LabelConfig, ground: _Ground, estimator: EstimatorConfig, rng: np.random.Generator
) -> Amounts:
    """What it takes where success is as likely as assumed, and between what it takes where it is rarer and likelier."""
    length, rate = ground.pilot.completion_tokens, ground.pilot.success_rate
    alone = _alone(estimator, ground.planned.chains)

    def rollouts(at: float) -> Range:
        believed = assumed.believed(ground.sampled.labelled, length.expected, at)
        sampled = replace(ground.sampled, believed=believed)
        return by_simulation(sampled, alone, config.sampling.rollouts, PRIOR, rng).rollouts

    expected = rollouts(rate.expected)
    for other in (rollouts(rate.low), rollouts(rate.high)):
        expected = spread(spread(expected, other.low), other.high)
    return Amounts(rollouts=expected, tokens=product(expected, length))


def _gpus(config: LabelConfig, pilot: Pilot) -> int:
    return config.plan.gpus or max(1, round(pilot.workers * pilot.devices))


def _fleet(config: LabelConfig, pilot: Pilot) -> Fleet:
    return Fleet(
        workers=max(1, int(_gpus(config, pilot) / pilot.devices)),
        devices=pilot.devices,
        start_seconds=pilot.start_seconds,
        tokens_per_second=pilot.tokens_per_second,
        price=config.plan.gpu_hour_price,
    )
