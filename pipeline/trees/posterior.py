"""What the rollouts of a tree say about the value of each of its nodes: a Beta posterior, from all rollouts that were issued at
the node or pass through it. Pure.

The value of a step, given that of the step before, V, has the mean V and the variance V (1 - V) / (1 + s), as Beta(s V,
s (1 - V)) has. s, the *strength*, is near 0 where a step decides all, and large where it decides little; it is learned from the
measured prefixes of a run (`learned_strength`).

The prior of a node follows from Beta(a, b), which the value of its parent has without the rollouts through the node. With
S = a + b and m = a / S it has the mean m, and the variance m (1 - m) (1 / (1 + S) + S / ((1 + S) (1 + s))): the parent's own,
and what the step adds. So it is taken for Beta(r m, r (1 - m)) with r = s S / (1 + s + S). Along a rollout that nobody else has
followed r falls from step to step: what comes late in a wrong rollout is lost rather surely.

A posterior does not depend on why a node got its rollouts, so all of them count; its mean is no label, and is not unbiased.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import betainc, betaincc, betaln

from pipeline.estimators.tree import Floats
from pipeline.trees.tree import NO_PARENT, RolloutTree, TreeNode

ROOT_STRENGTH = 1.0
"""Of Jeffreys' prior, Beta(1/2, 1/2), which the bare problem has."""
USUAL_STRENGTH = 1.0
"""Where a run has too few measured prefixes to learn from."""
LEAST_STRENGTH = 0.01
"""Of a prior: no depth makes a single rollout sure of a value."""
_STRENGTHS = np.geomspace(0.1, 100.0, 41)
_LEAST_PAIRS = 30
"""Measured prefixes that a strength is learned from."""
Numbers = TypeVar("Numbers", float, Floats)
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
    """The strength with the largest likelihood: Beta-Binomial counts of each prefix given those before it, which have Jeffreys'
    prior. `USUAL_STRENGTH` for fewer than 30 prefixes with rollouts."""
    used = np.array([step for step in steps if step.graded_before and step.graded], dtype=np.float64).reshape(-1, 4)
    if len(used) < _LEAST_PAIRS:
        return USUAL_STRENGTH
    before, graded_before, correct, graded = used.T
    known = graded_before + ROOT_STRENGTH
    mean = (before + ROOT_STRENGTH / 2) / known
    likelihoods = [_log_likelihood(mean, correct, graded, strength_after(known, strength)) for strength in _STRENGTHS]
    return float(_STRENGTHS[int(np.argmax(likelihoods))])


def strength_after(known: Numbers, strength: float) -> Numbers:
    """The strength of the prior of a node whose parent has a posterior with the strength `known`: see the module."""
    return strength * known / (1.0 + strength + known)


def _log_likelihood(mean: Floats, correct: Floats, graded: Floats, strength: Floats) -> float:
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
            a, b = _without(tree.nodes[node.parent], found[node.parent], node)
            of_prior = max(LEAST_STRENGTH, strength_after(a + b, strength)) / (a + b)
            found.append(Posterior(of_prior * a + correct, of_prior * b + wrong))
    return found


def _without(above: TreeNode, posterior: Posterior, node: TreeNode) -> Posterior:
    """The posterior of a node's parent without the rollouts through the node itself."""
    correct, graded = node.passed.correct, node.passed.graded
    all_correct = above.correct
    a = posterior.a - min(correct, all_correct)
    b = posterior.b - min(graded - correct, above.graded - all_correct)
    return Posterior(a, b)


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
