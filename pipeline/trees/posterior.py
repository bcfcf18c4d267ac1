"""What the rollouts of a tree say about the value of each of its nodes: a Beta posterior, from all rollouts that were issued at
the node or pass through it. Pure.

The prior of a node is Beta(s m, s (1 - m)), where m is the mean of its parent without the rollouts through the node, and s, the
*strength*, says how far the value of a step is from that of the step before: near 0 where a step decides all, large where it
decides little. s is learned from the measured prefixes of a run (`learned_strength`). A posterior does not depend on why a node
got its rollouts, so all of them count; its mean is no label, and is not unbiased.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincc, betaln

from pipeline.estimators.tree import Floats
from pipeline.trees.tree import NO_PARENT, RolloutTree, TreeNode

ROOT_STRENGTH = 1.0
"""Of Jeffreys' prior, Beta(1/2, 1/2), which the bare problem has."""
USUAL_STRENGTH = 1.0
"""Where a run has too few measured prefixes to learn from."""
_STRENGTHS = np.geomspace(0.1, 100.0, 41)
_LEAST_PAIRS = 30
"""Measured prefixes that a strength is learned from."""
_BINS = 64
_EDGES = np.linspace(0.0, 1.0, _BINS + 1)


class Posterior(NamedTuple):
    """Beta(a, b). A value that is known has the other parameter 0."""

    a: float
    b: float

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    def above(self, threshold: float) -> float:
        """P(V > threshold)."""
        return float(sides([self], threshold)[0, 0])


class MeasuredStep(NamedTuple):
    """The graded rollouts of a prefix, and those of the prefix one step before."""

    correct_before: int
    graded_before: int
    correct: int
    graded: int


def learned_strength(steps: Iterable[MeasuredStep]) -> float:
    """The strength with the largest likelihood: Beta-Binomial counts of each prefix given the mean before it. `USUAL_STRENGTH`
    for fewer than 30 prefixes with rollouts."""
    used = np.array([step for step in steps if step.graded_before and step.graded], dtype=np.float64).reshape(-1, 4)
    if len(used) < _LEAST_PAIRS:
        return USUAL_STRENGTH
    before, graded_before, correct, graded = used.T
    mean = (before + 0.5) / (graded_before + 1.0)
    likelihoods = [_log_likelihood(mean, correct, graded, strength) for strength in _STRENGTHS]
    return float(_STRENGTHS[int(np.argmax(likelihoods))])


def _log_likelihood(mean: Floats, correct: Floats, graded: Floats, strength: float) -> float:
    a, b = strength * mean, strength * (1 - mean)
    return float((betaln(a + correct, b + graded - correct) - betaln(a, b)).sum())


def posteriors(tree: RolloutTree, strength: float) -> list[Posterior]:
    """The posterior of each node. That of a chain that has ended is its outcome, where that is known."""
    found: list[Posterior] = []
    for node in tree.nodes:
        if node.ended and node.outcome is not None:
            found.append(Posterior(float(node.outcome), float(not node.outcome)))
            continue
        correct = node.correct
        wrong = node.graded - correct
        if node.parent == NO_PARENT:
            half = ROOT_STRENGTH / 2
            found.append(Posterior(half + correct, half + wrong))
        else:
            mean = _mean_without(tree.nodes[node.parent], found[node.parent], node)
            found.append(Posterior(strength * mean + correct, strength * (1 - mean) + wrong))
    return found


def _mean_without(above: TreeNode, posterior: Posterior, node: TreeNode) -> float:
    """The mean of a node's parent without the rollouts through the node itself."""
    correct, graded = node.passed.correct, node.passed.graded
    all_correct = above.correct
    a = posterior.a - min(correct, all_correct)
    b = posterior.b - min(graded - correct, above.graded - all_correct)
    return a / (a + b)


def sides(nodes: Sequence[Posterior], threshold: float) -> Floats:
    """For each value V the row P(V > t), P(V <= t), E[V; V > t] and E[V; V <= t], where t is the threshold.

    E[V; V > t] of Beta(a, b) is its mean times P(W > t) with W of Beta(a + 1, b).
    """
    a, b = np.array(nodes, dtype=np.float64).reshape(-1, 2).T
    mean = a / (a + b)
    known = (a == 0) | (b == 0)
    above = np.where(known, mean > threshold, betaincc(np.where(known, 1.0, a), np.where(known, 1.0, b), threshold))
    part = mean * np.where(known, above, betaincc(np.where(known, 1.0, a + 1), np.where(known, 1.0, b), threshold))
    found: Floats = np.stack([above, 1 - above, part, mean - part], axis=1)
    return found


def probabilities_better(nodes: Sequence[Posterior]) -> Floats:
    """P(value of row > value of column) for each two nodes. Values in the same 64th of 0 to 1 count as equal: half for each."""
    cumulative = np.array([_cumulative(node) for node in nodes])
    masses = np.diff(cumulative, axis=1)
    below = (cumulative[:, :-1] + cumulative[:, 1:]) / 2
    better: Floats = masses @ below.T
    return better


def _cumulative(node: Posterior) -> Floats:
    """P(V <= edge) at the edges of equal bins; the first bin holds 0, the last one 1."""
    if not node.a:
        return np.concatenate([[0.0], np.ones(_BINS)])
    if not node.b:
        return np.concatenate([np.zeros(_BINS), [1.0]])
    found: Floats = betainc(node.a, node.b, _EDGES)
    return found
