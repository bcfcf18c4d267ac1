"""The `plan` command: what a run would label, and what that would cost."""

import asyncio
import math
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline.analysis.plan import assumed
from pipeline.analysis.plan.expected import (
    Amounts,
    Fleet,
    by_simulation,
    cost_of,
    extrapolated,
    settings_for,
    with_learning,
)
from pipeline.analysis.plan.extrapolated import product, spread
from pipeline.analysis.plan.ground import Ground, assumed_ground, measured_ground
from pipeline.analysis.plan.pilot import ROLLOUTS, Measured, measured
from pipeline.analysis.plan.survey import Survey, surveyed
from pipeline.config.choices import EstimatorName
from pipeline.config.label import EstimatorConfig, LabelConfig
from pipeline.core.errors import ClusterError, EngineDied, PolicyError, UsageError
from pipeline.core.forecast import Forecast, Limit, Pilot, Range
from pipeline.data.rows import input_digest
from pipeline.engines.fingerprint import policy_fingerprint
from pipeline.engines.unloaded import unloaded
from pipeline.estimators.kernel import PRIOR
from pipeline.runtime.driver import Hiring
from pipeline.runtime.hands import Watcher
from pipeline.runtime.spending import asked_beyond_identity
from pipeline.runtime.state import identity
from pipeline.runtime.stop import StopSignal
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import STAGED_INPUT

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
    ground = (
        assumed_ground(config, policy, survey, why_not)
        if pilot is None
        else measured_ground(config, policy, survey, pilot)
    )
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
        estimator = _alone(config.estimator, survey.planned.chains + survey.bare * config.sampling.solutions)
        scratch = replace(config, run_dir=storage.place, budget=None, estimator=estimator)
        return measured(scratch, [*survey.drawn, *survey.drawn_bare], storage, identity_of_run, hiring, watch, stop)


def _alone(estimator: EstimatorConfig, chains: int) -> EstimatorConfig:
    """The settings of a run's budget as they are for each of its chains."""
    if estimator.run_budget is None:
        return estimator
    share = max(1, estimator.run_budget // max(1, chains))
    return replace(estimator, run_budget=None, budget=min(share, estimator.budget or share))


def _amounts(config: LabelConfig, ground: Ground, pilot: Measured | None, rng: np.random.Generator) -> Amounts:
    """What the run itself takes."""
    estimator, rollouts = config.estimator, config.sampling.rollouts
    if pilot is None:
        return _assumed_amounts(config, ground, estimator, rng)
    amounts = extrapolated(ground.sampled, pilot.rollouts, pilot.tokens)
    if estimator.name is not EstimatorName.pooled:
        return amounts
    alone = _alone(estimator, ground.planned.chains)
    return with_learning(amounts, ground.sampled, pilot.trials, alone, rollouts, rng)


def _others(config: LabelConfig, ground: Ground, rng: np.random.Generator) -> list[tuple[EstimatorName, Amounts]]:
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
    config: LabelConfig, ground: Ground, estimator: EstimatorConfig, rng: np.random.Generator
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
