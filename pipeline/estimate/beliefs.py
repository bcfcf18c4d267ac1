"""What is believed of every prefix's value, from all rollouts of its problem: sum-product on the tree of prefixes.

Values move along the tree as `Motion` says, rollouts are Bernoulli trials of their prefix's value, and a chain's outcome is a
trial of its last measured prefix. On a single chain this is the forward-backward algorithm of a hidden Markov model (Rabiner
1989); on a tree it is Pearl's belief propagation, exact as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.estimate.grid import GRID, POINTS, Floats, Ints, likelihood
from pipeline.estimate.kernel import Motion
from pipeline.estimate.tree import UNKNOWN, Forest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beliefs:
    """Of N nodes: `mass` (N, POINTS) their distributions; `with_parent` (N,) the covariance of a node's value and its
    parent's, 0 for a root."""

    mass: Floats
    with_parent: Floats


def beliefs(forest: Forest, moving: Motion) -> Beliefs:
    """See the module. Time grows with the number of nodes."""
    mass = np.empty((len(forest.parents), POINTS))
    with_parent = np.zeros(len(mass))
    step_on = moving.step * GRID
    for edge in _downward(forest, moving, mass):
        together = np.einsum("ng,ng->n", (edge.apart * GRID) @ step_on, edge.below) / edge.total
        with_parent[edge.nodes] = together - (mass[edge.nodes] @ GRID) * (mass[edge.parents] @ GRID)
    return Beliefs(mass=mass, with_parent=with_parent)


def expected(forest: Forest, moving: Motion) -> tuple[Floats, Floats]:
    """The distributions (N, POINTS), and the expected number of steps from value to value over all nodes, (POINTS, POINTS)."""
    mass = np.empty((len(forest.parents), POINTS))
    moves = np.zeros((POINTS, POINTS))
    for edge in _downward(forest, moving, mass):
        moves += (edge.apart / edge.total[:, None]).T @ edge.below
    return mass, moves * moving.step


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Edges:
    """The nodes of a level and their parents: evidence `apart` from a node, evidence at and `below` it, and the sum of both
    over all values, `total`."""

    nodes: slice
    parents: Ints
    apart: Floats
    below: Floats
    total: Floats


def _downward(forest: Forest, moving: Motion, mass: Floats) -> Iterator[_Edges]:
    """Fill `mass`, from the roots down, and tell the evidence on both sides of every edge on the way."""
    below, upward = _gathered(forest, moving)
    roots = forest.levels[0]
    first = moving.start * below[roots]
    mass[roots] = first / first.sum(axis=1, keepdims=True)
    for nodes in forest.levels[1:]:
        parents, evidence = forest.parents[nodes], below[nodes]
        apart = mass[parents] / upward[nodes]
        joint = (apart @ moving.step) * evidence
        total = joint.sum(axis=1)
        mass[nodes] = joint / total[:, None]
        yield _Edges(nodes=nodes, parents=parents, apart=apart, below=evidence, total=total)


def _gathered(forest: Forest, moving: Motion) -> tuple[Floats, Floats]:
    """Evidence at and below each node, and what of it reaches its parent. Rows are scaled: products do not vanish."""
    below = likelihood(forest.correct, forest.graded)
    known = forest.right != UNKNOWN
    outcomes = np.where(forest.right[known, None] == 1, moving.right, 1 - moving.right)
    np.multiply.at(below, forest.ends[known], outcomes)
    upward = np.empty_like(below)
    back = moving.step.T.copy()
    for nodes, forks in zip(reversed(forest.levels), reversed(forest.forks), strict=True):
        evidence = below[nodes]
        evidence /= evidence.max(axis=1, keepdims=True)
        np.matmul(evidence, back, out=upward[nodes])
        if forks:
            np.multiply.at(below, forest.parents[nodes], upward[nodes])
        elif nodes.start:
            below[forest.parents[nodes]] *= upward[nodes]
    return below, upward
