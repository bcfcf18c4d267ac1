"""How values move along chains, learnt from a run: where they begin, how a step changes them, how a chain ends.

Kept as expected counts of what was seen so far, so that a later unit goes on where an earlier one stopped. What the counts
do not tell yet is told by the prior: most steps change nothing, some a little, a few everything.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.estimate.grid import EDGES, GRID, POINTS, Floats

PRIOR_VERSION = 1
_STAY, _MOVE, _JUMP = 0.6, 0.25, 0.15
_MOVE_SD = 0.08
_AT_ZERO, _AT_ONE = 0.12, 0.08
_BLUNDER = 0.02
"""Chance that a chain's outcome is not what its last value says."""
_START_WEIGHT, _STEP_WEIGHT, _LAST_WEIGHT = 10.0, 4.0, 4.0
"""The prior counts as much as so many chains that begin, steps that leave a grid point, chains that end from one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kernel:
    """Expected counts over `chains` chains: `start` (POINTS,) of first values, `steps` (POINTS, POINTS) of values before and
    after a step, `last` (2, POINTS) of values of the last measured prefix, of chains that ended wrong and right."""

    start: Floats
    steps: Floats
    last: Floats
    chains: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Motion:
    """Probabilities: of the first value (POINTS,), of the next value given this one (POINTS, POINTS), of a right outcome
    given the value of the last measured prefix (POINTS,)."""

    start: Floats
    step: Floats
    right: Floats


PRIOR = Kernel(start=np.zeros(POINTS), steps=np.zeros((POINTS, POINTS)), last=np.zeros((2, POINTS)))
"""Nothing seen yet."""


def _prior_motion() -> Motion:
    widths = np.diff(EDGES)
    anywhere = (1 - _AT_ZERO - _AT_ONE) * widths
    anywhere[0] += _AT_ZERO
    anywhere[-1] += _AT_ONE
    near = np.exp(-0.5 * ((GRID[:, None] - GRID) / _MOVE_SD) ** 2) * widths
    near /= near.sum(axis=1, keepdims=True)
    return Motion(
        start=anywhere,
        step=_STAY * np.eye(POINTS) + _MOVE * near + _JUMP * anywhere,
        right=_BLUNDER + (1 - 2 * _BLUNDER) * GRID,
    )


_PRIOR_MOTION = _prior_motion()


def motion(kernel: Kernel) -> Motion:
    """The posterior mean of the probabilities, under Dirichlet priors."""
    start = kernel.start + _START_WEIGHT * _PRIOR_MOTION.start
    steps = kernel.steps + _STEP_WEIGHT * _PRIOR_MOTION.step
    ended = kernel.last.sum(axis=0) + _LAST_WEIGHT
    return Motion(
        start=start / start.sum(),
        step=steps / steps.sum(axis=1, keepdims=True),
        right=(kernel.last[1] + _LAST_WEIGHT * _PRIOR_MOTION.right) / ended,
    )


def correlation(kernel: Kernel) -> float:
    """Of a value and the next one, over all steps seen: 0 where steps carry no information about each other."""
    steps = motion(kernel).step
    before = kernel.steps.sum(axis=1) + _STEP_WEIGHT * _PRIOR_MOTION.start
    joint = steps * (before / before.sum())[:, None]
    after = joint.sum(axis=0)
    before = joint.sum(axis=1)
    covariance = GRID @ joint @ GRID - (before @ GRID) * (after @ GRID)
    spread = (before @ GRID**2 - (before @ GRID) ** 2) * (after @ GRID**2 - (after @ GRID) ** 2)
    return float(covariance / np.sqrt(spread)) if spread > 0 else 0.0
