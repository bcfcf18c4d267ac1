"""What is believed of every prefix's value, from all rollouts of its problem: sum-product on the tree of prefixes.

Values move along the tree as `Motion` says, rollouts are Bernoulli trials of their prefix's value, and a chain's outcome is a
trial of its last measured prefix. On a single chain this is the forward-backward algorithm of a hidden Markov model (Rabiner
1989); on a tree it is Pearl's belief propagation, exact as well.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.estimate.grid import GRID, POINTS, Floats, likelihood
from pipeline.estimate.kernel import Motion
from pipeline.estimate.tree import Forest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beliefs:
    """Of N nodes: `mass` (N, POINTS) their distributions; `with_parent` (N,) the covariance of a node's value and its
    parent's, 0 for a root; `moves` (POINTS, POINTS) the expected number of steps from value to value, over all nodes."""

    mass: Floats
    with_parent: Floats
    moves: Floats


def beliefs(forest: Forest, moving: Motion) -> Beliefs:
    """See the module. Time grows with the number of nodes."""
    own = likelihood(forest.correct, forest.graded)
    known = forest.right >= 0
    np.multiply.at(
        own,
        forest.ends[known],
        np.where(forest.right[known, None] == 1, moving.right, 1 - moving.right),
    )
    below, upward = _gathered(forest, own, moving)
    mass, with_parent, moves = _spread(forest, below, upward, moving)
    return Beliefs(mass=mass, with_parent=with_parent, moves=moves)


def _gathered(forest: Forest, own: Floats, moving: Motion) -> tuple[Floats, Floats]:
    """Evidence at and below each node, and what of it reaches its parent."""
    below = own
    upward = np.empty_like(own)
    for nodes in reversed(forest.levels):
        below[nodes] = _scaled(below[nodes])
        upward[nodes] = _scaled(below[nodes] @ moving.step.T)
        parents = forest.parents[nodes]
        if parents[0] >= 0:
            np.multiply.at(below, parents, upward[nodes])
    return below, upward


def _spread(forest: Forest, below: Floats, upward: Floats, moving: Motion) -> tuple[Floats, Floats, Floats]:
    mass = np.empty_like(below)
    with_parent = np.zeros(len(below))
    moves = np.zeros((POINTS, POINTS))
    for depth, nodes in enumerate(forest.levels):
        if depth == 0:
            mass[nodes] = _normal(moving.start * below[nodes])
            continue
        parents = forest.parents[nodes]
        apart = _scaled(mass[parents] / upward[nodes])
        joint = (apart @ moving.step) * below[nodes]
        total = joint.sum(axis=1, keepdims=True)
        mass[nodes] = joint / total
        together = (((apart * GRID) @ moving.step) * below[nodes]) @ GRID / total[:, 0]
        with_parent[nodes] = together - (mass[nodes] @ GRID) * (mass[parents] @ GRID)
        moves += moving.step * ((apart / total).T @ below[nodes])
    return mass, with_parent, moves


def _scaled(rows: Floats) -> Floats:
    """Rows with 1 as their largest entry: products of many rows do not vanish."""
    return np.asarray(rows / rows.max(axis=1, keepdims=True))


def _normal(rows: Floats) -> Floats:
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))
