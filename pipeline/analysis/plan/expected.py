"""Estimates the cost of a run from its pilot or from assumptions. Pure except for the random generator that the caller passes.

**Extrapolation** from sampled problems to all problems. A ratio estimate (Cochran 1977, Sampling Techniques, ch. 6): the cost
of the sampled problems per unit of size, times the size of all problems. The range is a prediction interval: it covers the
random draw of problems and the chance in the run itself.

**Simulation** of the rollouts that an estimator would request, on chains whose values are believed to be known up to an sd. A
rollout succeeds with the probability of its prefix. A real rollout may also reproduce steps of the chain, from which an
estimator may learn a little more; the simulation leaves that out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np
from scipy.stats import t as student

from pipeline.core.forecast import Cost, Pilot, Range, StartCost
from pipeline.core.progress import SECONDS_PER_HOUR
from pipeline.core.records import Counts, Trials
from pipeline.estimators.base import Estimator
from pipeline.estimators.tree import NONE, Tree
from pipeline.runtime.problem_budget import usual_cap, within

_REPLICATES = 8
"""The number of simulations that are averaged."""
_START_OFF_BY = 2.0
"""A worker of the run may take longer or shorter to start than the pilot's worker by this factor."""
CONFIDENCE = 0.99
"""The nominal level of a 95 % range. The theory assumes normally distributed costs, but real costs are skewed, up to a chain's
budget. Ranges at 95 % from 16 problems contained 8 of 10 runs; ranges at 99 % contain 95 % or more."""
_LEAST = 2
"""The smallest number of problems that shows how much their costs differ."""
_MOST_SPREAD = 0.99
"""The largest sd of a success probability, relative to the sd at which a Beta distribution has all its mass at 0 and 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Drawn problems of one kind. `sizes`: one per drawn problem; `size`: the sum over all problems of the kind, same unit."""

    sizes: Sequence[float]
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BelievedValues:
    """Mean and sd of the value of a prefix, and the tokens of one of its rollouts."""

    mean: float
    sd: float
    tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCost:
    rollouts: int
    tokens: float


