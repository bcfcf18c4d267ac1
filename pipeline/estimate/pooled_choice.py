"""The pooled estimator, what it asks for: each rollout goes where it is expected to teach most about all steps of its chain.

Around the present beliefs the values of a chain are treated as jointly normal: a rollout of prefix k lowers the summed variance
of the chain's values by sum_j Cov(V_k, V_j)^2 / (Var V_k + E[V_k (1 - V_k)]) (the gain of Kalman 1960). Covariances along the
chain are products of those from step to step, as in a Markov chain with linear regressions. Rollouts that are asked for
together are chosen one by one, each in the light of the ones before, so that none is counted twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.choices import BudgetUnit
from pipeline.config import EstimatorConfig
from pipeline.estimate.beliefs import Beliefs, beliefs
from pipeline.estimate.grid import Flags, Floats, Ints, mean_of, variance_of
from pipeline.estimate.kernel import Kernel, correlation, motion
from pipeline.estimate.tree import Forest, Tree, forest_of
from pipeline.records import Trials

_FIRST = 2
_GROWTH = 0.2
"""A chain asks for two rollouts at first, and later for a fifth of what it has: few rounds, and few rollouts in vain."""
_NOISE = 1 / 4
"""The largest variance that a rollout can have."""
_INFORMATIVE = 0.1
"""Below this correlation of neighbouring values a chain's rollouts are spread evenly."""
_PILOT_CHAINS = 64
"""Until so many chains are known every prefix gets a rollout, whatever the prior believes to know of it. Not on a budget."""
_CELLS = 2_000_000
"""Chains are taken in groups whose covariances have at most so many entries: 16 MB."""
_LEAST_VARIANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
    """Some chains, padded to the longest: `nodes` (C, M) of the forest, `there` where a chain has one, `prices` of a rollout,
    infinite where none can be had. `left` (C,): rollouts a chain may take now; `least` (C,): the gain per price it is worth.
    """

    nodes: Ints
    there: Flags
    prices: Floats
    left: Ints
    least: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Told:
    """Beliefs of N nodes as moments: the variance of a value, the mean variance of a rollout given it, and the covariance
    with the parent's value, (N,) each."""

    variance: Floats
    noise: Floats
    with_parent: Floats


def next_rollouts(
    problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, config: EstimatorConfig, kernel: Kernel
) -> list[dict[str, int]]:
    """See `allocation.next_rollouts`. A chain is done when the best rollout for it would teach less than one does where
    all of its values are known to `config.target_sd`, or when its budget is spent."""
    if not problems:
        return []
    forest = forest_of(problems, trials)
    told = _told(beliefs(forest, motion(kernel)))
    alike = correlation(kernel)
    more = np.zeros(len(forest.parents), dtype=np.int64)
    for group in _groups(problems, forest, rollouts, config, alike):
        asked = _chosen(group, forest, told, evenly=alike < _INFORMATIVE)
        np.maximum.at(more, group.nodes[group.there], asked[group.there])
    if kernel.chains < _PILOT_CHAINS and config.budget is None:
        _begin_with_a_pilot(more, forest)
    return [_named(tree, more[numbers]) for tree, numbers in zip(problems, forest.numbers, strict=True)]


def _begin_with_a_pilot(more: Ints, forest: Forest) -> None:
    """Problems with prefixes that have no rollout ask for one of each, and for others later, in the light of these."""
    unseen = (forest.issued == 0) & ~forest.closed
    for numbers in forest.numbers:
        if unseen[numbers].any():
            more[numbers] = unseen[numbers]


def _named(tree: Tree, more: Ints) -> dict[str, int]:
    return {tree.prefix_ids[node]: int(more[node]) for node in more.nonzero()[0]}


def _told(found: Beliefs) -> _Told:
    mean, variance = mean_of(found.mass), variance_of(found.mass)
    return _Told(
        variance=np.maximum(variance, _LEAST_VARIANCE),
        noise=np.maximum(mean * (1 - mean) - variance, _LEAST_VARIANCE),
        with_parent=found.with_parent,
    )


