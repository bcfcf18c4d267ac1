"""Figures of methods and of groups, with their intervals: what `agree`, `select`, `report` of two runs or of a search, and
`calibrate` compute alike. Pure.

The steps of a chain and the prefixes of a problem are not independent; chains and problems are. Every interval therefore uses
chains or problems, called units here, as its sampling units. All intervals have the coverage CONFIDENCE.

| figure | its interval |
|---|---|
| a statistic of sums over units, such as F1: `bootstrap` | percentiles over resampled units (Efron 1979) |
| means of several columns: `bootstrap_means` | the same, with the same resamples for all columns |
| a ratio of sums or a mean over rows: `jackknife`, `mean` | the jackknife (Efron and Stein 1981) with Student's t |
| a mean or share over problems: `mean_over`, `share_over` | `bootstrap`; of a share of 0 or 1 Wilson's |
| the area under the ROC curve: `auc` | units as clusters (Obuchowski 1997) |
| a share of independent trials: `wilson` | Wilson's score (1927) |

The two bootstraps use random numbers in different orders. Stored results depend on the order, so both are kept.

Not covered: fewer than two units; and, for `bootstrap_means` and `jackknife`, units that are all equal, whose interval has no
width.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit
from scipy.stats import binomtest, rankdata

from pipeline.core.statistics import Floats, Interval, Ints, share

CONFIDENCE = 0.95
"""Coverage of all intervals."""
RESAMPLES = 2_000
"""Number of resamples of a bootstrap where no setting names one."""
_FEWEST_UNITS = 2
"""Least number of chains or problems for an interval: a single one has no variance."""
_MOST_NUMBERS = 2**22
"""Numbers that a bootstrap holds at a time: 32 MiB."""
_NO_WIDTH = 1e-12
"""Resamples that differ by less count as equal."""
_ROUNDING = 1e-9
"""A value at most this far below a bin's lower end is in the bin: 100 * 0.29 < 29 in floating point."""
_TAIL = (1 - CONFIDENCE) / 2

Flags = NDArray[np.bool_]
Statistic = Callable[[Floats], Floats]
"""Maps sums over units, (..., columns), to (...), NaN where the figure is not defined."""


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


