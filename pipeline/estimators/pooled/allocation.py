"""Allocation of the pooled estimator: each rollout goes to the prefix where it reduces the variance of its chain most.

Around the current posterior, the values of a chain are treated as jointly normal. A rollout of prefix k reduces the summed
variance of the chain's values by sum_j Cov(V_k, V_j)^2 / (Var V_k + E[V_k (1 - V_k)]) (the gain of Kalman 1960). Covariances
along the chain are products of those between neighbouring steps, as in a Markov chain with linear regressions. The rollouts of
one round are chosen one by one. Each choice accounts for the earlier ones, so no information is counted twice. With
`goal=locate` the changes V_j - V_(j-1) count as much as the values V_j.

The chains of a problem together never exceed a budget in rollouts. They exceed a budget in tokens by about one rollout per
chain, because the cost of a rollout is only known from earlier ones. From the same state, a larger budget or a smaller target
requests at least as many rollouts of every prefix, if chains share none. Over several rounds the larger plan need not contain
the smaller one, because its decisions depend on other rollouts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.config.choices import BudgetUnit, Goal
from pipeline.core.records import Trials
from pipeline.estimators.pooled.forest import Forest, forest_of
from pipeline.estimators.pooled.grid import mean_of, variance_of
from pipeline.estimators.pooled.kernel import Kernel, correlation, transition_model
from pipeline.estimators.pooled.posterior import Posterior, posterior
from pipeline.estimators.settings import PooledConfig
from pipeline.estimators.tree import ROOT, Flags, Floats, Ints, Tree

_FIRST, _GROWTH = 4, 0.5
"""A chain requests four rollouts at first, and later half of what it has. Smaller rounds do not improve the allocation."""
_NOISE = 1 / 4
"""The largest variance of the outcome of a rollout."""
_INFORMATIVE = 0.1
"""Below this correlation of neighbouring values, a chain's rollouts are distributed evenly."""
_PILOT_CHAINS = 64
"""Until the kernel has learned from this number of chains, every prefix gets a rollout. Not used with a budget."""
_CELLS = 2_000_000
"""Largest number of covariance entries of a group of chains: 16 MB."""
_LOCATING = 0.5
"""Weight of the variances of changes with `goal=locate`; the rest is the weight of the variances of values. With 0 to 0.7 the
errors of values are equal at equal cost; with 0.5, jumps are located with 10 to 20 % fewer rollouts than with 0."""
_LEAST_VARIANCE = 1e-9
_SPENT = 1e-9
"""A remaining budget up to this counts as spent, because the shares of shared prefixes add up with rounding errors."""
_ALIKE = 1e-9
"""Gains within this relative difference are equal, and the first prefix wins: last digits depend on the other chains."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
    """C chains, padded to the longest length M.

    (C, M): `nodes` of the forest; `there`, whether the chain has a node; `prices` of a rollout, infinite where none can be
    sampled; `costs` of a rollout in the unit of the budget. (C,): `left`, the remaining budget; `most`, the largest number of
    rollouts in this round; `least`, the smallest gain per price that is worth a rollout.
    """

    nodes: Ints
    there: Flags
    prices: Floats
    costs: Floats
    left: Floats
    most: Ints
    least: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Moments:
    """Moments of the posterior of N nodes, (N,) each: the variance of the value, the mean variance of a rollout's outcome given
    the value, and the slope of the value's regression on the parent's value."""

    variance: Floats
    noise: Floats
    slope: Floats


def next_rollouts(
    problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, config: PooledConfig, kernel: Kernel
) -> list[dict[str, int]]:
    """See `base.Estimator.next_rollouts`. A chain is done when its best rollout would reduce the variance by less than a
    rollout does at a standard deviation of `config.wanted_sd` for all of its values, or when its budget is spent. Without a
    budget it may have `rollouts` times the number of its prefixes."""
    if not problems:
        return []
    forest = forest_of(problems, trials)
    moments = _moments(posterior(forest, transition_model(kernel)), forest.parents)
    alike = correlation(kernel)
    more = np.zeros(len(forest.parents), dtype=np.int64)
    for group in _groups(problems, forest, rollouts, config, alike):
        changes = _LOCATING if config.goal is Goal.locate else 0.0
        asked = _choose(group, forest, moments, changes, evenly=alike < _INFORMATIVE)
        np.maximum.at(more, group.nodes[group.there], asked[group.there])
    if config.budget is None or config.budget_unit is BudgetUnit.rollouts:
        _keep_within_budgets(more, problems, forest, rollouts, config)
    if kernel.chains < _PILOT_CHAINS and config.budget is None:
        _begin_with_a_pilot(more, forest)
    return [_named(tree, more[numbers]) for tree, numbers in zip(problems, forest.numbers, strict=True)]


def _keep_within_budgets(
    more: Ints, problems: Sequence[Tree], forest: Forest, rollouts: int, config: PooledConfig
) -> None:
    """Reduce the requests of chains that share prefixes to their common budget. The first prefixes of the tree come first."""
    for tree, numbers in zip(problems, forest.numbers, strict=True):
        if len(tree.chains) > 1:
            budget = config.budget * len(tree.chains) if config.budget else rollouts * int((~tree.closed).sum())
            left = max(0, budget - int(forest.issued[numbers][~tree.closed].sum()))
            more[numbers] = np.diff(np.minimum(np.cumsum(more[numbers]), left), prepend=0)


def _begin_with_a_pilot(more: Ints, forest: Forest) -> None:
    """Problems with prefixes without a rollout request one rollout of each of these, and nothing else in this round."""
    unseen = (forest.issued == 0) & ~forest.closed
    for numbers in forest.numbers:
        if unseen[numbers].any():
            more[numbers] = unseen[numbers]


def _named(tree: Tree, more: Ints) -> dict[str, int]:
    return {prefix: count for prefix, count in zip(tree.prefix_ids, more.tolist(), strict=True) if count}


def _moments(found: Posterior, parents: Ints) -> _Moments:
    mean, variance = mean_of(found.mass), np.maximum(variance_of(found.mass), _LEAST_VARIANCE)
    return _Moments(
        variance=variance,
        noise=np.maximum(mean * (1 - mean) - variance, _LEAST_VARIANCE),
        slope=np.where(parents == ROOT, 0.0, found.with_parent / variance[parents]),
    )


def _groups(
    problems: Sequence[Tree], forest: Forest, rollouts: int, config: PooledConfig, alike: float
) -> Iterator[_Group]:
    paths = [numbers[path] for tree, numbers in zip(problems, forest.numbers, strict=True) for path in tree.paths]
    paths.sort(key=len)
    while paths:
        size = max(1, _CELLS // len(paths[-1]) ** 2)
        together, paths = paths[-size:], paths[:-size]
        steps = np.array([len(path) for path in together])
        nodes = np.zeros((len(together), len(together[-1])), dtype=np.int64)
        there = np.arange(nodes.shape[1]) < steps[:, None]
        nodes[there] = np.concatenate(together)
        prices = forest.prices[nodes]
        usable = there & ~forest.closed[nodes]
        own = np.where(usable, forest.shares[nodes], 0.0)
        issued = np.where(usable, forest.issued[nodes], 0)
        mean_price = np.where(there, prices, 0.0).sum(axis=1) / steps
        most = np.maximum(_FIRST, np.ceil(_GROWTH * issued.sum(axis=1)).astype(np.int64))
        costs = own
        if config.budget is None:
            left = rollouts * own.sum(axis=1) - (own * issued).sum(axis=1)
        elif config.budget_unit is BudgetUnit.rollouts:
            left = config.budget - (own * issued).sum(axis=1)
        else:
            # A rollout counts as at least one token, because an engine may return an empty completion.
            tokens = (own * np.maximum(forest.tokens[nodes], issued)).sum(axis=1)
            priced = (own * prices * issued).sum(axis=1)
            left = config.budget - tokens
            costs = own * prices * np.divide(tokens, priced, out=np.zeros_like(tokens), where=priced > 0)[:, None]
            most = np.where(issued.any(axis=1), most, 1)
        yield _Group(
            nodes=nodes,
            there=there,
            prices=np.where(usable, prices * own, np.inf),
            costs=costs,
            left=np.where(usable.any(axis=1), left, 0.0),
            most=most,
            least=_reach(steps, alike) * config.wanted_sd**4 / _NOISE / mean_price,
        )


def _reach(steps: Ints, alike: float) -> Floats:
    """The number of steps that a rollout informs about: sum_j r^(2 |k - j|), averaged over the chain's prefixes k."""
    far = np.arange(steps.max())
    powers = max(alike, 0.0) ** (2 * far)
    powers[0] = 0.0
    nearer = np.cumsum(powers)[steps - 1] - np.cumsum(far * powers)[steps - 1] / steps
    return np.asarray(1 + 2 * nearer)


