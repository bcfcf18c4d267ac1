"""Figures of labels made from recorded rollouts: against people, and against rollouts that were held out. Pure.

n graded rollouts that were held out, with success rate m, give an unbiased estimate of the squared error of a value:
(value - m)^2 - m (1 - m) / (n - 1).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pipeline.analysis.agree.human import ChainPair
from pipeline.analysis.agree.rulings import Ruling, f1
from pipeline.core.statistics import Interval, share
from tests.real.recorded import RecordedRollouts

Floats = npt.NDArray[np.float64]
RESAMPLES = 1_000
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstPeople:
    """Of one labelling, one row per chain: `first_errors` (C, 4), whether people find an error, it is found, people find none,
    none is found; `inner` (C, 4), the labelled inner steps that people call good, those of them with label 1, the ones that
    people call bad, and those of them with label 0. `judged`: inner steps that people judge. `scores`, `goods`, `of_chain`:
    value, people's word and chain of each inner step with a value."""

    first_errors: Floats
    inner: Floats
    judged: int
    scores: Floats
    goods: npt.NDArray[np.bool_]
    of_chain: npt.NDArray[np.int64]


def against_people(pairs: Sequence[ChainPair], ruling: Ruling) -> AgainstPeople:
    """Inner steps are all but the last, up to people's first error."""
    assert ruling.goods is not None
    first_errors, inner = np.zeros((len(pairs), 4)), np.zeros((len(pairs), 4))
    scores: list[float] = []
    goods: list[bool] = []
    of_chain: list[int] = []
    judged = 0
    for number, (pair, errors, said) in enumerate(zip(pairs, ruling.errors, ruling.goods, strict=True)):
        truth = pair.human.first_error
        hit = errors.get(truth, 0.0)
        first_errors[number] = [0.0, 0.0, 1.0, hit] if truth == -1 else [1.0, hit, 0.0, 0.0]
        steps = zip(pair.human.goods[:-1], said[:-1], pair.labelled.values[:-1], strict=True)
        for good, label, value in steps:
            if good is None:
                continue
            judged += 1
            if label is not None:
                inner[number] += [1.0, label, 0.0, 0.0] if good else [0.0, 0.0, 1.0, not label]
            if value is not None:
                scores.append(value)
                goods.append(good)
                of_chain.append(number)
    return AgainstPeople(
        first_errors=first_errors,
        inner=inner,
        judged=judged,
        scores=np.array(scores),
        goods=np.array(goods, dtype=np.bool_),
        of_chain=np.array(of_chain, dtype=np.int64),
    )


def f1_of(found: AgainstPeople, weights: Floats) -> float:
    return float(f1(weights @ found.first_errors))


def accuracy_of(found: AgainstPeople, weights: Floats) -> float:
    """The share of labelled inner steps whose label is right."""
    good, good_right, bad, bad_right = weights @ found.inner
    return float(share(np.asarray(good_right + bad_right), np.asarray(good + bad)))


def balanced_of(found: AgainstPeople, weights: Floats) -> float:
    """The mean of the shares of right labels among good and among bad steps: 1/2 for the same label everywhere."""
    good, good_right, bad, bad_right = weights @ found.inner
    return float(share(np.asarray(good_right), np.asarray(good)) + share(np.asarray(bad_right), np.asarray(bad))) / 2


def auc_of(found: AgainstPeople, weights: Floats) -> float:
    """The chance that a good inner step has a larger value than a bad one; ties count half."""
    of_step = weights[found.of_chain]
    good, bad = found.scores[found.goods], found.scores[~found.goods]
    above = (good[:, None] > bad) + 0.5 * (good[:, None] == bad)
    pairs = of_step[found.goods][:, None] * of_step[~found.goods]
    return float(share((above * pairs).sum(), pairs.sum()))


Figure = Callable[[AgainstPeople, Floats], float]
FIGURES: Mapping[str, Figure] = {
    "F1 of first errors": f1_of,
    "AUC of inner steps": auc_of,
    "inner labels right": accuracy_of,
    "balanced": balanced_of,
}


