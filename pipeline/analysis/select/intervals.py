"""How far means over problems may be off. Pure.

Not covered: fewer than two problems, of which nothing is known; and problems that all say the same, whose interval has no
width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over problems with its interval; None where there is none."""

    mean: float
    low: float | None
    high: float | None


def bootstrapped(values: npt.NDArray[np.float64], seed: int) -> Sequence[Estimate]:
    """The mean of each column of `values` (problems, columns), with the percentiles of means of resampled problems.

    All columns are resampled alike, so a column of differences is a paired comparison (Efron and Tibshirani 1993, chapter 13).
    """
    problems = len(values)
    means = values.mean(axis=0)
    if problems < 2:
        return [Estimate(mean=float(mean), low=None, high=None) for mean in means]
    rng = np.random.default_rng(seed)
    resampled = np.array([values[rng.integers(problems, size=problems)].mean(axis=0) for _ in range(RESAMPLES)])
    tail = (1 - CONFIDENCE) / 2
    lows, highs = np.quantile(resampled, [tail, 1 - tail], axis=0)
    return [
        Estimate(mean=float(mean), low=float(low), high=float(high))
        for mean, low, high in zip(means, lows, highs, strict=True)
    ]
