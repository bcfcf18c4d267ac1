"""The posterior of every prefix's value from all rollouts of its problem: sum-product on the tree of prefixes.

Values change along the tree according to `TransitionModel`. Rollouts are Bernoulli trials of their prefix's value, and a
chain's outcome is a trial of its last measured prefix. On a single chain this is the forward-backward algorithm of a hidden
Markov model (Rabiner 1989). On a tree it is Pearl's belief propagation, which is exact too. A step that rollouts reproduced has
its own transition matrix, in which these rollouts are evidence on the values before and after the step.

The kernel of a few chains was learned from too little to be sure that steps say something about each other. So the posterior
is averaged over the kernel and a model in which they do not, weighted by how well each explains the rollouts of the unit
(Bayesian model averaging, Hoeting et al. 1999). The prior odds are even, and fall with the chains of earlier units. On the
bench's families with 4 to 16 steps, intervals of runs of 1 to 3 problems then hold 93 to 99 % of the values, with the kernel
alone 86 to 99 %. From about eight problems on, one of the two models has nearly all of the weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.estimators.lasting_drop import FLOOR, ROUNDING, SHARE
from pipeline.estimators.pooled.forest import Forest
from pipeline.estimators.pooled.grid import GRID, LEAST, POINTS, exp_scaled, likelihood, mass_above, share_above
from pipeline.estimators.pooled.kernel import TransitionModel, unrelated
from pipeline.estimators.pooled.reproduction import ANGLES, KINDS, factor, learned_counts
from pipeline.estimators.tree import ROOT, UNKNOWN, Flags, Floats, Ints

LARGE_FALL = 0.2
"""A value that decreases by at least this at one step has a large fall."""
_FALLS: Flags = GRID[:, None] - GRID >= LARGE_FALL
_BOUNDED: Flags = np.maximum(GRID[:, None], FLOOR) * SHARE + ROUNDING >= GRID
"""Whether a value is at most what `lasting_drop` allows after the best value before it."""
_NEGLIGIBLE = 1e-4
"""A model with less weight is left out."""
_NEVER = -1e9
"""Logarithm of negligible evidence, which no number of branches outweighs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """For N nodes: `mass` (N, POINTS), the distributions of their values; `with_parent` (N,), the covariance of a node's value
    and its parent's, 0 for a root."""

    mass: Floats
    with_parent: Floats


def posterior(forest: Forest, moving: TransitionModel) -> Posterior:
    """See the module. The time is linear in the number of nodes."""
    return _summary(forest, moving, _downward(forest, moving))


def posterior_with_falls(forest: Forest, moving: TransitionModel) -> tuple[Posterior, Floats]:
    """The posterior, and for each node the probability of a large fall at the next step, (N,): the largest of several next
    steps, and of the outcome of a wrong chain. Decisions about rollouts do not need it, so `posterior` leaves it out."""
    found = _downward(forest, moving)
    return _summary(forest, moving, found), _falls(forest, moving, found)


def weighted_models(forest: Forest, moving: TransitionModel, chains: int) -> list[tuple[float, TransitionModel]]:
    """The kernel's model and that of unrelated steps with their posterior probabilities, see the module. `chains`: the number
    of chains that the kernel was learned from."""
    other = unrelated(moving)
    earlier = max(0, chains - len(forest.ends))
    odds = np.exp(min(_log_evidence(forest, other) - _log_evidence(forest, moving), 700.0)) / (1 + earlier)
    weights = 1 / (1 + odds), odds / (1 + odds)
    kept = [each for each in zip(weights, (moving, other), strict=True) if each[0] > _NEGLIGIBLE]
    return kept if len(kept) > 1 else [(1.0, kept[0][1])]


def averaged(forest: Forest, models: Sequence[tuple[float, TransitionModel]]) -> tuple[Posterior, Floats]:
    """`posterior_with_falls`, averaged over models with these weights."""
    found = [(weight, *posterior_with_falls(forest, model)) for weight, model in models]
    mass = np.asarray(sum(weight * each.mass for weight, each, _ in found))
    falls = np.asarray(sum(weight * each for weight, _, each in found))
    with_parent = np.zeros(len(mass))
    for weight, each, _ in found:
        apart = (each.mass - mass) @ GRID
        with_parent += weight * (
            each.with_parent + np.where(forest.parents == ROOT, 0.0, apart * apart[forest.parents])
        )
    return Posterior(mass=mass, with_parent=with_parent), falls


