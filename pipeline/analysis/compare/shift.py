"""How values of two runs differ, over the prefixes that both have a value of. Pure.

Shifts are taken of the column `value`, which is unbiased for every single prefix under every estimator, also where sampling
stops early: a mean over many makes up for its noise, and for no bias. `posterior_mean` is drawn towards what is usual, under
two estimators not alike, so that a mean of its differences would shift where nothing has. Correlations are of the column that
labels are made of (`value` for `fixed`, else `posterior_mean`): what somebody who trains on these labels would see.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.stats import rankdata

from pipeline.analysis.compare.common import Common
from pipeline.config.choices import ValueColumn
from pipeline.core.statistics import Estimated, Floats, Ints, jackknifed, mean, sums_of, within

_SINGLE = 8
"""Positions up to this stand alone; behind it a range ends at each power of two."""
_LEAST_VARIANCE = 1e-18
"""Less is rounding: all values are the same."""
SHORT = {ValueColumn.value: "value", ValueColumn.posterior_mean: "mean"}
"""The columns of `Common` by those of labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Positioned:
    """Shift of prefixes of `first` to `last` steps."""

    first: int
    last: int
    prefixes: int
    shift: Estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """`shift`: mean of b - a over `prefixes` of so many `problems`, each prefix once. `spearman` comes without an interval.
    `equal`: how many have the same value in both."""

    prefixes: int
    problems: int
    equal: int
    mean_a: float | None
    mean_b: float | None
    shift: Estimated
    by_position: tuple[Positioned, ...]
    correlated: int
    pearson: Estimated
    spearman: float | None


def shift(found: Common, soft_a: ValueColumn, soft_b: ValueColumn) -> Shift:
    """`soft_a`, `soft_b`: the columns to correlate."""
    rows = found.prefixes.drop_nulls(("value_a", "value_b"))
    problems, a, b = _ints(rows["problem"]), _floats(rows["value_a"]), _floats(rows["value_b"])
    first, last = _ranges(_ints(rows["position"]))
    both = found.prefixes.drop_nulls((f"{SHORT[soft_a]}_a", f"{SHORT[soft_b]}_b"))
    soft = _floats(both[f"{SHORT[soft_a]}_a"]), _floats(both[f"{SHORT[soft_b]}_b"])
    ranks = np.asarray(rankdata(soft[0])), np.asarray(rankdata(soft[1]))
    of_both = _ints(both["problem"])
    return Shift(
        prefixes=len(rows),
        problems=len(np.unique(problems)),
        equal=int((a == b).sum()),
        mean_a=float(a.mean()) if len(a) else None,
        mean_b=float(b.mean()) if len(b) else None,
        shift=within(mean(problems, b - a), -1, 1),
        by_position=tuple(
            Positioned(
                first=int(first[here][0]),
                last=int(last[here][0]),
                prefixes=int(here.sum()),
                shift=within(mean(problems[here], (b - a)[here]), -1, 1),
            )
            for start in np.unique(first)
            if (here := first == start).any()
        ),
        correlated=len(both),
        pearson=correlation(of_both, *soft),
        spearman=correlation(of_both, *ranks).value,
    )


def correlation(problems: Ints, x: Floats, y: Floats) -> Estimated:
    """Pearson's. Not defined where one of the two does not vary."""
    if not len(x):
        return Estimated()
    x, y = x - x.mean(), y - y.mean()
    sums = sums_of(problems, [np.ones(len(x)), x, y, x * x, y * y, x * y])
    return within(jackknifed(sums, _correlation), -1, 1)


def _correlation(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[..., 1:] / sums[..., :1]
    x, y, xx, yy, xy = (means[..., column] for column in range(5))
    return correlation_of(xy - x * y, xx - x * x, yy - y * y)


def correlation_of(covariance: Floats, variance_x: Floats, variance_y: Floats) -> Floats:
    """In -1 to 1; NaN where a variance is not above 0."""
    defined = (variance_x > _LEAST_VARIANCE) & (variance_y > _LEAST_VARIANCE)
    spread = np.sqrt(np.where(defined, variance_x * variance_y, 1.0))
    return np.asarray(np.where(defined, np.clip(covariance / spread, -1.0, 1.0), np.nan))


def _ranges(positions: Ints) -> tuple[Ints, Ints]:
    """First and last position of each one's range: alone up to `_SINGLE`, then 9-16, 17-32 ..."""
    doublings = np.ceil(np.log2(np.maximum(positions, 2))).astype(np.int64)
    single = positions <= _SINGLE
    return np.where(single, positions, 2 ** (doublings - 1) + 1), np.where(single, positions, 2**doublings)


def _floats(column: pl.Series) -> Floats:
    return column.cast(pl.Float64).to_numpy()


def _ints(column: pl.Series) -> Ints:
    return column.cast(pl.Int64).to_numpy()