def bootstrap(units: Floats, statistic: Statistic, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The figure `statistic` of the sum of all units, with its percentile interval.

    `units`: (units, columns). Equal rows are sampled together, so that the time grows with the number of distinct rows.
    """
    if not len(units):
        return Interval()
    rows, counts = np.unique(units, axis=0, return_counts=True)
    sums = [drawn @ rows for drawn in draws(counts, len(rows), seed, resamples)]
    return between(float(statistic(units.sum(axis=0))), statistic(np.concatenate(sums)))


def draws(counts: Ints, width: int, seed: int, resamples: int = RESAMPLES) -> Iterator[Ints]:
    """Resamples of as many units as there are, in parts of (resamples, kinds): how often each kind of unit is drawn. `counts`
    (kinds,): how often it is there. `width`: the numbers that the caller makes of one resample. The parts are the same numbers
    as all drawn at once."""
    rng, n = np.random.default_rng(seed), int(counts.sum())
    at_a_time = max(1, _MOST_NUMBERS // width)
    for start in range(0, resamples, at_a_time):
        yield rng.multinomial(n, counts / n, size=min(at_a_time, resamples - start))


def between(value: float, replicates: Floats) -> Interval:
    """The figure with the percentiles of its replicates (resamples,); those that are not defined do not count."""
    if math.isnan(value):
        return Interval()
    defined = replicates[~np.isnan(replicates)]
    return interval(value, *map(float, _percentiles(defined))) if len(defined) else Interval(value=value)


def _percentiles(replicates: Floats) -> Floats:
    return np.asarray(np.quantile(replicates, [_TAIL, 1 - _TAIL], axis=0))


def bootstrap_means(values: Floats, seed: int) -> Sequence[Interval]:
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
    ends = np.array([means, *_percentiles(resampled)]).T.tolist()
    return [Interval(value=mean, low=low, high=high) for mean, low, high in ends]


def jackknife(sums: Floats, statistic: Statistic) -> Interval:
    """The figure `statistic` of the sum over problems, with its jackknife interval.

    `sums`: (problems, columns). One problem at a time is left out. If the figure is a ratio of sums, the variance is that of
    the usual cluster-robust formula (Cameron and Miller 2015). Student's t has (number of problems - 1) degrees of freedom.
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
    reach = float(stdtrit(n_problems - 1, 1 - _TAIL)) * math.sqrt(variance)
    return Interval(value=value, low=value - reach, high=value + reach)


def mean(problems: Ints, numbers: Floats) -> Interval:
    """Mean over rows, with the jackknife interval over their problems. Both: (rows,)."""
    return jackknife(sums_of(problems, [numbers, np.ones(len(numbers))]), ratio)


def sums_of(units: Ints, columns: Sequence[Floats | Ints | Flags]) -> Floats:
    """Sums of each column by unit: (units with rows, columns). `units`: (rows,) numbers of the units from 0."""
    if not len(units):
        return np.zeros((0, len(columns)))
    sums = np.column_stack([np.bincount(units, weights=column) for column in columns])
    return np.asarray(sums[np.bincount(units) > 0], dtype=np.float64)


def ratio(sums: Floats) -> Floats:
    """The ratio of two sums, the columns numerator and denominator (a count or a weight); NaN where the denominator is 0."""
    return share(sums[..., 0], sums[..., 1])


def problem_means(problem_ids: Sequence[str], values: Floats) -> Floats:
    """The means of the rows of `values` (rows, columns) that are of one problem: (problems, columns), sorted by the problems'
    ids. NaN does not count; a mean of nothing is NaN."""
    place = np.unique(np.asarray(problem_ids, dtype=np.str_), return_inverse=True)[1]
    defined = ~np.isnan(values)
    sums = sums_of(place, [*np.where(defined, values, 0.0).T, *defined.T])
    return share(*np.hsplit(sums, 2))


def mean_over(values: Floats, seed: int) -> Interval:
    """The mean of `values` (problems,), those that are not NaN, with its bootstrap interval."""
    defined = values[~np.isnan(values)]
    return bootstrap(np.column_stack([defined, np.ones(len(defined))]), ratio, seed=seed)


def share_over(values: Floats, seed: int) -> Interval:
    """`mean_over` of values that are shares; see `with_ends`."""
    return with_ends(mean_over(values, seed), int((~np.isnan(values)).sum()))


def with_ends(figure: Interval, problems: int) -> Interval:
    """A share of 0 or 1 with Wilson's interval (1927); any other one as it is. Where all problems have something, or none has,
    their resamples are all equal, which does not say what else the share may be."""
    value = figure.value
    if value is None or figure.low is not None or not problems or min(value, 1 - value) > _ROUNDING:
        return figure
    return replace(wilson(round(value) * problems, problems), value=value)


def wilson(successes: int, trials: int) -> Interval:
    """The share of successes in independent trials, with Wilson's score interval (1927). Not defined without a trial."""
    if not trials:
        return Interval()
    ends = binomtest(successes, trials).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(value=successes / trials, low=float(ends.low), high=float(ends.high))


def auc(values: Floats, goods: Flags, chains: Ints) -> Interval:
    """P(the value of a good step is above that of a bad step), the statistic of Mann and Whitney (1947); ties count half. All:
    (steps,).

    The interval treats the steps of a chain as one cluster (Obuchowski 1997). The figure is not defined without good or without
    bad steps. It has no interval for fewer than two chains, or if all chains are equal.
    """
    n_good, n_bad = int(goods.sum()), int((~goods).sum())
    if not n_good or not n_bad:
        return Interval()
    # A rank among all less the rank among equals is the number of the others below (DeLong et al. 1988).
    ranks = rankdata(values)
    above = (ranks[goods] - rankdata(values[goods])) / n_bad
    below = 1 - (ranks[~goods] - rankdata(values[~goods])) / n_good
    value = float(above.mean())
    pull = np.zeros(int(chains.max()) + 1)
    np.add.at(pull, chains[goods], (above - value) / n_good)
    np.add.at(pull, chains[~goods], (below - value) / n_bad)
    n_chains = len(np.unique(chains))
    if n_chains < _FEWEST_UNITS:
        return Interval(value=value)
    reach = float(ndtri(1 - _TAIL)) * math.sqrt(float((pull**2).sum()) * n_chains / (n_chains - 1))
    return interval(value, max(0.0, value - reach), min(1.0, value + reach))


def rank_correlation(x: Floats, y: Floats) -> float | None:
    """Spearman's correlation (1904), ties with their mean rank. None for fewer than two values, or if one of the two does not
    vary."""
    if not len(x) or not np.ptp(x) or not np.ptp(y):
        return None
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def bins_of(values: Floats, n_bins: int) -> Ints:
    """The bin of each value from 0 to 1, of `n_bins` bins of equal width. Each has its lower end, the last one both."""
    return np.asarray(np.minimum((values * n_bins + _ROUNDING).astype(np.int64), n_bins - 1))


def binned(values: Floats, n_bins: int) -> Iterator[tuple[float, float, Flags]]:
    """The ends of each bin that holds values, and which ones it holds."""
    bins = bins_of(values, n_bins)
    for at in np.unique(bins).tolist():
        yield at / n_bins, (at + 1) / n_bins, bins == at


def calibration_error(predicted: Floats, values: Floats, n_bins: int) -> float | None:
    """ECE: the mean distance between mean prediction and mean value in bins of equal width, weighted by what they hold (Naeini
    et al. 2015). Both: (predictions,). None without any."""
    sums = np.bincount(bins_of(predicted, n_bins), weights=predicted - values)
    return float(np.abs(sums).sum() / len(predicted)) if len(predicted) else None


@lru_cache(maxsize=8)
def first_chances(count: int, sizes: tuple[int, ...]) -> Floats:
    """P(the candidate of rank i from 0 is the best of n), for each n of `sizes` and all ranks: (sizes, count). 1 <= n <= count.
    It is so for C(count - 1 - i, n - 1) of the C(count, n) subsets."""
    n = np.array(sizes, dtype=np.float64)[:, None]
    ranks = np.arange(count - 1, dtype=np.float64)[None, :]
    # Each chance follows from the one before: C(m - 1, n - 1) / C(m, n - 1) = (m - n + 1) / m, with m = count - 1 - i.
    factors = np.maximum(count - n - ranks, 0.0) / (count - 1 - ranks)
    return np.asarray(np.cumprod(np.hstack([n / count, factors]), axis=1))


def best_of_each(scores: Floats, values: Floats, sizes: Sequence[int]) -> Floats:
    """The expectation of `values` (count, columns) of the best-scored of n candidates drawn without replacement, for each n:
    (sizes, columns). It is exact.

    `scores` (count,): NaN for a missing one, which ranks below every score. Candidates with equal scores share the choice. With
    fewer than n, all compete. There is at least one.
    """
    ranks = np.where(np.isnan(scores), -np.inf, scores)
    order = np.argsort(-ranks, kind="stable")
    ranked = ranks[order]
    block = np.cumsum(np.concatenate([[0], ranked[1:] != ranked[:-1]]))
    sums = np.zeros((int(block[-1]) + 1, values.shape[1]))
    np.add.at(sums, block, values[order])
    shared = (sums / np.bincount(block)[:, None])[block]
    return np.asarray(first_chances(len(scores), tuple(min(n, len(scores)) for n in sizes)) @ shared)


def none_drawn(counts: Floats, total: int) -> Floats:
    """P(none of `counts` candidates is among n of `total`), for n from 0 to `total`: (counts, total + 1). One less it is pass@n
    (Chen et al. 2021, equation 1)."""
    n = np.arange(total, dtype=np.float64)[None, :]
    missed = np.cumprod(np.maximum(0.0, total - counts[:, None] - n) / (total - n), axis=1)
    return np.hstack([np.ones((len(counts), 1)), missed])
