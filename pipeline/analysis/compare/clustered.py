"""Figures of prefixes with intervals by the jackknife over problems: prefixes of one problem are not independent, problems are.

The jackknife (Efron and Stein 1981) leaves out one problem at a time; its variance is that of the usual cluster-robust formula
(Cameron and Miller 2015) where the figure is a ratio of sums. Intervals take Student's t with a degree of freedom less than
there are problems.

Not covered: fewer than two problems, of which nothing is known; and problems that all say the same, whose interval has no
width.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

CONFIDENCE = 0.95
_FEWEST_PROBLEMS = 2

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure with its interval. All None where it is not defined; without an interval where problems cannot tell one."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def told(self) -> bool:
        """Whether its interval leaves 0 out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def jackknifed(sums: Floats, statistic: Callable[[Floats], Floats]) -> Figure:
    """`sums`: (problems, columns). `statistic` of such sums, (..., columns) -> (...), NaN where it is not defined."""
    if not len(sums):
        return Figure()
    total = sums.sum(axis=0)
    value = float(statistic(total))
    if math.isnan(value):
        return Figure()
    n_problems = len(sums)
    if n_problems < _FEWEST_PROBLEMS:
        return Figure(value=value)
    without = statistic(total - sums)
    if np.isnan(without).any():
        return Figure(value=value)
    variance = (n_problems - 1) / n_problems * float(((without - without.mean()) ** 2).sum())
    reach = float(stdtrit(n_problems - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return Figure(value=value, low=value - reach, high=value + reach)


def within(figure: Figure, least: float, most: float) -> Figure:
    """The same with an interval that ends where the figure itself cannot be beyond."""
    if figure.low is None or figure.high is None:
        return figure
    return replace(figure, low=max(figure.low, least), high=min(figure.high, most))


def sums_of(problems: Ints, columns: Sequence[Floats | Ints]) -> Floats:
    """Sums of each column by problem, (problems that have any, columns). `problems`: (rows,) numbers from 0."""
    if not len(problems):
        return np.zeros((0, len(columns)))
    sums = np.column_stack([np.bincount(problems, weights=column) for column in columns])
    return np.asarray(sums[np.bincount(problems) > 0], dtype=np.float64)


def ratio(sums: Floats) -> Floats:
    """Of sums of a numerator and of a denominator; NaN where the latter is 0."""
    part, whole = sums[..., 0], sums[..., 1]
    found: Floats = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) > 0)
    return found


def mean(problems: Ints, numbers: Floats) -> Figure:
    """Mean over rows."""
    return jackknifed(sums_of(problems, [numbers, np.ones(len(numbers))]), ratio)
