"""Curves from scores to probabilities, fitted to trials: none at all, beta calibration, isotonic regression. Pure.

All of them rise strictly: a thousandth of the score itself is in each value (`_OWN`), so that two scores never become one
probability. `select` would otherwise find ties where the model sees a difference.

**Beta calibration** (Kull, Silva Filho and Flach 2017): logit p = a log s - b log(1 - s) + c with a, b >= 0, by maximum
likelihood. A weak normal prior keeps a and b near 1 and c near 0, the identity, where there are few prefixes or all rollouts
agree.

**Isotonic regression** pools scores that do not rise (Ayer et al. 1955). The curve runs straight between the means of the
pooled blocks (centered isotonic regression, Oron and Flournoy 2017), which has a smaller error than steps, and is flat beyond
the outermost ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from pipeline.analysis.calibrate.prefixes import Trials
from pipeline.analysis.comparison import sums_of
from pipeline.core.statistics import Floats
from pipeline.scorers.calibration import MapKind

POINT_PREFIXES = 10
"""Prefixes with similar scores that make one point of a fit, so that no curve follows a single prefix."""
MAX_POINTS = 1000
_OWN = 1e-3
_PRIOR = 0.25
"""Precision of the normal prior of a - 1, b - 1 and c: a standard deviation of 2."""
_LEAST = 1e-6
"""Scores nearer to 0 or 1 have the logarithms of this one."""
_GRID = np.concatenate(([0.0], expit(np.arange(-14.0, 14.01, 0.25)), [1.0]))
"""Knots of a beta curve: even in the logit, because scores crowd near 0 and 1. Straight lines between them are within 0.002
of it."""
_MOST_ITERATIONS = 100
_CONVERGED = 1e-10
"""Relative change of the objective at which the iteration ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line through knots. `scores` rise strictly from 0 to 1, `values` strictly within 0 to 1."""

    scores: Floats
    values: Floats

    def at(self, scores: Floats) -> Floats:
        """The values at these scores."""
        return np.asarray(np.interp(scores, self.scores, self.values), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Points:
    """Neighbouring prefixes together: mean score, mean value and number of prefixes. Scores rise, but for rounding."""

    scores: Floats
    values: Floats
    weights: Floats


def fit_curve(kind: MapKind, trials: Trials) -> Curve:
    """The curve of this kind. Without trials it is the identity."""
    return _FITS[kind](_points(trials)) if len(trials) else IDENTITY


def _points(trials: Trials) -> _Points:
    """Points with about POINT_PREFIXES prefixes each, at most MAX_POINTS; equal scores are in one point."""
    at = np.unique(trials.scores, return_inverse=True)[1]
    counts = np.bincount(at)
    n_points = max(1, min(MAX_POINTS, len(trials) // POINT_PREFIXES))
    before = np.cumsum(counts) - counts
    point = (before * n_points // len(trials))[at]
    weights, scores, values = sums_of(point, [np.ones(len(trials)), trials.scores, trials.values]).T
    return _Points(scores=scores / weights, values=values / weights, weights=weights)


def _beta(points: _Points) -> Curve:
    columns = _logarithms(points.scores)
    usual = np.array([1.0, 1.0, 0.0])
    free = [0, 1, 2]
    while True:
        found = _maximum(columns, points, usual, free)
        falling = [at for at in free[:-1] if found[at] < 0]
        if not falling:
            break
        free.remove(min(falling, key=lambda at: float(found[at])))
    return _rising(_GRID, np.asarray(expit(_logarithms(_GRID) @ found)))


def _maximum(columns: Floats, points: _Points, usual: Floats, free: list[int]) -> Floats:
    """The most probable parameters by Newton's method, those that are not `free` being 0."""
    chosen = columns[:, free]
    center = usual[free]
    found = center.copy()

    def objective(parameters: Floats) -> float:
        linear = chosen @ parameters
        losses = points.weights * (np.logaddexp(0, linear) - points.values * linear)
        return float(losses.sum() + _PRIOR / 2 * ((parameters - center) ** 2).sum())

    now = objective(found)
    for _ in range(_MOST_ITERATIONS):
        p = expit(chosen @ found)
        slope = chosen.T @ (points.weights * (p - points.values)) + _PRIOR * (found - center)
        curvature = (chosen * (points.weights * p * (1 - p))[:, None]).T @ chosen + _PRIOR * np.eye(len(free))
        step = np.linalg.solve(curvature, slope)
        share = 1.0
        while (following := objective(found - share * step)) > now and share > _CONVERGED:
            share /= 2
        if following > now:
            break
        found = found - share * step
        if now - following <= _CONVERGED * (1 + abs(now)):
            break
        now = following
    whole = np.zeros(len(usual))
    whole[free] = found
    return whole


def _logarithms(scores: Floats) -> Floats:
    inner = np.clip(scores, _LEAST, 1 - _LEAST)
    return np.stack([np.log(inner), -np.log1p(-inner), np.ones_like(inner)], axis=-1)


def _isotonic(points: _Points) -> Curve:
    found = isotonic_regression(points.values, weights=points.weights)
    starts = found.blocks[:-1]
    centers = np.add.reduceat(points.weights * points.scores, starts) / np.add.reduceat(points.weights, starts)
    levels = np.clip(found.x[starts], 0.0, 1.0)
    scores, first = np.unique(np.concatenate(([0.0], centers, [1.0])), return_index=True)
    ends = np.concatenate((levels[:1], levels, levels[-1:]))
    return _rising(scores, np.maximum.accumulate(ends[first]))


def _rising(scores: Floats, values: Floats) -> Curve:
    return Curve(scores=scores, values=(1 - _OWN) * values + _OWN * scores)


IDENTITY = Curve(scores=np.array([0.0, 1.0]), values=np.array([0.0, 1.0]))
_FITS: Mapping[MapKind, Callable[[_Points], Curve]] = {
    MapKind.identity: lambda _points: IDENTITY,
    MapKind.beta: _beta,
    MapKind.isotonic: _isotonic,
}
