"""What a run is expected to cost, from its pilot or from assumptions: pure but for the generator it is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np

from pipeline.analysis.plan.extrapolated import added, inverse, mean, product, scaled, total
from pipeline.analysis.plan.simulated import NOTHING, Believed, simulated
from pipeline.core.forecast import Cost, Range
from pipeline.core.progress import SECONDS_PER_HOUR
from pipeline.core.records import Trials
from pipeline.estimators.base import Estimator
from pipeline.estimators.tree import Tree

_REPLICATES = 8
"""Of a simulation: what is told is their mean."""
_START_OFF_BY = 2.0
"""A later start of a worker may take so many times as long as the pilot's, or as short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Drawn problems of one kind: their `sizes` in the unit in which all problems of the kind have `size`."""

    sizes: Sequence[float]
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """Problems of which it is known, or assumed, what rollouts do there, those of each stratum side by side.

    `trees` (None where nothing is left to label), `drawn_tokens` of chains that the policy drew for each. `believed`: by prefix
    id, of all prefixes of the trees.
    """

    strata: Sequence[Stratum]
    trees: Sequence[Tree | None]
    drawn_tokens: Sequence[float]
    believed: Mapping[str, Believed]

    @property
    def labelled(self) -> list[Tree]:
        return [tree for tree in self.trees if tree is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """`workers` of so many `devices` each, what a worker makes in a second, how long it takes to start, and the price of a
    device for an hour."""

    workers: int
    devices: float
    start_seconds: float
    tokens_per_second: Range | None
    price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    rollouts: Range
    tokens: Range


def by_simulation(
    sampled: Sampled, estimator: Estimator, rollouts: int, state: Any, rng: np.random.Generator
) -> Amounts:
    """What all problems cost where the sampled ones are as they are believed to be."""
    found = []
    for _ in range(_REPLICATES):
        of_trees = iter(
            simulated(sampled.labelled, sampled.believed, rollouts=rollouts, estimator=estimator, state=state, rng=rng)
        )
        spent = [NOTHING if tree is None else next(of_trees) for tree in sampled.trees]
        tokens = [each.tokens + drawn for each, drawn in zip(spent, sampled.drawn_tokens, strict=True)]
        found.append(extrapolated(sampled, [each.rollouts for each in spent], tokens))
    return Amounts(
        rollouts=_average([each.rollouts for each in found]), tokens=_average([each.tokens for each in found])
    )


def extrapolated(sampled: Sampled, rollouts: Sequence[float], tokens: Sequence[float]) -> Amounts:
    """What all problems cost where the sampled ones cost so much."""
    return Amounts(rollouts=_over_strata(sampled.strata, rollouts), tokens=_over_strata(sampled.strata, tokens))


def _over_strata(strata: Sequence[Stratum], costs: Sequence[float]) -> Range:
    rest = iter(costs)
    totals = [total(list(islice(rest, len(each.sizes))), each.sizes, size=each.size) for each in strata]
    return reduce(added, totals)


def with_learning(
    amounts: Amounts,
    sampled: Sampled,
    trials: Mapping[str, Trials],
    estimator: Estimator,
    rollouts: int,
    rng: np.random.Generator,
) -> Amounts:
    """Of an estimator that learns: a large run learns from its first units what a pilot does not live to use.

    How that changes the cost a pilot's chains say only roughly: so what is expected stays as it was measured, and the range
    holds what a simulation says of later chains too.
    """
    learner = estimator.learner
    if learner is None:
        return amounts
    later = learner.familiar(learner.learn(learner.initial(), sampled.labelled, trials))
    before = by_simulation(sampled, estimator, rollouts, learner.initial(), rng)
    after = by_simulation(sampled, estimator, rollouts, later, rng)

    def learning(known: Range, then: Range, now: Range) -> Range:
        factor = now.expected / then.expected if then.expected else 1.0
        return replace(known, low=known.low * min(1.0, factor), high=known.high * max(1.0, factor))

    return Amounts(
        rollouts=learning(amounts.rollouts, before.rollouts, after.rollouts),
        tokens=learning(amounts.tokens, before.tokens, after.tokens),
    )


def cost_of(estimator: str, amounts: Amounts, fleet: Fleet) -> Cost:
    """Amounts as hours and money."""
    speed = fleet.tokens_per_second
    wall = device_hours = money = None
    if speed is not None:
        working = scaled(product(amounts.tokens, inverse(speed)), 1 / fleet.workers)
        wall = scaled(added(working, _about(fleet.start_seconds, _START_OFF_BY)), 1 / SECONDS_PER_HOUR)
        device_hours = scaled(wall, fleet.workers * fleet.devices)
        money = None if fleet.price is None else scaled(device_hours, fleet.price)
    return Cost(
        estimator=estimator,
        rollouts=amounts.rollouts,
        tokens=amounts.tokens,
        device_hours=device_hours,
        wall_hours=wall,
        money=money,
    )


def success_rate(sampled: Sampled) -> Range:
    """The mean value of the sampled problems' prefixes."""
    sums = [sum(sampled.believed[prefix].mean for prefix in tree.prefix_ids) for tree in sampled.labelled]
    found = mean(sums, [len(tree.prefix_ids) for tree in sampled.labelled])
    return Range(low=found.low, expected=found.expected, high=min(1.0, found.high))


def _about(expected: float, factor: float) -> Range:
    return Range(low=expected / factor, expected=expected, high=expected * factor)


def _average(ranges: Sequence[Range]) -> Range:
    def one(part: str) -> float:
        return float(np.mean([getattr(each, part) for each in ranges]))

    return Range(low=one("low"), expected=one("expected"), high=one("high"))