def estimate(figure: Callable[[Floats], float], count: int) -> Interval:
    """A figure of weighted chains, with the percentiles of a bootstrap over `count` chains."""
    random = np.random.default_rng(SEED)
    drawn = random.multinomial(count, np.full(count, 1 / count), size=RESAMPLES).astype(np.float64)
    resampled = np.array([figure(weights) for weights in drawn])
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return Interval(value=figure(np.ones(count)), low=float(low), high=float(high))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """(C,) each: the prefixes of a chain with held-out rollouts, the sum of their squared errors, and the sum of the variances
    that are claimed, NaN without a claim."""

    prefixes: Floats
    errors: Floats
    claims: Floats

    def rmse(self, weights: Floats) -> float:
        return float(np.sqrt(np.maximum(weights @ self.errors, 0.0) / (weights @ self.prefixes)))

    def error_over_claim(self, weights: Floats) -> float:
        return float((weights @ self.errors) / (weights @ self.claims))


def held_out(
    chains: Sequence[Sequence[tuple[str, float, float | None]]], others: Mapping[str, RecordedRollouts]
) -> HeldOut:
    """`chains`: for each, prefix, value and its sd. `others`: the rollouts that were held out."""
    sums = np.zeros((len(chains), 3))
    for row, chain in zip(sums, chains, strict=True):
        for prefix, value, sd in chain:
            mean, variance, count = _rate(others[prefix].correct)
            if count > 1:
                row += [1.0, (value - mean) ** 2 - variance, np.nan if sd is None else sd**2]
    prefixes, errors, claims = sums.T
    return HeldOut(prefixes=prefixes, errors=errors, claims=claims)


def total(parts: Sequence[HeldOut]) -> HeldOut:
    """The sums of several labellings of the same chains."""
    prefixes, errors, claims = np.sum([(part.prefixes, part.errors, part.claims) for part in parts], axis=0)
    return HeldOut(prefixes=prefixes, errors=errors, claims=claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePaths:
    """What values of a policy are like, without the noise of the rollouts. `rollouts`: graded ones of a prefix. `never`: share
    of prefixes without a success. `spread`: sd of the values. `correlation`: of a value and the next one. `change`: root mean
    square of the change at a step."""

    prefixes: int
    rollouts: float
    mean: float
    never: float
    spread: float
    correlation: float
    change: float


def value_paths(chains: Sequence[Sequence[str]], recorded: Mapping[str, RecordedRollouts]) -> ValuePaths:
    """`chains`: the prefix ids of each, that of the bare problem first, without the whole chain."""
    rates = [[_rate(recorded[prefix].correct) for prefix in chain] for chain in chains]
    every = np.array([rate for chain in rates for rate in chain])
    steps = np.array([(*a, *b) for chain in rates for a, b in pairwise(chain)])
    mean, noise = every[:, 0], every[:, 1]
    variance = mean.var() - noise.mean()
    before, after = steps[:, 0], steps[:, 3]
    spread_before, spread_after = before.var() - steps[:, 1].mean(), after.var() - steps[:, 4].mean()
    return ValuePaths(
        prefixes=len(every),
        rollouts=float(every[:, 2].mean()),
        mean=float(mean.mean()),
        never=float((mean == 0).mean()),
        spread=float(np.sqrt(variance)),
        correlation=float(np.cov(before, after)[0, 1] / np.sqrt(spread_before * spread_after)),
        change=float(np.sqrt(((after - before) ** 2 - steps[:, 1] - steps[:, 4]).mean())),
    )


def _rate(outcomes: Sequence[bool]) -> tuple[float, float, int]:
    """The success rate, an unbiased estimate of its variance, and the number of rollouts; NaN for fewer than two."""
    if (count := len(outcomes)) < 2:
        return np.nan, np.nan, count
    mean = float(np.mean(outcomes))
    return mean, mean * (1 - mean) / (count - 1), count
