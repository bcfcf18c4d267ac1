"""A policy that writes K steps as a Markov chain of states, and its exact values.

A state stands for everything the steps so far say. Steps 1 to K - 1 each lead to a new state; step K states an answer, right
with a chance that depends on the last state. Not covered: solutions of different numbers of steps.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

Floats = npt.NDArray[np.float64]

LEVELS = np.linspace(0, 1, 101)
"""The states of a martingale policy: state s is worth LEVELS[s], whatever the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`moves[s, t]`: chance that a step leads from state s to t, shape (S, S). `right[s]`: that the answer from s is right."""

    steps: int
    moves: Floats
    right: Floats


def exact_values(policy: Policy) -> Floats:
    """P(right answer | k steps written, state s) as an array (K, S), backwards from the answer."""
    values = [policy.right]
    for _ in range(policy.steps - 1):
        values.append(policy.moves @ values[-1])
    return np.stack(values[::-1])


def beta_moves(means: Floats, concentration: float) -> Floats:
    """Moves to a level around means[s], shape (S, len(LEVELS)): Beta(mean * c, (1 - mean) * c) laid on LEVELS.

    A draw between two levels goes to either of them with chances that keep the mean, so row s has the mean means[s] exactly,
    and a variance of means[s] * (1 - means[s]) / (c + 1), and at most a quarter of a squared spacing more.
    """
    moves = np.zeros((len(means), len(LEVELS)))
    spacing = LEVELS[1] - LEVELS[0]
    for row, mean in zip(moves, means, strict=True):
        if mean in (0.0, 1.0):
            row[-1 if mean else 0] = 1.0
            continue
        right, wrong = mean * concentration, (1 - mean) * concentration
        shortfall = LEVELS * betainc(right, wrong, LEVELS) - mean * betainc(right + 1, wrong, LEVELS)
        slopes = np.diff(shortfall) / spacing
        row[:] = np.diff(slopes, prepend=0.0, append=1.0)
    return np.clip(moves, 0.0, None)


def jump_moves(routine: float, concentration: float, means: Floats = LEVELS) -> Floats:
    """A routine step keeps its state; the others go anywhere, around means[s]."""
    return routine * np.eye(len(LEVELS)) + (1 - routine) * beta_moves(means, concentration)
