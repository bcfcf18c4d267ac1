"""A figure with its interval, and shares: what is known of figures where none is compared. Pure. `analysis.comparison` makes
intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its interval. All fields are None if the figure is not defined, such as the accuracy over 0 chains.

    `low` and `high` are None for a single chain or problem, and where all of them are equal, for example if F1 is 0.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def has_value(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def share(part: Floats, whole: Floats) -> Floats:
    """part / whole; NaN where `whole` is 0."""
    shares: Floats = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) != 0)
    return shares


def separation(good: Floats, bad: Floats) -> float:
    """P(a value of `good` is above a value of `bad`), the statistic of Mann and Whitney (1947); ties count half. Neither may be
    empty."""
    ordered = np.sort(bad)
    below = np.searchsorted(ordered, good, side="left") + np.searchsorted(ordered, good, side="right")
    return float((below / (2 * len(bad))).mean())
