"""The values a step may have, as the pooled estimator sees them: grid points, each standing for the interval around it."""

from functools import lru_cache
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

POINTS = 25
"""Half as many make estimates coarser than a few rollouts do; twice as many change no figure of the bench."""
GRID: Floats = np.linspace(0.0, 1.0, POINTS)
EDGES: Floats = np.concatenate([[0.0], (GRID[1:] + GRID[:-1]) / 2, [1.0]])
_WIDTHS = np.diff(EDGES)
_WITHIN: Floats = np.where((GRID > 0) & (GRID < 1), _WIDTHS**2 / 12, 0.0)
"""Variance of a value that is uniform in its interval. The ends stand for 0 and 1 themselves: steps that lose everything."""


def likelihood(correct: Ints, graded: Ints) -> Floats:
    """P(c of n | v) for every grid point v, up to a factor: (..., POINTS), the largest of each row being 1."""
    rows, where = np.unique(np.stack([correct.ravel(), graded.ravel()]), axis=1, return_inverse=True)
    table = np.stack([_likelihood(int(c), int(n)) for c, n in rows.T])
    return table[where.reshape(correct.shape)]


@lru_cache(maxsize=65_536)
def _likelihood(correct: int, graded: int) -> Floats:
    with np.errstate(divide="ignore"):
        log = np.zeros(POINTS)
        if correct:
            log += correct * np.log(GRID)
        if graded > correct:
            log += (graded - correct) * np.log1p(-GRID)
    return np.asarray(np.exp(log - log.max()))


def mean_of(mass: Floats) -> Floats:
    """Means of distributions over the grid, (..., POINTS) -> (...)."""
    return np.asarray(mass @ GRID)


def variance_of(mass: Floats) -> Floats:
    """Their variances, that within a grid point's interval included."""
    return np.asarray(np.maximum(mass @ (GRID**2) - (mass @ GRID) ** 2, 0.0) + mass @ _WITHIN)


def quantiles_of(mass: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Equal-tailed interval of each row; a bound in the interval of an end is that end, so that 0 and 1 can be covered."""
    tail = (1 - confidence) / 2
    return _quantile(mass, tail), 1 - _quantile(mass[..., ::-1], tail)


def _quantile(mass: Floats, tail: float) -> Floats:
    below = np.cumsum(mass, axis=-1)
    at = np.minimum((below < tail).sum(axis=-1), POINTS - 1)
    here = np.take_along_axis(mass, at[..., None], axis=-1)[..., 0]
    before = np.take_along_axis(below, at[..., None], axis=-1)[..., 0] - here
    share = np.clip((tail - before) / np.maximum(here, 1e-300), 0.0, 1.0)
    return np.asarray(np.where(at == 0, 0.0, EDGES[at] + share * _WIDTHS[at]))


def mass_above(mass: Floats, threshold: float) -> Floats:
    """P(V > threshold) of each row; the ends count as 0 and 1."""
    share = np.clip((EDGES[1:] - threshold) / _WIDTHS, 0.0, 1.0)
    share[0], share[-1] = 0.0, 1.0
    return np.asarray(np.minimum(mass @ share, 1.0))
