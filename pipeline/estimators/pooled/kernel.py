"""How values change along chains, learned from a run: the first value, the change at a step, and the outcome at the end.

It is stored as expected counts, so that a later unit continues from an earlier one. Where counts are small, the prior
dominates: most steps change hardly anything, some change the value a little, and a few decide the outcome.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import betainc

from pipeline.estimators.pooled.grid import EDGES, GRID, POINTS
from pipeline.estimators.pooled.reproduction import ANGLES, KINDS, Habits
from pipeline.estimators.tree import Floats

PRIOR_VERSION = 2
_KINDS = {"hardly any": 0.55, "small": 0.15, "large": 0.1, "decisive": 0.1, "any": 0.1}
"""Prior shares of the kinds of steps: hardly any change, a small change (sd 0.04), a larger change (sd 0.12), a decisive step,
after which the value is near 0 or 1, and a step whose new value does not depend on the old one."""
_SMALL_SD, _LARGE_SD = 0.04, 0.12
_STEADY = 120.0
"""A step with hardly any change leads from v to Beta(v * _STEADY, (1 - v) * _STEADY): sd 0.045 at v = 1/2, none at 0 and 1.
Values of real policies are never quite constant. Without this, squared errors of the tiny policy's values exceed the claimed
variance by 10 % more, and errors on chains whose values are constant between jumps are not smaller."""
_OPEN = 1.0
"""A decisive step from v leads to Beta(v * _OPEN, (1 - v) * _OPEN), whose mean is v."""
_AT_ZERO, _AT_ONE = 0.12, 0.08
_BLUNDER = 0.02
"""Probability that a chain's outcome contradicts its last value."""
_START_WEIGHT, _LAST_WEIGHT = 10.0, 4.0
"""Weights of the prior, in chains: for the first value, and for the outcome at each grid point."""
_KINDS_WEIGHT = 20.0
"""Weight of the prior shares of kinds, in steps."""
_STEP_WEIGHT = 15.0
"""Weight of the mixture of kinds at each grid point, in steps from it."""
_FITS = 5
_LEAST = 1e-6
"""Lower limit of a transition probability: no step is impossible."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kernel:
    """Expected counts over `chains` chains: `start` (POINTS,), first values; `steps` (POINTS, POINTS), values before and after
    a step; `last` (2, POINTS), values of the last measured prefix of chains with an incorrect and a correct outcome;
    `reproduced` (KINDS, ANGLES), steps by kind and probability of their reproduction (see `reproduction`). `misses` is not
    learned: the share of right answers that the grader misses."""

    start: Floats
    steps: Floats
    last: Floats
    reproduced: Floats
    chains: int = 0
    misses: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransitionModel:
    """Probabilities: `start` (POINTS,) of the first value; `step` (POINTS, POINTS) of the next value given this one; `right`
    (POINTS,) of a correct outcome given the value of the last measured prefix; `habits` of how often steps are reproduced;
    `misses` of a right answer that is graded as not correct."""

    start: Floats
    step: Floats
    right: Floats
    habits: Habits
    misses: float = 0.0


PRIOR = Kernel(
    start=np.zeros(POINTS),
    steps=np.zeros((POINTS, POINTS)),
    last=np.zeros((2, POINTS)),
    reproduced=np.zeros((KINDS, ANGLES)),
)
"""The kernel before the first chain."""


def _anywhere() -> Floats:
    widths = np.diff(EDGES)
    mass = (1 - _AT_ZERO - _AT_ONE) * widths
    mass[0] += _AT_ZERO
    mass[-1] += _AT_ONE
    return mass


def _near(sd: float) -> Floats:
    mass = np.exp(-0.5 * ((GRID[:, None] - GRID) / sd) ** 2) * np.diff(EDGES)
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _around(concentration: float) -> Floats:
    """Beta distributions around each grid point, (POINTS, POINTS)."""
    value = np.clip(GRID, EDGES[1] / 2, 1 - EDGES[1] / 2)[:, None]
    return np.asarray(np.diff(betainc(value * concentration, (1 - value) * concentration, EDGES), axis=1))


def _steady() -> Floats:
    steady = _around(_STEADY)
    steady[[0, -1]] = np.eye(POINTS)[[0, -1]]
    return steady


_ANYWHERE = _anywhere()
_SETTLED = np.stack([_steady(), _near(_SMALL_SD), _near(_LARGE_SD), _around(_OPEN)])
"""Transition matrices of the kinds that are not learned, (4, POINTS, POINTS)."""
_UNRELATED = np.tile(_ANYWHERE, (POINTS, 1))


@lru_cache(maxsize=4)
def transition_model(kernel: Kernel) -> TransitionModel:
    """The posterior mean of the probabilities under Dirichlet priors. The prior of the steps is centred on the mixture of kinds
    that explains the counts best, so a wrong prior has little effect."""
    start = kernel.start + _START_WEIGHT * _ANYWHERE
    steps = kernel.steps + _STEP_WEIGHT * _mixture(kernel.steps)
    ended = kernel.last.sum(axis=0) + _LAST_WEIGHT
    right = (1 - kernel.misses) * (_BLUNDER + (1 - 2 * _BLUNDER) * GRID)
    return TransitionModel(
        start=start / start.sum(),
        step=steps / steps.sum(axis=1, keepdims=True),
        right=(kernel.last[1] + _LAST_WEIGHT * right) / ended,
        habits=Habits(kernel.reproduced, kernel.misses),
        misses=kernel.misses,
    )


def unrelated(moving: TransitionModel) -> TransitionModel:
    """The same, but a value says nothing about the next one."""
    return replace(moving, step=_UNRELATED)


def _mixture(steps: Floats) -> Floats:
    """The mixture of kinds, (POINTS, POINTS). Its shares and the target of "any" are fitted by EM on expected step counts."""
    prior = np.array(list(_KINDS.values()))
    shares, anywhere = prior, _ANYWHERE
    kinds = np.concatenate([_SETTLED, np.broadcast_to(anywhere, (1, POINTS, POINTS))])
    for _ in range(_FITS if steps.any() else 0):
        parts = shares[:, None, None] * kinds
        explained = parts / (parts.sum(axis=0) + _LEAST) * steps
        shares = explained.sum(axis=(1, 2)) + _KINDS_WEIGHT * prior
        shares = shares / shares.sum()
        anywhere = explained[-1].sum(axis=0) + _START_WEIGHT * _ANYWHERE
        kinds[-1] = anywhere / anywhere.sum()
    return np.asarray(np.einsum("k,kgh->gh", shares, kinds) + _LEAST)


@lru_cache(maxsize=4)
def correlation(kernel: Kernel) -> float:
    """The correlation of a value and the next one over all steps: 0 where they carry no information about each other."""
    steps = transition_model(kernel).step
    before = kernel.steps.sum(axis=1) + _START_WEIGHT * _ANYWHERE
    joint = steps * (before / before.sum())[:, None]
    after = joint.sum(axis=0)
    before = joint.sum(axis=1)
    covariance = GRID @ joint @ GRID - (before @ GRID) * (after @ GRID)
    spread = (before @ GRID**2 - (before @ GRID) ** 2) * (after @ GRID**2 - (after @ GRID) ** 2)
    return float(covariance / np.sqrt(spread)) if spread > 0 else 0.0
