"""Statistics that more than one command tells: figures with intervals by the bootstrap, the jackknife, Wilson's score and the
area under the curve. Pure.

Rows that belong together (steps of a chain, prefixes of a problem) are not independent, chains and problems are: each interval
takes the latter for its units.

| interval of | how |
|---|---|
| `Resampling.estimate` | percentiles of the bootstrap over chains (Efron 1979), drawn as counts of distinct rows |
| `bootstrap` | percentiles of the bootstrap over problems, all columns drawn alike |
| `jackknife` | the jackknife over problems (Efron and Stein 1981) with Student's t |
| `auc` | chains as clusters (Obuchowski 1997) |
| `wilson` | Wilson's score (1927) |

The two bootstraps draw in different orders, and results that are written down depend on the order.

Not covered: fewer than two units, of which nothing is known; and, for `bootstrap` and `jackknife`, units that all say the
same, whose interval has no width.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

CONFIDENCE = 0.95
"""Of `bootstrap` and `jackknife`."""
RESAMPLES = 2_000
"""Of `bootstrap`."""
_FEWEST_UNITS = 2
"""A single chain or problem says nothing of how they differ."""
_NO_WIDTH = 1e-12
"""Resamples that differ by less say the same."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its interval; all None where it is not defined, as an accuracy of no chains.

    There is no interval where the units cannot tell one: of a single chain or problem; and, with `Resampling` and `auc`, where
    all say the same, as of an F1 of 0.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def has_value(self) -> bool:
        """Whether its interval leaves 0 out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def interval(value: float, low: float, high: float) -> Interval:
    """A figure between two ends; without an interval where they are one."""
    if high - low < _NO_WIDTH:
        return Interval(value=value)
    return Interval(value=value, low=low, high=high)


def within(figure: Interval, least: float, most: float) -> Interval:
    """The same with an interval that ends where the figure itself cannot be beyond."""
    if figure.low is None or figure.high is None:
        return figure
    return replace(figure, low=max(figure.low, least), high=min(figure.high, most))


def share(part: Floats, whole: Floats) -> Floats:
    """part / whole, NaN where the whole is 0."""
    shares: Floats = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) != 0)
    return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """`replicates` samples of all chains with replacement, drawn with `seed`; the interval holds the middle `confidence`."""

    replicates: int
    seed: int
    confidence: float

    def estimate(self, chains: Floats, statistic: Callable[[Floats], Floats]) -> Interval:
        """`chains`: a row per chain. `statistic` of sums of rows, (..., columns) -> (...), NaN where it is not defined.

        Chains with equal rows are drawn together, so that time grows with the number of distinct rows.
        """
        if not len(chains):
            return Interval()
        value = float(statistic(chains.sum(axis=0)))
        rows, counts = np.unique(chains, axis=0, return_counts=True)
        draws = np.random.default_rng(self.seed).multinomial(len(chains), counts / len(chains), size=self.replicates)
        replicates = statistic(draws @ rows)
        return self._between(value, replicates[~np.isnan(replicates)])

    def _between(self, value: float, replicates: Floats) -> Interval:
        if np.isnan(value):
            return Interval()
        if not len(replicates):
            return Interval(value=value)
        low, high = _middle(replicates, self.confidence)
        return interval(value, float(low), float(high))


def bootstrap(values: Floats, seed: int) -> Sequence[Interval]:
    """The mean of each column of `values` (problems, columns), with the percentiles of means of resampled problems.

    All columns are resampled alike, so a column of differences is a paired comparison (Efron and Tibshirani 1993, chapter 13).
    """
    problems = len(values)
    means = values.mean(axis=0)
    if problems < _FEWEST_UNITS:
        return [Interval(value=float(mean)) for mean in means]
    rng = np.random.default_rng(seed)
    resampled = np.array([values[rng.integers(problems, size=problems)].mean(axis=0) for _ in range(RESAMPLES)])
    lows, highs = _middle(resampled, CONFIDENCE)
    return [
        Interval(value=float(mean), low=float(low), high=float(high))
        for mean, low, high in zip(means, lows, highs, strict=True)
    ]


def _middle(replicates: Floats, confidence: float) -> Floats:
    """The two ends of the middle `confidence` of replicates, along the first axis."""
    tail = (1 - confidence) / 2
    return np.asarray(np.quantile(replicates, [tail, 1 - tail], axis=0))


def jackknife(sums: Floats, statistic: Callable[[Floats], Floats]) -> Interval:
    """`sums`: (problems, columns). `statistic` of such sums, (..., columns) -> (...), NaN where it is not defined.

    One problem at a time is left out; the variance is that of the usual cluster-robust formula (Cameron and Miller 2015) where
    the figure is a ratio of sums. Student's t has a degree of freedom less than there are problems.
    """
    if not len(sums):
        return Interval()
    total = sums.sum(axis=0)
    value = float(statistic(total))
    if math.isnan(value):
        return Interval()
    n_problems = len(sums)
    if n_problems < _FEWEST_UNITS:
        return Interval(value=value)
    without = statistic(total - sums)
    if np.isnan(without).any():
        return Interval(value=value)
    variance = (n_problems - 1) / n_problems * float(((without - without.mean()) ** 2).sum())
    reach = float(stdtrit(n_problems - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return Interval(value=value, low=value - reach, high=value + reach)


def mean(problems: Ints, numbers: Floats) -> Interval:
    """Mean over rows, jackknifed over their problems."""
    return jackknife(sums_of(problems, [numbers, np.ones(len(numbers))]), ratio)


def sums_of(problems: Ints, columns: Sequence[Floats | Ints]) -> Floats:
    """Sums of each column by problem, (problems that have any, columns). `problems`: (rows,) numbers from 0."""
    if not len(problems):
        return np.zeros((0, len(columns)))
    sums = np.column_stack([np.bincount(problems, weights=column) for column in columns])
    return np.asarray(sums[np.bincount(problems) > 0], dtype=np.float64)


def ratio(sums: Floats) -> Floats:
    """Of sums of a numerator and of a denominator, a count or a weight; NaN where the latter is 0."""
    return share(sums[..., 0], sums[..., 1])


def auc(values: Floats, goods: NDArray[np.bool_], chains: Ints, confidence: float) -> Interval:
    """P(a good step's value is above a bad one's), equal values counting half; the interval takes steps of a chain as one
    cluster (Obuchowski 1997). Undefined without good or without bad steps; no interval of fewer than two chains, or where they
    all say the same."""
    good, bad = values[goods], values[~goods]
    if not len(good) or not len(bad):
        return Interval()
    above = _below_share(good, bad)
    below = 1 - _below_share(bad, good)
    value = float(above.mean())
    pull = np.zeros(int(chains.max()) + 1)
    np.add.at(pull, chains[goods], (above - value) / len(good))
    np.add.at(pull, chains[~goods], (below - value) / len(bad))
    n_chains = len(np.unique(chains))
    if n_chains < _FEWEST_UNITS:
        return Interval(value=value)
    reach = _z(confidence) * math.sqrt(float((pull**2).sum()) * n_chains / (n_chains - 1))
    return interval(value, max(0.0, value - reach), min(1.0, value + reach))


def separation(good: Floats, bad: Floats) -> float:
    """P(one of `good` is above one of `bad`), equal values counting half: the Mann-Whitney statistic. Neither may be empty."""
    return float(_below_share(good, bad).mean())


def _below_share(values: Floats, others: Floats) -> Floats:
    """For each value the share of `others` below it, equal ones counting half."""
    ordered = np.sort(others)
    under = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return np.asarray(under / (2 * len(others)), dtype=np.float64)


def wilson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Wilson's score interval (1927) for the probability behind `successes` of `trials` > 0."""
    z = _z(confidence)
    rate = successes / trials
    scale = 1 + z * z / trials
    middle = (rate + z * z / (2 * trials)) / scale
    reach = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / scale
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
