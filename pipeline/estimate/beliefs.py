"""What is believed of every prefix's value, from all rollouts of its problem: sum-product on the tree of prefixes.

Values move along the tree as `Motion` says, rollouts are Bernoulli trials of their prefix's value, and a chain's outcome is a
trial of its last measured prefix. On a single chain this is the forward-backward algorithm of a hidden Markov model (Rabiner
1989); on a tree it is Pearl's belief propagation, exact as well.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.estimate.grid import GRID, LEAST, Floats, Ints, likelihood, scaled
from pipeline.estimate.kernel import Motion
from pipeline.estimate.tree import UNKNOWN, Forest

_NEVER = -1e9
"""Logarithm of evidence that no number of branches outweighs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beliefs:
    """Of N nodes: `mass` (N, POINTS) their distributions; `with_parent` (N,) the covariance of a node's value and its
    parent's, 0 for a root."""

    mass: Floats
    with_parent: Floats


def beliefs(forest: Forest, moving: Motion) -> Beliefs:
    """See the module. Time grows with the number of nodes."""
    found = _downward(forest, moving)
    mean = found.mass @ GRID
    with_parent = np.zeros(len(mean))
    inner = found.inner
    together = np.einsum("ng,ng->n", (found.apart[inner] * GRID) @ (moving.step * GRID), found.below[inner])
    with_parent[inner] = together / found.total[inner] - mean[inner] * mean[forest.parents[inner]]
    return Beliefs(mass=found.mass, with_parent=with_parent)


def expected(forest: Forest, moving: Motion) -> tuple[Floats, Floats]:
    """The distributions (N, POINTS), and the expected number of steps from value to value over all nodes, (POINTS, POINTS)."""
    found = _downward(forest, moving)
    inner = found.inner
    moves = (found.apart[inner] / found.total[inner, None]).T @ found.below[inner]
    return found.mass, moves * moving.step


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Evidence:
    """Of N nodes: `mass`, as in `Beliefs`; evidence on the parent's value from all but a node's own branch, `apart`, and
    evidence `below` on the node's own (N, POINTS). `total` (N,): the sum of both over all pairs of values. `inner`: the nodes
    with a parent; `apart` says nothing of the others."""

    mass: Floats
    apart: Floats
    below: Floats
    total: Floats
    inner: slice


def _downward(forest: Forest, moving: Motion) -> _Evidence:
    below, upward = _gathered(forest, moving)
    mass, apart, total = np.empty_like(below), upward, np.empty(len(below))
    for nodes in forest.levels:
        if nodes.start:
            np.divide(mass[forest.parents[nodes]], upward[nodes], out=apart[nodes])
            joint = (apart[nodes] @ moving.step) * below[nodes]
        else:
            joint = moving.start * below[nodes]
        total[nodes] = joint.sum(axis=1)
        np.divide(joint, total[nodes, None], out=mass[nodes])
    return _Evidence(mass=mass, apart=apart, below=below, total=total, inner=slice(forest.levels[0].stop, None))


def _gathered(forest: Forest, moving: Motion) -> tuple[Floats, Floats]:
    """Evidence at and below each node, and what of it reaches its parent. Rows are scaled: products do not vanish."""
    below = likelihood(forest.correct, forest.graded)
    known = forest.right != UNKNOWN
    _multiply(below, forest.ends[known], np.where(forest.right[known, None] == 1, moving.right, 1 - moving.right))
    upward = np.empty_like(below)
    back = moving.step.T.copy()
    for nodes, forks in zip(reversed(forest.levels), reversed(forest.forks), strict=True):
        evidence = below[nodes]
        evidence /= evidence.max(axis=1, keepdims=True)
        np.matmul(evidence, back, out=upward[nodes])
        if forks:
            _multiply(below, forest.parents[nodes], upward[nodes])
        elif nodes.start:
            below[forest.parents[nodes]] *= upward[nodes]
    return below, upward


def _multiply(rows: Floats, places: Ints, factors: Floats) -> None:
    """Multiply rows by factors of which several may belong to the same row: so many that only their logarithms can be added."""
    where, which = np.unique(places, return_inverse=True)
    if len(where) == len(places):
        rows[places] *= factors
        return
    logs = np.where(rows[where] > LEAST, np.log(rows[where]), _NEVER)
    np.add.at(logs, which, np.log(factors))
    rows[where] = scaled(logs)