def _choose(group: _Group, forest: Forest, moments: _Moments, changes: float, *, evenly: bool) -> Ints:
    """The number of rollouts of each prefix that every chain requests, (C, M). `changes`: the weight of changes."""
    issued = forest.issued[group.nodes]
    asked = np.zeros(group.nodes.shape, dtype=np.int64)
    left = group.left.copy()
    active = np.flatnonzero(left > _SPENT)
    picks = 0
    covariance = _covariances(group, moments)[active]
    noise = moments.noise[group.nodes[active]]
    prices = (group.prices * (issued + 1) / (forest.graded[group.nodes] + 1))[active]
    while len(active):
        spread = np.einsum("ckk->ck", covariance)
        reduced = np.einsum("ckj,ckj->ck", covariance, covariance)
        if changes:
            reduced = (1 - changes) * reduced + changes * _reduced_changes(covariance, group.there[active])
        gain = reduced / ((spread + noise) * prices)
        worth = gain > group.least[active, None]
        if evenly:
            best = np.where(worth, issued[active] + asked[active], np.inf).argmin(axis=1)
        else:
            best = (gain >= (1 - _ALIKE) * gain.max(axis=1, keepdims=True)).argmax(axis=1)
        rows = np.arange(len(active))
        goes_on = worth[rows, best]
        asked[active[goes_on], best[goes_on]] += 1
        left[active] -= group.costs[active, best]
        picks += 1
        column = covariance[rows, best]
        shrink = 1 / (spread[rows, best] + noise[rows, best])
        goes_on &= (picks < group.most[active]) & (left[active] > _SPENT)
        if not goes_on.all():
            active, column, shrink = active[goes_on], column[goes_on], shrink[goes_on]
            covariance, noise, prices = covariance[goes_on], noise[goes_on], prices[goes_on]
        covariance -= (column * shrink[:, None])[:, :, None] * column[:, None, :]
    return asked


def _reduced_changes(covariance: Floats, there: Flags) -> Floats:
    """As the sum of squared covariances, for the changes V_j - V_(j-1) instead of the values V_j, (C, M)."""
    with_changes = np.diff(covariance, axis=2) * there[:, None, 1:]
    return np.asarray(np.einsum("ckj,ckj->ck", with_changes, with_changes))


def _covariances(group: _Group, moments: _Moments) -> Floats:
    """Covariances of the values along each chain, (C, M, M). Zero where a chain has no node."""
    chains, longest = group.nodes.shape
    variance = np.where(group.there, moments.variance[group.nodes], 0.0)
    # A path may skip nodes of another chain between two of its own. Then the slope of the last step is used, limited so that
    # no correlation exceeds 1.
    most = np.sqrt(variance[:, 1:] / np.maximum(variance[:, :-1], _LEAST_VARIANCE))
    slopes = np.clip(moments.slope[group.nodes[:, 1:]], -most, most)
    covariance = np.zeros((chains, longest, longest))
    for position in range(longest):
        if position:
            column = covariance[:, :position, position - 1] * slopes[:, position - 1, None]
            covariance[:, :position, position] = column
            covariance[:, position, :position] = column
        covariance[:, position, position] = variance[:, position]
    return covariance