NOTHING = SimulatedCost(rollouts=0, tokens=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledProblems:
    """Problems with measured or assumed values, ordered by stratum.

    `trees`: one per problem, None if nothing is left to label. `drawn_tokens`: tokens of the chains that the policy drew for
    each problem. `believed`: by prefix id, for all prefixes of the trees.
    """

    strata: Sequence[Stratum]
    trees: Sequence[Tree | None]
    drawn_tokens: Sequence[float]
    believed: Mapping[str, BelievedValues]

    @property
    def labelled(self) -> list[Tree]:
        return [tree for tree in self.trees if tree is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    rollouts: Range
    tokens: Range


def amounts_by_simulation(
    sampled: SampledProblems, estimator: Estimator, rollouts: int, rng: np.random.Generator, learned: Any = None
) -> Amounts:
    """The cost of all problems, by simulation on the believed values of the sampled ones. Without `learned`, the estimator has
    learned nothing yet."""
    found = []
    state = estimator.learner.initial() if estimator.learner and learned is None else learned
    for _ in range(_REPLICATES):
        of_trees = iter(
            simulate(sampled.labelled, sampled.believed, rollouts=rollouts, estimator=estimator, state=state, rng=rng)
        )
        spent = [NOTHING if tree is None else next(of_trees) for tree in sampled.trees]
        tokens = [each.tokens + drawn for each, drawn in zip(spent, sampled.drawn_tokens, strict=True)]
        found.append(extrapolate(sampled, [each.rollouts for each in spent], tokens))
    return Amounts(
        rollouts=_average([each.rollouts for each in found]), tokens=_average([each.tokens for each in found])
    )


def extrapolate(sampled: SampledProblems, rollouts: Sequence[float], tokens: Sequence[float]) -> Amounts:
    """The cost of all problems, from the rollouts and tokens of the sampled ones."""
    return Amounts(rollouts=_over_strata(sampled.strata, rollouts), tokens=_over_strata(sampled.strata, tokens))


def amounts_with_learning(
    amounts: Amounts,
    sampled: SampledProblems,
    trials: Mapping[str, Trials],
    estimator: Estimator,
    rollouts: int,
    rng: np.random.Generator,
) -> Amounts:
    """Widens `amounts` for an estimator that learns. A large run learns from its first units; a pilot is too short for that.

    The pilot's chains show this change of cost only roughly. So the expected value stays as measured, and the range is widened
    to include the simulated cost of later chains.
    """
    learner = estimator.learner
    if learner is None:
        return amounts
    later = learner.familiar(learner.learn(learner.initial(), sampled.labelled, trials))
    before = amounts_by_simulation(sampled, estimator, rollouts, rng)
    after = amounts_by_simulation(sampled, estimator, rollouts, rng, later)

    def learning(known: Range, then: Range, now: Range) -> Range:
        factor = now.expected / then.expected if then.expected else 1.0
        return replace(known, low=known.low * min(1.0, factor), high=known.high * max(1.0, factor))

    return Amounts(
        rollouts=learning(amounts.rollouts, before.rollouts, after.rollouts),
        tokens=learning(amounts.tokens, before.tokens, after.tokens),
    )


def cost_of_start(pilot: Pilot, gpus: int, price: float | None) -> StartCost:
    """Workers that share a device load one after the other."""
    seconds = _about(pilot.start_seconds * max(1, round(1 / pilot.devices)), _START_OFF_BY)
    wall = scale(seconds, 1 / SECONDS_PER_HOUR)
    hours = scale(wall, _workers(pilot, gpus) * pilot.devices)
    return StartCost(device_hours=hours, wall_hours=wall, money=None if price is None else scale(hours, price))


def cost_of(estimator: str, amounts: Amounts, pilot: Pilot, gpus: int, price: float | None) -> Cost:
    """Convert amounts into hours on `gpus` devices, and money at the `price` of a device hour."""
    speed, workers = pilot.tokens_per_second, _workers(pilot, gpus)
    wall = device_hours = None
    if speed is not None:
        working = scale(product(amounts.tokens, inverse(speed)), 1 / workers / SECONDS_PER_HOUR)
        wall = add(working, cost_of_start(pilot, gpus, price).wall_hours)
        device_hours = scale(wall, workers * pilot.devices)
    return Cost(
        estimator=estimator,
        rollouts=amounts.rollouts,
        tokens=amounts.tokens,
        device_hours=device_hours,
        wall_hours=wall,
        money=None if device_hours is None or price is None else scale(device_hours, price),
    )


def _workers(pilot: Pilot, gpus: int) -> int:
    return max(1, int(gpus / pilot.devices))


def success_rate(sampled: SampledProblems) -> Range:
    """The mean value of the sampled problems' prefixes."""
    sums = [sum(sampled.believed[prefix].mean for prefix in tree.prefix_ids) for tree in sampled.labelled]
    found = mean(sums, [len(tree.prefix_ids) for tree in sampled.labelled])
    return Range(low=found.low, expected=found.expected, high=min(1.0, found.high))


def simulate(
    trees: Sequence[Tree],
    believed: Mapping[str, BelievedValues],
    *,
    rollouts: int,
    estimator: Estimator,
    state: Any,
    rng: np.random.Generator,
) -> list[SimulatedCost]:
    """The cost of each problem, in the order of `trees`. `believed` has all their prefixes, `rollouts` is the setting, and
    `state` is what the estimator has learned before."""
    values = {prefix: _drawn(believed[prefix], rng) for tree in trees for prefix in tree.prefix_ids}
    trials: dict[str, Trials] = {}
    active = list(trees)
    while active:
        asked = estimator.next_rollouts(active, trials, rollouts, state)
        if (budget := estimator.budget) is not None:
            asked = [
                within(tree, trials, more, usual_cap(tree, rollouts, budget))
                for tree, more in zip(active, asked, strict=True)
            ]
        for more in asked:
            for prefix, count in more.items():
                right = rng.random(count) < values[prefix]
                trials[prefix] = _extended(trials.get(prefix, NONE), right.tolist(), believed[prefix].tokens)
        active = [tree for tree, more in zip(active, asked, strict=True) if more]
    return [_spent(tree, trials, believed) for tree in trees]


def total(costs: Sequence[float], sizes: Sequence[float], *, size: float) -> Range:
    """The predicted cost of problems with total `size`, from sampled problems with `costs` and `sizes`.

    The result is 0 if no size is above 0. One sampled problem does not show the spread; the range is then from 0 to twice the
    expected cost.
    """
    return _predicted(costs, sizes, size=size, chance=1.0)


def mean(parts: Sequence[float], weights: Sequence[float]) -> Range:
    """The weighted mean over sampled problems, sum(parts) / sum(weights), and its range over random draws of problems."""
    return _predicted(parts, weights, size=1.0, chance=0.0)


def scale(known: Range, factor: float) -> Range:
    return Range(low=known.low * factor, expected=known.expected * factor, high=known.high * factor)


def product(first: Range, second: Range) -> Range:
    """The product of two independent amounts. On a logarithmic scale the squares of their half-widths add up."""
    expected = first.expected * second.expected
    if not expected:
        return Range(low=0.0, expected=0.0, high=0.0)
    parts = (first, second)
    sunk = [part.low / part.expected for part in parts]
    low = expected * math.exp(-_width(sunk)) if all(sunk) else 0.0
    high = expected * math.exp(_width([part.high / part.expected for part in parts]))
    return Range(low=low, expected=expected, high=high)


def inverse(known: Range) -> Range:
    """1 / amount, for an amount that is never 0."""
    return Range(low=1 / known.high, expected=1 / known.expected, high=1 / known.low)


def add(first: Range, second: Range) -> Range:
    """The sum of two dependent amounts: both may be at the same end of their ranges."""
    return Range(low=first.low + second.low, expected=first.expected + second.expected, high=first.high + second.high)


def widen(known: Range, other: float) -> Range:
    """The range, widened to include `other`."""
    return Range(low=min(known.low, other), expected=known.expected, high=max(known.high, other))


def _over_strata(strata: Sequence[Stratum], costs: Sequence[float]) -> Range:
    rest = iter(costs)
    totals = [total(list(islice(rest, len(each.sizes))), each.sizes, size=each.size) for each in strata]
    return reduce(add, totals)


def _about(expected: float, factor: float) -> Range:
    return Range(low=expected / factor, expected=expected, high=expected * factor)


def _average(ranges: Sequence[Range]) -> Range:
    def one(part: str) -> float:
        return float(np.mean([getattr(each, part) for each in ranges]))

    return Range(low=one("low"), expected=one("expected"), high=one("high"))


def _drawn(known: BelievedValues, rng: np.random.Generator) -> float:
    """A random value from the Beta distribution with the given mean and sd."""
    most = known.mean * (1 - known.mean)
    variance = min(known.sd, _MOST_SPREAD * most**0.5) ** 2
    if variance <= 0:
        return known.mean
    weight = most / variance - 1
    right, wrong = known.mean * weight, (1 - known.mean) * weight
    # A mean close to the smallest float makes a parameter underflow to 0.
    return float(rng.beta(right, wrong)) if right > 0 and wrong > 0 else known.mean


def _extended(before: Trials, right: Sequence[bool], tokens: float) -> Trials:
    outcomes = (*before.outcomes, *right)
    return replace(
        before,
        outcomes=outcomes,
        rounds=(*before.rounds, len(right)),
        reached=(None,) * len(outcomes),
        counts=Counts(correct=outcomes.count(True), graded=len(outcomes), tokens=round(tokens * len(outcomes))),
    )


def _spent(tree: Tree, trials: Mapping[str, Trials], believed: Mapping[str, BelievedValues]) -> SimulatedCost:
    issued = {prefix: len(trials.get(prefix, NONE).outcomes) for prefix in tree.prefix_ids}
    return SimulatedCost(
        rollouts=sum(issued.values()), tokens=sum(count * believed[prefix].tokens for prefix, count in issued.items())
    )


def _width(ratios: Sequence[float]) -> float:
    return math.sqrt(sum(math.log(ratio) ** 2 for ratio in ratios))


def _predicted(costs: Sequence[float], sizes: Sequence[float], *, size: float, chance: float) -> Range:
    """`chance`: 1 if other problems of that size are predicted, whose own costs vary too; 0 for the mean alone."""
    sampled = np.asarray(sizes, dtype=np.float64)
    if not sampled.sum() or not size:
        return Range(low=0.0, expected=0.0, high=0.0)
    ratio = float(np.sum(costs) / sampled.sum())
    expected = ratio * size
    n = len(sampled)
    if n < _LEAST:
        return Range(low=0.0, expected=expected, high=2 * expected)
    residual = np.asarray(costs) - ratio * sampled
    variance = float(residual @ residual) / (n - 1)
    as_many = size / float(sampled.mean())
    half = float(student.ppf((1 + CONFIDENCE) / 2, n - 1)) * math.sqrt(variance * (as_many**2 / n + chance * as_many))
    return Range(low=max(0.0, expected - half), expected=expected, high=expected + half)
