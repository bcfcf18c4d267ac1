"""How likely an edge of a rollout tree would be located as a first error: a step after which the value is not above the
threshold t, where it was above t after all steps before. Pure.

It is located where its two ends are measured and their labels are right: the prefix u before the step as good, and the prefix v
after it as bad. `located` is the probability of that, given all rollouts:

    located(u, v) = P(V > t at u and at all nodes before it, u is labelled good; V <= t at v, v is labelled bad)

It is that of the model of `trees.posterior`: the bare problem has Jeffreys' prior, and a node Beta(s x, s (1 - x)) given the
value x of its parent. A rollout is a trial of the last node that it passes. Values are put into bins, so that sums along the
tree are exact but for the bins: once upwards, for what the rollouts below a node say, and once downwards. (A product of the
posteriors of u and v would be large where both are close to t and uncertain for the same reason.) The label of a measured node
is known; that of another one is good if more than t N of its N rollouts are correct. Values have `Problem.boundary` for t.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, betainc

from pipeline.estimators.tree import Floats
from pipeline.pickers.base import Problem
from pipeline.trees.posterior import ROOT_STRENGTH
from pipeline.trees.tree import NO_PARENT

_BINS = 8
"""Of values on each side of the threshold."""
_ROUNDING = 1e-9
"""Of t N, which may be a whole number."""
_LEAST = 1e-300

Places = np.ndarray[Any, np.dtype[np.int64]]


class Expected(NamedTuple):
    """Of each node: the probability that the step to it is located as a first error, and that it is
    labelled good. 0 for a chain that has ended: its value is known for nothing."""

    located: Sequence[float]
    good: Sequence[float]


def expected(problem: Problem) -> Expected:
    """The probabilities of the module's model."""
    nodes = problem.tree.nodes
    inner = [at for at, node in enumerate(nodes) if not node.ended]
    place = {at: number for number, at in enumerate(inner)}
    parents = np.array([place.get(nodes[at].parent, NO_PARENT) for at in inner])
    depths = np.array([nodes[at].depth for at in inner])
    levels = [np.flatnonzero(depths == depth) for depth in range(1, int(depths.max()) + 1)]
    bins = _bins(problem)
    says_good, says_bad = _labels(problem, inner, bins.values)

    # Upwards: the logarithm of P(rollouts at a node and below it | its value), and what that says of the value before.
    below = _last_trials(problem, inner, parents) @ np.log([bins.values, 1.0 - bins.values])
    said = np.zeros_like(below)
    for level in reversed(levels):
        said[level] = _log_mean(below[level], bins.steps)
        np.add.at(below, parents[level], said[level])

    # Downwards: P(value, given the other rollouts); `fine`: and all nodes before are good. `before`: the latter, of the parent.
    every, fine, before = np.zeros_like(below), np.zeros_like(below), np.zeros_like(below)
    every[0] = fine[0] = bins.prior
    for level in levels:
        above = parents[level]
        others = _scaled(below[above] - said[level])
        whole = every[above] * others
        total = _total(whole)
        before[level] = fine[above] * others * bins.good / total
        every[level] = whole / total @ bins.steps
        fine[level] = before[level] @ bins.steps

    likely = _scaled(below)
    whole = every * likely
    total = _total(whole)
    falls = (before * says_good[parents]) * ((likely * says_bad * ~bins.good) @ bins.steps.T)
    found = np.zeros((2, len(nodes)))
    for row, each in zip(found, (falls, whole * says_good), strict=True):
        row[inner] = each.sum(axis=1) / total[:, 0]
    return Expected(*found.tolist())


class _Bins(NamedTuple):
    """Of values: their middles, whether they are above the threshold, the prior of the bare problem, and P(bin of a node | bin
    of its parent), a row for each bin of the parent."""

    values: Floats
    good: np.ndarray[Any, np.dtype[np.bool_]]
    prior: Floats
    steps: Floats


def _bins(problem: Problem) -> _Bins:
    middle = problem.boundary
    edges = np.concatenate([np.linspace(0, middle, _BINS + 1), np.linspace(middle, 1, _BINS + 1)[1:]])
    values = (edges[:-1] + edges[1:]) / 2
    a, b = problem.strength * values, problem.strength * (1.0 - values)
    half = ROOT_STRENGTH / 2
    return _Bins(
        values=values,
        good=values > middle,
        prior=np.diff(betainc(half, half, edges)),
        steps=np.diff(betainc(a[:, None], b[:, None], edges), axis=1),
    )


def _last_trials(problem: Problem, inner: Sequence[int], parents: Places) -> Floats:
    """Correct and wrong rollouts of which a node is the last one that goes on."""
    nodes = [problem.tree.nodes[at] for at in inner]
    found = np.array([(node.correct, node.graded - node.correct) for node in nodes], dtype=np.float64)
    passed = [(node.passed.correct, node.passed.graded - node.passed.correct) for node in nodes[1:]]
    np.subtract.at(found, parents[1:], np.array(passed, dtype=np.float64).reshape(-1, 2))
    return found


def _labels(problem: Problem, inner: Sequence[int], values: Floats) -> tuple[Floats, Floats]:
    """P(labelled good | value) and P(labelled bad | value) of each node. One that was closed without rollouts has no label."""
    bad = bdtr(np.floor(problem.threshold * problem.rollouts + _ROUNDING), problem.rollouts, values)
    is_bad = np.tile(bad, (len(inner), 1))
    is_good = 1.0 - is_bad
    for number, at in enumerate(inner):
        if problem.measured[at]:
            issued = problem.tree.nodes[at].issued
            is_good[number] = issued.correct > problem.threshold * issued.graded + _ROUNDING
            is_bad[number] = issued.graded > 0 and not is_good[number, 0]
    return is_good, is_bad


def _log_mean(logs: Floats, steps: Floats) -> Floats:
    """The logarithm of the mean over the next node's bins, for each bin of a node."""
    most = logs.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.maximum(np.exp(logs - most) @ steps.T, _LEAST)) + most)


def _scaled(logs: Floats) -> Floats:
    """Without the logarithm, and each row by its largest entry."""
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _total(rows: Floats) -> Floats:
    return np.asarray(np.maximum(rows.sum(axis=1, keepdims=True), _LEAST))