def _log_evidence(forest: Forest, moving: TransitionModel) -> float:
    """The logarithm of the probability of all evidence, up to a constant that is the same for all models."""
    below, _, scale = _collect_evidence(forest, moving, _own_steps(forest, moving))
    return float(scale + np.log(below[forest.levels[0]] @ moving.start).sum())


def _summary(forest: Forest, moving: TransitionModel, found: "_Evidence") -> Posterior:
    mean = found.mass @ GRID
    with_parent = np.zeros(len(mean))
    inner = found.inner
    together = np.einsum("ng,ng->n", (found.apart[inner] * GRID) @ (moving.step * GRID), found.below[inner])
    if len(taken := forest.taken.nodes):
        after = found.own_steps @ (found.below[taken] * GRID)[:, :, None]
        together[taken - inner.start] = np.einsum("ng,ng->n", found.apart[taken] * GRID, after[:, :, 0])
    with_parent[inner] = together / found.total[inner] - mean[inner] * mean[forest.parents[inner]]
    return Posterior(mass=found.mass, with_parent=with_parent)


def _falls(forest: Forest, moving: TransitionModel, found: "_Evidence") -> Floats:
    falls = np.zeros(len(found.mass))
    inner = found.inner
    falling = np.einsum("ng,ng->n", found.apart[inner] @ (moving.step * _FALLS), found.below[inner])
    if len(taken := forest.taken.nodes):
        steps = found.own_steps * _FALLS
        falling[taken - inner.start] = np.einsum("ng,ngh,nh->n", found.apart[taken], steps, found.below[taken])
    np.maximum.at(falls, forest.parents[inner], falling / found.total[inner])
    wrong = forest.ends[forest.right == 0]
    np.maximum.at(falls, wrong, mass_above(found.mass[wrong], LARGE_FALL))
    return falls


def path_probabilities(
    forest: Forest, moving: TransitionModel, threshold: float
) -> list[tuple[list[float], list[float]]]:
    """For each chain: the probability at each of its measured prefixes, the bare problem first, that this value and all later
    ones are at most `threshold` and the chain is not right; and for each step that ends in one of them, the probability that
    it is bad by `lasting_drop`."""
    found = _downward(forest, moving)
    own = {node: index for index, node in enumerate(forest.taken.nodes.tolist())}
    low = 1 - share_above(threshold)
    chains: list[tuple[list[float], list[float]]] = []
    for end, right in zip(forest.ends.tolist(), forest.right.tolist(), strict=True):
        nodes = [end]
        while (above := int(forest.parents[nodes[0]])) != ROOT:
            nodes.insert(0, above)
        # Given the evidence, a chain's values are a Markov chain with these steps.
        steps = [(found.own_steps[own[node]] if node in own else moving.step) * found.below[node] for node in nodes[1:]]
        steps = [each / each.sum(axis=1, keepdims=True) for each in steps]
        mass = found.mass[nodes]
        chains.append((_stays_low(mass, steps, low, low * (right != 1)), _dropped(mass[0], steps)))
    return chains


def _stays_low(mass: Floats, steps: Sequence[Floats], low: Floats, at_end: Floats) -> list[float]:
    """For each of a chain's values, the probability that it and all later ones are low: a backward recursion. `low`, `at_end`
    (POINTS,): the probability that a value is low, and that the last one is."""
    stays = [at_end]
    for moves in reversed(steps):
        stays.append(low * (moves @ stays[-1]))
    return [float(here @ later) for here, later in zip(mass, reversed(stays), strict=True)]


def _dropped(first: Floats, steps: Sequence[Floats]) -> list[float]:
    """For each step, the probability that the values from it on are at most what `lasting_drop` allows after the best value
    before it. The state is the best value so far together with the value, (POINTS, POINTS)."""
    ahead = [np.ones((POINTS, POINTS))]
    for moves in reversed(steps):
        ahead.append((_BOUNDED * ahead[-1]) @ moves.T)
    best, dropped = np.diag(first), []
    for moves, later in zip(steps, reversed(ahead[1:]), strict=True):
        dropped.append(float((best * later).sum()))
        best = best @ moves
        best = np.tril(best) + np.diag(np.triu(best, 1).sum(axis=0))
    return dropped


