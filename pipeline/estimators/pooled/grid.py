"""The values a step may have, as the pooled estimator sees them: grid points, each standing for the interval around it."""

import numpy as np

from pipeline.estimators.tree import Floats, Ints

POINTS = 25
"""Half as many make estimates coarser than a few rollouts do; twice as many change no figure of the bench."""
GRID: Floats = np.linspace(0.0, 1.0, POINTS)
EDGES: Floats = np.concatenate([[0.0], (GRID[1:] + GRID[:-1]) / 2, [1.0]])
_WIDTHS = np.diff(EDGES)
_WITHIN: Floats = np.where((GRID > 0) & (GRID < 1), _WIDTHS**2 / 12, 0.0)
"""Variance of a value that is uniform in its interval. The ends stand for 0 and 1 themselves: steps that lose everything."""

LEAST = 1e-100
"""Evidence says no more than this against a value. Products of a few are still normal numbers: others take processors long."""
_TABLED = 64
"""Likelihoods of so many rollouts are looked up."""


def likelihood(correct: Ints, graded: Ints) -> Floats:
    """P(c of n | v) for every grid point v, up to a factor: (N,) and (N,) -> (N, POINTS), from `LEAST` to 1 in each row."""
    few = np.minimum(graded, _TABLED)
    rows = np.asarray(_TABLE[few, np.minimum(correct, few)])
    many = np.flatnonzero(graded > _TABLED)
    rows[many] = _likelihood(correct[many], graded[many])
    return rows


def _likelihood(correct: Ints, graded: Ints) -> Floats:
    right = np.where(correct[:, None] > 0, correct[:, None] * _LOG, 0.0)
    wrong = np.where((graded > correct)[:, None], (graded - correct)[:, None] * _LOG[::-1], 0.0)
    return exp_scaled(right + wrong)


def exp_scaled(logs: Floats) -> Floats:
    """Rows of logarithms -> what they are of, up to a factor: from `LEAST` to 1."""
    return np.asarray(np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), LEAST))


def _table() -> Floats:
    graded, correct = (each.ravel() for each in np.indices((_TABLED + 1, _TABLED + 1)))
    return _likelihood(np.minimum(correct, graded), graded).reshape(_TABLED + 1, _TABLED + 1, POINTS)


_LOG = np.log(np.maximum(GRID, LEAST))
_TABLE = _table()


def mean_of(mass: Floats) -> Floats:
    """Means of distributions over the grid, (..., POINTS) -> (...)."""
    return np.asarray(mass @ GRID)


def variance_of(mass: Floats) -> Floats:
    """Their variances, that within a grid point's interval included."""
    return np.asarray(np.maximum(mass @ (GRID**2) - (mass @ GRID) ** 2, 0.0) + mass @ _WITHIN)


def quantiles_of(mass: Floats, confidence: float) -> tuple[Floats, Floats]:
    """An interval of each row that holds `confidence` of its mass: (...,) lower and upper bounds.

    Equal tails are cut off, but a tail that would end in the interval of a grid's end is not cut off at all, so that 0 and 1
    can be covered; the other one is then twice as large.
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
    """P(V > threshold) of each row; the ends count as 0 and 1."""
    share = np.clip((EDGES[1:] - threshold) / _WIDTHS, 0.0, 1.0)
    share[0], share[-1] = 0.0, 1.0
    return np.asarray(np.minimum(mass @ share, 1.0))
