"""What reproduced steps say about the values before and after the step, and how often policies reproduce steps.

A rollout of a prefix with value v takes the next step of the chain, after which the value is w, with probability p. Otherwise
it leaves the chain, and is correct with probability u: v = p w + (1 - p) u. Of n + m rollouts, n take the step, which is
evidence on p, and c of the other m are correct, which is evidence on u:

    factor(v, w) = E[p^n (1 - p)^m u^c (1 - u)^(m - c)],   u = (v - p w) / (1 - p)

over all p for which u is a probability. The outcomes of the n rollouts are not part of it: they are trials of w.

The distribution of p is learned from the run, separately by how much the value changes at the step, because policies reproduce
right steps more often than errors: the tiny policy of the tests takes half of the steps that keep the value with p > 0.9, and
half of those at which it falls by 0.2 or more with p < 0.22.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc

from pipeline.estimators.pooled.grid import GRID, POINTS
from pipeline.estimators.tree import Floats, Ints

_PROBABILITY = 0.15, 0.85
"""Beta distribution of p before a run has taught anything: mean 0.15, median 0.013, 12 % above 0.5. Measured on
Qwen2.5-Coder-1.5B-Instruct, 8 problems of GSM8K in lines at temperature 1: mean 0.15, median 0.006, 13 % above 0.5."""
_WEIGHT = 5.0
"""Weight of that distribution for each kind of change, in steps."""
ANGLES = 32
"""Number of values of p, equidistant in arcsin(sqrt(p)), where n rollouts determine p to 1 / (2 sqrt n)."""
_OFFSETS: Floats = np.array([-1, 0, 1]) / 3
"""Positions of v within its interval, in units of the grid spacing. They determine u where p is nearly 1."""
_CHANGES = -0.1, 0.1, 0.2
"""Limits of v - w between the kinds of change: the value rises, stays, falls a little, falls."""
KINDS = len(_CHANGES) + 1
_KIND: Ints = np.digitize(GRID[:, None] - GRID, _CHANGES)
_OF_KIND: Floats = (_KIND.ravel() == np.arange(KINDS)[:, None]).astype(np.float64)
_TRUST = 0.6
"""Exponent of the factor: the model of u is too simple, because a rollout that leaves a right chain is rarely correct. Squared
errors over claimed variance, with 1 / 0.6 / 0.4: 1.5 / 1.0 / 0.8 on 220 chains of the tiny policy, 1.1 to 1.6 / 1.0 to 1.3 /
0.9 to 1.1 on problems with many similar chains. Where few steps are reproduced, the same error takes 12 % more tokens with 0.6
than with 1. It is not learned: held-out rollouts of every such run were predicted best with 1, because what predicts best says
little about the variance."""
_ROUNDING = 1e-9
_LEAST = 1e-12
"""Lower limit of a factor, relative to the largest: no pair of values is impossible."""

Singles = np.ndarray[Any, np.dtype[np.float32]]


class Branching(NamedTuple):
    """Graded rollouts of a prefix: `taken` took a step, `left` left the chain, and `correct` of the latter were correct. A
    NamedTuple, because every decision looks up the factors of many."""

    taken: int
    left: int
    correct: int


class Habits:
    """How often steps are reproduced, from the expected counts of steps by kind and p, (KINDS, ANGLES)."""

    def __init__(self, counts: Floats, misses: float = 0.0) -> None:
        counted = counts + _WEIGHT * _USUAL
        shares = (counted / counted.sum(axis=1, keepdims=True))[_KIND].astype(np.float32)
        self.misses = misses
        possible = _POSSIBLE.sum(axis=2)
        self.shares: Singles = shares
        self.total: Floats = np.asarray((possible * shares).sum(axis=2), dtype=np.float64)


@lru_cache(maxsize=4096)
def factor(seen: Branching, habits: Habits) -> Floats:
    """See the module; up to a constant, (POINTS, POINTS). Rows are values before the step, columns values after it."""
    mass = (_likelihoods(seen, habits.misses) * habits.shares).sum(axis=2) / habits.total
    return np.asarray(np.maximum((mass / mass.max()) ** _TRUST, _LEAST))


def learned_counts(seen: Sequence[Branching], pairs: Floats, habits: Habits) -> Floats:
    """The expected counts of E steps by kind and p, (KINDS, ANGLES). `pairs`: the distributions of the values before and after
    each step, (E, POINTS, POINTS). Those of steps with the same rollouts are added first."""
    added: dict[Branching, Floats] = {}
    for each, pair in zip(seen, pairs, strict=True):
        added[each] = added[each] + pair if each in added else pair
    counts = np.zeros((KINDS, ANGLES))
    for each, pair in added.items():
        weights = (_likelihoods(each, habits.misses) * habits.shares).astype(np.float64)
        weights *= (pair / np.maximum(weights.sum(axis=2), np.finfo(np.float64).tiny))[:, :, None]
        counts += _OF_KIND @ weights.reshape(-1, ANGLES)
    return counts


@lru_cache(maxsize=512)
def _likelihoods(seen: Branching, misses: float) -> Singles:
    """The likelihood for each v, w and p, summed over the offsets, up to a constant: (POINTS, POINTS, ANGLES)."""
    log = (seen.taken * _LOG_TAKEN + seen.left * _LOG_LEFT)[_POSSIBLE_P]
    log += seen.correct * _LOG_RIGHT
    log += (seen.left - seen.correct) * _log_wrong(misses)
    log -= log.max()
    together = np.bincount(_POSSIBLE_CELL, weights=np.exp(log, out=log), minlength=POINTS * POINTS * ANGLES)
    return together.astype(np.float32).reshape(POINTS, POINTS, ANGLES)


@lru_cache(maxsize=4)
def _log_wrong(misses: float) -> Floats:
    return _log(1 - (1 - misses) * _U[_POSSIBLE])


def _probabilities() -> tuple[Floats, Floats]:
    """Values of p and their probabilities, (ANGLES,) each."""
    edges = np.sin(np.linspace(0, np.pi / 2, ANGLES + 1)) ** 2
    middles = np.sin((np.arange(ANGLES) + 0.5) * np.pi / 2 / ANGLES) ** 2
    return middles, np.diff(betainc(*_PROBABILITY, edges))


def _elsewhere() -> Floats:
    """u for all v, w, offsets and p, (POINTS, POINTS, len(_OFFSETS), ANGLES)."""
    before = np.clip(GRID[:, None] + _OFFSETS * (GRID[1] - GRID[0]), 0.0, 1.0)
    return np.asarray((before[:, None, :, None] - _P * GRID[:, None, None]) / (1 - _P))


def _log(values: Floats) -> Floats:
    return np.asarray(np.log(np.clip(values, np.finfo(np.float64).tiny, 1.0)))


_P, _USUAL = _probabilities()
_U = _elsewhere()
_POSSIBLE = (_U > -_ROUNDING) & (_U < 1 + _ROUNDING)
_V_AT, _W_AT, _, _POSSIBLE_P = np.nonzero(_POSSIBLE)
_POSSIBLE_CELL = np.ravel_multi_index((_V_AT, _W_AT, _POSSIBLE_P), (POINTS, POINTS, ANGLES))
"""For each possible u: the position of its p, and that of its v, w and p together."""
_LOG_TAKEN, _LOG_LEFT = _log(_P), _log(1 - _P)
_LOG_RIGHT = _log(_U[_POSSIBLE])
