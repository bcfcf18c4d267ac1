"""The `plan` command: what a run would label, and what that would cost."""

import asyncio
import math
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.analysis.plan import assumed
from pipeline.analysis.plan.expected import (
    Amounts,
    Fleet,
    by_simulation,
    cost_of,
    extrapolated,
    with_learning,
)
from pipeline.analysis.plan.extrapolated import product, spread
from pipeline.analysis.plan.ground import Ground, assumed_ground, measured_ground
from pipeline.analysis.plan.pilot import ROLLOUTS, Measured, measured
from pipeline.analysis.plan.survey import Survey, surveyed
from pipeline.config.label import LabelConfig
from pipeline.core.errors import ClusterError, EngineDied, PolicyError, UsageError
from pipeline.core.forecast import Forecast, Limit, Pilot, Range
from pipeline.data.rows import input_digest
from pipeline.engines.registry import policy_for
from pipeline.estimators.base import Estimator
from pipeline.estimators.registry import ESTIMATORS, estimator_for
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
    identity_of_run = identity(config, input_digest(config.data.path), policy_for(config.policy).fingerprint())
    staged_id = str(identity_of_run[STAGED_INPUT])
    policy = asyncio.run(policy_for(config.policy).facts(config.sampling))
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
        chains = survey.planned.chains + survey.bare * config.sampling.solutions
        estimator = _alone(estimator_for(config.estimator), chains)
        scratch = replace(config, run_dir=storage.place, budget=None, estimator=estimator.settings)
        return measured(scratch, [*survey.drawn, *survey.drawn_bare], storage, identity_of_run, hiring, watch, stop)


def _alone(estimator: Estimator, chains: int) -> Estimator:
    """The estimator with the run's budget as it is for each of its chains."""
    budget = estimator.budget
    if budget is None or budget.run is None:
        return estimator
    share = max(1, budget.run // max(1, chains))
    return estimator.with_budget(min(share, budget.chain or share), budget.unit)


def _initial(estimator: Estimator) -> Any:
    """What an estimator knows before anything was seen."""
    return None if estimator.learner is None else estimator.learner.initial()


def _amounts(config: LabelConfig, ground: Ground, pilot: Measured | None, rng: np.random.Generator) -> Amounts:
    """What the run itself takes."""
    estimator, rollouts = estimator_for(config.estimator), config.sampling.rollouts
    if pilot is None:
        return _assumed_amounts(rollouts, ground, estimator, rng)
    amounts = extrapolated(ground.sampled, pilot.rollouts, pilot.tokens)
    if estimator.learner is None:
        return amounts
    alone = _alone(estimator, ground.planned.chains)
    return with_learning(amounts, ground.sampled, pilot.trials, alone, rollouts, rng)


def _others(config: LabelConfig, ground: Ground, rng: np.random.Generator) -> list[tuple[str, Amounts]]:
    """What our other estimators would take, with the settings as they were given, as far as they take them."""
    found, rollouts = [], config.sampling.rollouts
    for name in ESTIMATORS.ours:
        if name != config.estimator.name:
            wanted = estimator_for(ESTIMATORS.load(name).adapted(config.estimator))
            amounts = (
                by_simulation(ground.sampled, wanted, rollouts, _initial(wanted), rng)
                if ground.pilot.measured
                else _assumed_amounts(rollouts, ground, wanted, rng)
            )
            found.append((name, amounts))
    return found


def _assumed_amounts(rollouts: int, ground: Ground, estimator: Estimator, rng: np.random.Generator) -> Amounts:
    """What it takes where success is as likely as assumed, and between what it takes where it is rarer and likelier."""
    length, rate = ground.pilot.completion_tokens, ground.pilot.success_rate
    alone = _alone(estimator, ground.planned.chains)

    def taken(at: float) -> Range:
        believed = assumed.believed(ground.sampled.labelled, length.expected, at)
        sampled = replace(ground.sampled, believed=believed)
        return by_simulation(sampled, alone, rollouts, _initial(alone), rng).rollouts

    expected = taken(rate.expected)
    for other in (taken(rate.low), taken(rate.high)):
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
