"""The pooled estimator, what it asks for: each rollout goes where it is expected to teach most about all steps of its chain.

Around the present beliefs the values of a chain are treated as jointly normal: a rollout of prefix k lowers the summed variance
of the chain's values by sum_j Cov(V_k, V_j)^2 / (Var V_k + E[V_k (1 - V_k)]) (the gain of Kalman 1960). Covariances along the
chain are products of those from step to step, as in a Markov chain with linear regressions. Rollouts that are asked for
together are chosen one by one, each in the light of the ones before, so that none is counted twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.choices import BudgetUnit
from pipeline.config import EstimatorConfig
from pipeline.estimate.beliefs import Beliefs, beliefs
from pipeline.estimate.grid import Floats, Ints, mean_of, variance_of
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
_CELLS = 2_000_000
"""Chains are taken in groups whose covariances have at most so many entries: 16 MB."""
_LEAST_VARIANCE = 1e-9

_Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
    """Some chains, padded to the longest: `nodes` (C, M) of the forest, `there` where a chain has one, `prices` of a rollout,
    infinite where none can be had. `left` (C,): rollouts a chain may take now; `least` (C,): the gain per price it is worth.
    """

    nodes: Ints
    there: _Bools
    prices: Floats
    left: Ints
    least: Floats


def next_rollouts(
    problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, config: EstimatorConfig, kernel: Kernel
) -> list[dict[str, int]]:
    """See `allocation.next_rollouts`. A chain is done when the best rollout for it would teach less than one does where
    all of its values are known to `config.target_sd`, or when its budget is spent."""
    if not problems:
        return []
    forest = forest_of(problems, trials)
    found = beliefs(forest, motion(kernel))
    evenly = correlation(kernel) < _INFORMATIVE
    more = np.zeros(len(forest.parents), dtype=np.int64)
    for group in _groups(problems, forest, rollouts, config):
        asked = _chosen(group, forest, found, evenly=evenly)
        np.maximum.at(more, group.nodes[group.there], asked[group.there])
    return [
        {tree.prefix_ids[node]: int(more[start + node]) for node in np.flatnonzero(more[start:stop])}
        for tree, start, stop in zip(problems, forest.offsets[:-1], forest.offsets[1:], strict=True)
    ]


def _groups(problems: Sequence[Tree], forest: Forest, rollouts: int, config: EstimatorConfig) -> Iterator[_Group]:
    shares = np.concatenate([tree.shares for tree in problems])
    closed = np.concatenate([tree.closed for tree in problems])
    prices = np.concatenate([tree.prices for tree in problems])
    paths = [path + offset for tree, offset in zip(problems, forest.offsets, strict=False) for path in tree.paths]
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
            least=steps * config.target_sd**4 / _NOISE / mean_price,
        )


def _left(nodes: Ints, usable: _Bools, shares: Floats, forest: Forest, rollouts: int, config: EstimatorConfig) -> Ints:
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


def _chosen(group: _Group, forest: Forest, found: Beliefs, *, evenly: bool) -> Ints:
    """How many rollouts of each prefix every chain asks for, (C, M)."""
    mass = found.mass[group.nodes]
    variance = np.where(group.there, np.maximum(variance_of(mass), _LEAST_VARIANCE), 0.0)
    mean = mean_of(mass)
    noise = np.maximum(mean * (1 - mean) - variance, _LEAST_VARIANCE)
    issued, graded = forest.issued[group.nodes], forest.graded[group.nodes]
    prices = group.prices * (issued + 1) / (graded + 1)
    covariance = _covariances(group, forest, found, variance)
    asked = np.zeros(group.nodes.shape, dtype=np.int64)
    active = np.flatnonzero(group.left > 0)
    while len(active):
        spread = np.einsum("ckk->ck", covariance[active])
        gain = (covariance[active] ** 2).sum(axis=2) / (spread + noise[active]) / prices[active]
        if evenly:
            order = np.where(np.isinf(prices[active]), np.inf, issued[active] + asked[active])
            best = order.argmin(axis=1)
        else:
            best = gain.argmax(axis=1)
        rows = np.arange(len(active))
        worth = gain[rows, best] > group.least[active]
        active, best, rows = active[worth], best[worth], rows[worth]
        asked[active, best] += 1
        column = covariance[active, best]
        shrink = 1 / (spread[rows, best] + noise[active, best])
        covariance[active] -= column[:, :, None] * column[:, None, :] * shrink[:, None, None]
        active = active[asked[active].sum(axis=1) < group.left[active]]
    return asked


def _covariances(group: _Group, forest: Forest, found: Beliefs, variance: Floats) -> Floats:
    """(C, M, M); zero where a chain has no node."""
    chains, longest = group.nodes.shape
    covariance = np.zeros((chains, longest, longest))
    for place in range(longest):
        if place:
            # A path may skip nodes that another chain has between two of its own: the slope is then that of the last step.
            with_parent = np.where(group.there[:, place], found.with_parent[group.nodes[:, place]], 0.0)
            before = variance[:, place - 1]
            slope = np.divide(with_parent, before, out=np.zeros_like(before), where=before > 0)
            covariance[:, :place, place] = covariance[:, :place, place - 1] * slope[:, None]
            covariance[:, place, :place] = covariance[:, :place, place]
        covariance[:, place, place] = variance[:, place]
    return covariance