def expected_moves(forest: Forest, moving: TransitionModel) -> tuple[Floats, Floats, Floats]:
    """The distributions (N, POINTS); the expected number of steps from each value to each, (POINTS, POINTS); and the expected
    number of steps by kind and probability of their reproduction, (KINDS, ANGLES)."""
    found = _downward(forest, moving)
    inner = found.inner
    before = found.apart[inner] / found.total[inner, None]
    if not len(taken := forest.taken.nodes):
        return found.mass, before.T @ found.below[inner] * moving.step, np.zeros((KINDS, ANGLES))
    positions = taken - inner.start
    pairs = before[positions][:, :, None] * found.own_steps * found.below[taken][:, None, :]
    before[positions] = 0.0
    moves = before.T @ found.below[inner] * moving.step + pairs.sum(axis=0)
    return found.mass, moves, learned_counts(forest.taken.seen, pairs, moving.habits)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Evidence:
    """For N nodes, (N, POINTS) each: `mass`, as in `Posterior`; `apart`, the evidence on the parent's value without the node's
    own branch; `below`, the evidence on the node's value from its branch. `total` (N,): the sum of their product over all pairs
    of values. `own_steps` (E, POINTS, POINTS): the transition matrices of the steps in `Forest.taken`. `inner`: the nodes with
    a parent; `apart` is undefined for the others."""

    mass: Floats
    apart: Floats
    below: Floats
    total: Floats
    own_steps: Floats
    inner: slice


def _downward(forest: Forest, moving: TransitionModel) -> _Evidence:
    own_steps = _own_steps(forest, moving)
    below, upward, _ = _collect_evidence(forest, moving, own_steps)
    mass, apart, total = np.empty_like(below), upward, np.empty(len(below))
    for nodes, own in zip(forest.levels, forest.taken.levels, strict=True):
        if nodes.start:
            np.divide(mass[forest.parents[nodes]], upward[nodes], out=apart[nodes])
            joint = apart[nodes] @ moving.step
            if len(taken := forest.taken.nodes[own]):
                joint[taken - nodes.start] = (apart[taken][:, None] @ own_steps[own])[:, 0]
            joint *= below[nodes]
        else:
            joint = moving.start * below[nodes]
        total[nodes] = joint.sum(axis=1)
        np.divide(joint, total[nodes, None], out=mass[nodes])
    inner = slice(forest.levels[0].stop, None)
    return _Evidence(mass=mass, apart=apart, below=below, total=total, own_steps=own_steps, inner=inner)


def _collect_evidence(forest: Forest, moving: TransitionModel, own_steps: Floats) -> tuple[Floats, Floats, float]:
    """Evidence at and below each node, its message to the parent, and the logarithm of the factor by which all rows together
    were scaled down so that products do not underflow."""
    below = likelihood(forest.correct, forest.tried, moving.misses)
    known = forest.right != UNKNOWN
    scale = _multiply(
        below, forest.ends[known], np.where(forest.right[known, None] == 1, moving.right, 1 - moving.right)
    )
    upward = np.empty_like(below)
    back = moving.step.T.copy()
    for nodes, own, forks in reversed(list(zip(forest.levels, forest.taken.levels, forest.forks, strict=True))):
        evidence = below[nodes]
        most = evidence.max(axis=1, keepdims=True)
        scale += float(np.log(most).sum())
        evidence /= most
        np.matmul(evidence, back, out=upward[nodes])
        if len(taken := forest.taken.nodes[own]):
            upward[taken] = (own_steps[own] @ below[taken][:, :, None])[:, :, 0]
        if forks:
            scale += _multiply(below, forest.parents[nodes], upward[nodes])
        elif nodes.start:
            below[forest.parents[nodes]] *= upward[nodes]
    return below, upward, scale


def _own_steps(forest: Forest, moving: TransitionModel) -> Floats:
    """Transition matrices of the steps in `Forest.taken`, (E, POINTS, POINTS). Many steps have the same."""
    positions = {seen: position for position, seen in enumerate(dict.fromkeys(forest.taken.seen))}
    factors = [factor(seen, moving.habits) for seen in positions]
    different = moving.step * np.array(factors, dtype=np.float64).reshape(-1, POINTS, POINTS)
    return different.take([positions[seen] for seen in forest.taken.seen], axis=0)


def _multiply(rows: Floats, positions: Ints, factors: Floats) -> float:
    """Multiply rows by factors. Many factors may belong to one row, so logarithms are added to avoid underflow, and the rows
    scaled down. Returns the logarithm of the scale of all."""
    where, which = np.unique(positions, return_inverse=True)
    if len(where) == len(positions):
        rows[positions] *= factors
        return 0.0
    logs = np.where(rows[where] > LEAST, np.log(rows[where]), _NEVER)
    np.add.at(logs, which, np.log(factors))
    rows[where] = exp_scaled(logs)
    return float(logs.max(axis=1).sum())