def _groups(
    problems: Sequence[Tree], forest: Forest, rollouts: int, config: EstimatorConfig, alike: float
) -> Iterator[_Group]:
    shares, prices = np.empty(len(forest.parents)), np.empty(len(forest.parents))
    closed = np.empty(len(forest.parents), dtype=np.bool_)
    for tree, numbers in zip(problems, forest.numbers, strict=True):
        shares[numbers], prices[numbers], closed[numbers] = tree.shares, tree.prices, tree.closed
    paths = [numbers[path] for tree, numbers in zip(problems, forest.numbers, strict=True) for path in tree.paths]
    paths.sort(key=len)
    while paths:
        size = max(1, _CELLS // len(paths[-1]) ** 2)
        together, paths = paths[-size:], paths[:-size]
        nodes = np.zeros((len(together), len(together[-1])), dtype=np.int64)
        there = np.arange(nodes.shape[1]) < np.array([[len(path)] for path in together])
        nodes[there] = np.concatenate(together)
        usable = there & ~closed[nodes]
        left = _left(nodes, usable, shares, forest, rollouts, config)
        steps = there.sum(axis=1)
        mean_price = np.where(there, prices[nodes], 0.0).sum(axis=1) / steps
        yield _Group(
            nodes=nodes,
            there=there,
            prices=np.where(usable, prices[nodes] * shares[nodes], np.inf),
            left=np.where(usable.any(axis=1), left, 0),
            least=_reach(steps, alike) * config.target_sd**4 / _NOISE / mean_price,
        )


def _reach(steps: Ints, alike: float) -> Floats:
    """How many steps of a chain a rollout tells about: sum_j r^(2 |k - j|), on average over its prefixes k."""
    far = np.arange(1, steps.max() + 1)
    powers = max(alike, 0.0) ** (2 * far)
    return np.array([1 + 2 * float(((count - far) * powers)[: count - 1].sum()) / count for count in steps.tolist()])


def _left(nodes: Ints, usable: Flags, shares: Floats, forest: Forest, rollouts: int, config: EstimatorConfig) -> Ints:
    """How many rollouts each chain may take in this round. Of a shared prefix a chain bears its share."""
    own = np.where(usable, shares[nodes], 0.0)
    issued = forest.issued[nodes]
    taken = (own * issued).sum(axis=1)
    if config.budget is None:
        left = rollouts * own.sum(axis=1) - taken
    elif config.budget_unit is BudgetUnit.rollouts:
        left = config.budget - taken
    else:
        # A rollout counts as a token at least: engines may give back nothing at all.
        tokens = (own * np.maximum(forest.tokens[nodes], issued)).sum(axis=1)
        left = (config.budget - tokens) / np.where(taken > 0, tokens / np.maximum(taken, _LEAST_VARIANCE), 1.0)
    have = np.where(usable, issued, 0).sum(axis=1)
    return np.minimum(np.ceil(np.maximum(left, 0)), np.maximum(_FIRST, np.ceil(_GROWTH * have))).astype(np.int64)


def _chosen(group: _Group, forest: Forest, told: _Told, *, evenly: bool) -> Ints:
    """How many rollouts of each prefix every chain asks for, (C, M)."""
    variance = np.where(group.there, told.variance[group.nodes], 0.0)
    noise = told.noise[group.nodes]
    issued = forest.issued[group.nodes]
    prices = group.prices * (issued + 1) / (forest.graded[group.nodes] + 1)
    covariance = _covariances(group, told, variance)
    asked = np.zeros(group.nodes.shape, dtype=np.int64)
    active = np.flatnonzero(group.left > 0)
    picks = 0
    covariance, noise, prices = covariance[active], noise[active], prices[active]
    while len(active):
        spread = np.einsum("ckk->ck", covariance)
        gain = np.einsum("ckj,ckj->ck", covariance, covariance) / ((spread + noise) * prices)
        if evenly:
            best = np.where(np.isinf(prices), np.inf, issued[active] + asked[active]).argmin(axis=1)
        else:
            best = gain.argmax(axis=1)
        rows = np.arange(len(active))
        goes_on = gain[rows, best] > group.least[active]
        asked[active[goes_on], best[goes_on]] += 1
        picks += 1
        column = covariance[rows, best]
        shrink = 1 / (spread[rows, best] + noise[rows, best])
        goes_on &= picks < group.left[active]
        if not goes_on.all():
            active, column, shrink = active[goes_on], column[goes_on], shrink[goes_on]
            covariance, noise, prices = covariance[goes_on], noise[goes_on], prices[goes_on]
        covariance -= (column * shrink[:, None])[:, :, None] * column[:, None, :]
    return asked


def _covariances(group: _Group, told: _Told, variance: Floats) -> Floats:
    """(C, M, M); zero where a chain has no node."""
    chains, longest = group.nodes.shape
    covariance = np.zeros((chains, longest, longest))
    for place in range(longest):
        if place:
            # A path may skip nodes that another chain has between two of its own: the slope is then that of the last step.
            with_parent = np.where(group.there[:, place], told.with_parent[group.nodes[:, place]], 0.0)
            before = variance[:, place - 1]
            slope = np.divide(with_parent, before, out=np.zeros_like(before), where=before > 0)
            covariance[:, :place, place] = covariance[:, :place, place - 1] * slope[:, None]
            covariance[:, place, :place] = covariance[:, :place, place]
        covariance[:, place, place] = variance[:, place]
    return covariance
