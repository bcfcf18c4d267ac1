"""The discrete values of the pooled estimator: a grid, in which each point represents the interval around it."""

from functools import lru_cache

import numpy as np

from pipeline.estimators.tree import Floats, Ints

POINTS = 25
"""With half as many points, the grid error exceeds the effect of a few rollouts. Twice as many change no bench figure."""
GRID: Floats = np.linspace(0.0, 1.0, POINTS)
EDGES: Floats = np.concatenate([[0.0], (GRID[1:] + GRID[:-1]) / 2, [1.0]])
_WIDTHS = np.diff(EDGES)
_WITHIN: Floats = np.where((GRID > 0) & (GRID < 1), _WIDTHS**2 / 12, 0.0)
"""Variance of a value that is uniform in its interval. The end points are exactly 0 and 1, such as after a fatal step."""

LEAST = 1e-100
"""Lower limit of a likelihood. Products of a few are still normal floats; subnormal floats are slow."""
_TABLED = 64
"""Likelihoods of up to this number of rollouts are tabled."""


def likelihood(correct: Ints, graded: Ints, misses: float = 0.0) -> Floats:
    """P(c of n | v) for every grid point v, up to a factor: (N,) and (N,) -> (N, POINTS), from `LEAST` to 1 in each row. A
    rollout counts as correct with probability v (1 - misses)."""
    few = np.minimum(graded, _TABLED)
    rows = np.asarray(_table(misses)[few, np.minimum(correct, few)])
    many = np.flatnonzero(graded > _TABLED)
    rows[many] = _likelihood(correct[many], graded[many], misses)
    return rows


def _likelihood(correct: Ints, graded: Ints, misses: float) -> Floats:
    log_wrong = np.log(np.maximum(GRID[::-1] + misses * GRID, LEAST))
    right = np.where(correct[:, None] > 0, correct[:, None] * _LOG, 0.0)
    wrong = np.where((graded > correct)[:, None], (graded - correct)[:, None] * log_wrong, 0.0)
    return exp_scaled(right + wrong)


def exp_scaled(logs: Floats) -> Floats:
    """The exponentials of each row of logarithms, scaled to the range from `LEAST` to 1."""
    return np.asarray(np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), LEAST))


@lru_cache(maxsize=4)
def _table(misses: float) -> Floats:
    graded, correct = (each.ravel() for each in np.indices((_TABLED + 1, _TABLED + 1)))
    return _likelihood(np.minimum(correct, graded), graded, misses).reshape(_TABLED + 1, _TABLED + 1, POINTS)


_LOG = np.log(np.maximum(GRID, LEAST))


def mean_of(mass: Floats) -> Floats:
    """Means of distributions over the grid, (..., POINTS) -> (...)."""
    return np.asarray(mass @ GRID)


def variance_of(mass: Floats) -> Floats:
    """Variances of distributions over the grid, including the variance within a grid point's interval."""
    return np.asarray(np.maximum(mass @ (GRID**2) - (mass @ GRID) ** 2, 0.0) + mass @ _WITHIN)


def quantiles_of(mass: Floats, confidence: float) -> tuple[Floats, Floats]:
    """An interval of each row that contains `confidence` of its mass: lower and upper bounds, (...) each.

    Both tails are equal. If a tail would end in the interval of a grid end, it is not cut off, so that 0 and 1 can be covered;
    the other tail is then twice as large.
    """
    tail = (1 - confidence) / 2
    to_zero, to_one = mass[..., 0] >= tail, mass[..., -1] >= tail
    low = _quantile(mass, np.where(to_one, 2 * tail, tail))
    high = 1 - _quantile(mass[..., ::-1], np.where(to_zero, 2 * tail, tail))
    return np.where(to_zero, 0.0, low), np.where(to_one, 1.0, high)


def _quantile(mass: Floats, tail: Floats) -> Floats:
    below = np.cumsum(mass, axis=-1)
    at = np.minimum((below < tail[..., None]).sum(axis=-1), POINTS - 1)
    here = np.take_along_axis(mass, at[..., None], axis=-1)[..., 0]
    before = np.take_along_axis(below, at[..., None], axis=-1)[..., 0] - here
    share = np.clip((tail - before) / np.maximum(here, 1e-300), 0.0, 1.0)
    return np.asarray(EDGES[at] + share * _WIDTHS[at])


def mass_above(mass: Floats, threshold: float) -> Floats:
    """P(V > threshold) of each row. The end points count as exactly 0 and 1."""
    return np.asarray(np.minimum(mass @ share_above(threshold), 1.0))


def share_above(threshold: float) -> Floats:
    """The share of the interval of each grid point that is above the threshold, (POINTS,)."""
    share = np.clip((EDGES[1:] - threshold) / _WIDTHS, 0.0, 1.0)
    share[0], share[-1] = 0.0, 1.0
    return np.asarray(share)
