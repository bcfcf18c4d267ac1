"""Statistics that several commands share: figures with intervals by the bootstrap, the jackknife and Wilson's score, and the
area under the ROC curve. Pure.

The steps of a chain and the prefixes of a problem are not independent; chains and problems are. Every interval therefore uses
chains or problems as its sampling units.

| interval of | how |
|---|---|
| `Resampling.estimate` | percentiles of the bootstrap over chains (Efron 1979), sampled as counts of distinct rows |
| `bootstrap` | percentiles of the bootstrap over problems, with the same resamples for all columns |
| `jackknife` | the jackknife over problems (Efron and Stein 1981) with Student's t |
| `auc` | chains as clusters (Obuchowski 1997) |
| `wilson` | Wilson's score (1927) |

The two bootstraps use random numbers in different orders. Stored results depend on the order, so both are kept.

Not covered: fewer than two units; and, for `bootstrap` and `jackknife`, units that are all equal, whose interval has no width.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

CONFIDENCE = 0.95
"""Coverage of the intervals of `bootstrap` and `jackknife`."""
RESAMPLES = 2_000
"""Number of resamples of `bootstrap`."""
_FEWEST_UNITS = 2
"""Least number of chains or problems for an interval: a single one has no variance."""
_MOST_DRAWS = 2**24
"""Counts that a bootstrap holds at a time: 128 MiB."""
_NO_WIDTH = 1e-12
"""Resamples that differ by less count as equal."""
_ROUNDING = 1e-9
"""A value at most this far below a bin's lower end is in the bin: 100 * 0.29 < 29 in floating point."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its interval. All fields are None if the figure is not defined, such as the accuracy over 0 chains.

    `low` and `high` are None for a single chain or problem. `Resampling` and `auc` also leave them out if all units are equal,
    for example if F1 is 0.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def has_value(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def interval(value: float, low: float, high: float) -> Interval:
    """A figure with an interval; without one if both ends are equal."""
    if high - low < _NO_WIDTH:
        return Interval(value=value)
    return Interval(value=value, low=low, high=high)


def within(figure: Interval, least: float, most: float) -> Interval:
    """The same figure with its interval cut to the range from `least` to `most` that the figure can have."""
    if figure.low is None or figure.high is None:
        return figure
    return replace(figure, low=max(figure.low, least), high=min(figure.high, most))


def share(part: Floats, whole: Floats) -> Floats:
    """part / whole; NaN where `whole` is 0."""
    shares: Floats = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) != 0)
    return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """A bootstrap of `replicates` resamples of all chains, with random `seed`. The interval has the coverage `confidence`."""

    replicates: int
    seed: int
    confidence: float

    def estimate(self, chains: Floats, statistic: Callable[[Floats], Floats]) -> Interval:
        """The figure `statistic` of the sum of all rows, with its percentile interval.

        `chains`: (chains, columns). `statistic` maps sums of rows, (..., columns), to (...), NaN where it is not defined. Equal
        rows are sampled together, so that the time grows with the number of distinct rows.
        """
        if not len(chains):
            return Interval()
        value = float(statistic(chains.sum(axis=0)))
        rows, counts = np.unique(chains, axis=0, return_counts=True)
        rng, at_a_time = np.random.default_rng(self.seed), max(1, _MOST_DRAWS // len(rows))
        # Drawn in parts, which are the same numbers as drawn at once.
        parts = [min(at_a_time, self.replicates - start) for start in range(0, self.replicates, at_a_time)]
        sums = [rng.multinomial(len(chains), counts / len(chains), size=size) @ rows for size in parts]
        replicates = statistic(np.concatenate(sums))
        return self._between(value, replicates[~np.isnan(replicates)])

    def _between(self, value: float, replicates: Floats) -> Interval:
        if np.isnan(value):
            return Interval()
        if not len(replicates):
            return Interval(value=value)
        low, high = _middle(replicates, self.confidence)
        return interval(value, float(low), float(high))


def bootstrap(values: Floats, seed: int) -> Sequence[Interval]:
    """The mean of each column of `values` (problems, columns), with the percentiles over resampled problems.

    All columns use the same resamples, so a column of differences is a paired comparison (Efron and Tibshirani 1993,
    chapter 13).
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
    """The two ends of the central interval of the replicates with coverage `confidence`, along the first axis."""
    tail = (1 - confidence) / 2
    return np.asarray(np.quantile(replicates, [tail, 1 - tail], axis=0))


def jackknife(sums: Floats, statistic: Callable[[Floats], Floats]) -> Interval:
    """The figure `statistic` of the sum over problems, with its jackknife interval.

    `sums`: (problems, columns). `statistic` maps such sums, (..., columns), to (...), NaN where it is not defined. One problem
    at a time is left out. If the figure is a ratio of sums, the variance is that of the usual cluster-robust formula (Cameron
    and Miller 2015). Student's t has (number of problems - 1) degrees of freedom.
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
    """Mean over rows, with the jackknife interval over their problems."""
    return jackknife(sums_of(problems, [numbers, np.ones(len(numbers))]), ratio)


def sums_of(problems: Ints, columns: Sequence[Floats | Ints]) -> Floats:
    """Sums of each column by problem: (problems with rows, columns). `problems`: (rows,) numbers of the problems from 0."""
    if not len(problems):
        return np.zeros((0, len(columns)))
    sums = np.column_stack([np.bincount(problems, weights=column) for column in columns])
    return np.asarray(sums[np.bincount(problems) > 0], dtype=np.float64)


def ratio(sums: Floats) -> Floats:
    """The ratio of two sums, the columns numerator and denominator (a count or a weight); NaN where the denominator is 0."""
    return share(sums[..., 0], sums[..., 1])


def auc(values: Floats, goods: NDArray[np.bool_], chains: Ints, confidence: float) -> Interval:
    """P(the value of a good step is above that of a bad step); ties count half.

    The interval treats the steps of a chain as one cluster (Obuchowski 1997). The figure is not defined without good or without
    bad steps. It has no interval for fewer than two chains, or if all chains are equal.
    """
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
    """P(a value of `good` is above a value of `bad`), the Mann-Whitney statistic; ties count half. Neither may be empty."""
    return float(_below_share(good, bad).mean())


def _mean_ranks(values: Floats) -> Floats:
    ordered = np.sort(values)
    return np.asarray(
        np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right"), dtype=np.float64
    )


def _below_share(values: Floats, others: Floats) -> Floats:
    """For each value the share of `others` below it; ties count half."""
    ordered = np.sort(others)
    under = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return np.asarray(under / (2 * len(others)), dtype=np.float64)


def rank_correlation(x: Floats, y: Floats) -> float | None:
    """Spearman's correlation (1904), ties with their mean rank. None for fewer than two values, or if one of the two does not
    vary."""
    if len(x) < _FEWEST_UNITS:
        return None
    ranks = [_mean_ranks(values) for values in (x, y)]
    x, y = (each - each.mean() for each in ranks)
    spread = math.sqrt(float((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) / spread if spread else None


def bins_of(values: Floats, n_bins: int) -> Ints:
    """The bin of each value from 0 to 1, of `n_bins` bins of equal width. Each has its lower end, the last one both."""
    return np.asarray(np.minimum((values * n_bins + _ROUNDING).astype(np.int64), n_bins - 1))


def wilson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Wilson's score interval (1927) for the success probability, from `successes` in `trials` > 0."""
    z = _z(confidence)
    rate = successes / trials
    scale = 1 + z * z / trials
    middle = (rate + z * z / (2 * trials)) / scale
    reach = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / scale
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
