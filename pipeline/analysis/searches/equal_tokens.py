"""A run of `search` against best-of-k at equal total tokens, problem by problem. Pure.

k is a real number: that with which k chains cost as many tokens on average (`tokens_of_chains`). Between two whole numbers, the
cost and the chance of best-of-k lie between those of the two, as if that share of the problems had one chain more. A k that the
other run does not reach is out of range: nothing is extrapolated.

The chance of best-of-k is exact. With C candidates sorted by score, the one of rank i from 0 is the best of k for
C(C - 1 - i, k - 1) of the C(C, k) parts. Candidates with equal scores share the choice equally, a missing score ranks last. A
choice that is not graded is no claim: the chance of a problem is P(the choice is right, given that it is graded).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from pipeline.analysis.searches.records import SearchRun, problem_means, resampling, with_ends
from pipeline.core.statistics import Floats, Interval, share

_ROUNDING = 1e-9
"""A k that is this much too small or large is in range."""
_PER_SIZE = 3
Search = Mapping[str, Any]
"""A row of `SearchRun.searches`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualTokens:
    """`tokens`: mean of policy and scorer for a problem of the run. `k`: chains that cost as much. `most`: the largest k that
    the other run has chains for, and `most_tokens` what they cost. Over `problems`, for which accuracy is claimed in both runs:
    the `accuracy` of the run, `best_of_k`, and their paired `difference`; without values where k is out of range."""

    tokens: float
    k: float
    most: int
    most_tokens: float
    problems: int = 0
    accuracy: Interval = field(default_factory=Interval)
    best_of_k: Interval = field(default_factory=Interval)
    difference: Interval = field(default_factory=Interval)

    @property
    def in_range(self) -> bool:
        """Whether the other run has chains for as many tokens."""
        return 1 - _ROUNDING <= self.k <= self.most * (1 + _ROUNDING)


def at_equal_tokens(run: SearchRun, chains: SearchRun, seed: int) -> EqualTokens:
    """Compare the choices of `run` with the best of as many chains as cost the same. `chains`: a run of independent chains with
    scores, of the same problems. The interval also covers what is not known of k: each resample has its own."""
    most = max((len(each) for each in chains.searches["scores"].drop_nulls()), default=0)
    tokens = run.means(pl.col("policy_tokens") + pl.col("scorer_computed"))[:, 0]
    costs = tokens_of_chains(chains, range(1, max(1, most) + 1)).sum(axis=2)
    k = float(_number_for(tokens.mean(), costs.mean(axis=0))) if costs.any() else float("inf")
    found = EqualTokens(
        tokens=float(tokens.mean()), k=k, most=most, most_tokens=float(costs[:, -1].mean()) if most else 0.0
    )
    if not most or not found.in_range:
        return found
    right = run.means("right")
    best = best_chances(chains, range(1, most + 1))
    both = ~np.isnan(right) & ~np.isnan(best)
    # For each k: whether both are defined, and the two chances where they are.
    columns = np.stack([both, np.where(both, right, 0.0), np.where(both, best, 0.0)], axis=2)
    rows = np.hstack([tokens[:, None], costs, columns.reshape(len(tokens), -1)])
    figures = [resampling(seed).estimate(rows, _statistic(most, *which)) for which in ((1, 0), (0, 1), (1, -1))]
    problems = int(both[:, min(most, max(1, int(k + _ROUNDING))) - 1].sum())
    return replace(
        found,
        problems=problems,
        accuracy=with_ends(figures[0], problems),
        best_of_k=with_ends(figures[1], problems),
        difference=figures[2],
    )


@lru_cache(maxsize=8)
def first_chances(count: int, sizes: tuple[int, ...]) -> Floats:
    """P(the candidate of rank i is the best of n), for each n of `sizes` and all ranks: (sizes, count). 1 <= n <= count."""
    n = np.array(sizes, dtype=np.float64)[:, None]
    ranks = np.arange(count - 1, dtype=np.float64)[None, :]
    # Each chance follows from the one before: C(m - 1, n - 1) / C(m, n - 1) = (m - n + 1) / m, with m = count - 1 - i.
    factors = np.maximum(count - n - ranks, 0.0) / (count - 1 - ranks)
    return np.asarray(np.cumprod(np.hstack([n / count, factors]), axis=1))


def best_of_each(scores: Floats, values: Floats, sizes: Sequence[int]) -> Floats:
    """The expectation of `values` (count, columns) of the best-scored of n candidates, for each n: (sizes, columns).

    `scores` (count,): NaN for a missing one. Where n > count, all candidates compete. There is at least one.
    """
    ranks = np.where(np.isnan(scores), -np.inf, scores)
    order = np.argsort(-ranks, kind="stable")
    ranked = ranks[order]
    block = np.cumsum(np.concatenate([[0], ranked[1:] != ranked[:-1]]))
    sums = np.zeros((int(block[-1]) + 1, values.shape[1]))
    np.add.at(sums, block, values[order])
    shared = (sums / np.bincount(block)[:, None])[block]
    return np.asarray(first_chances(len(scores), tuple(min(n, len(scores)) for n in sizes)) @ shared)


def best_chances(run: SearchRun, sizes: Sequence[int]) -> Floats:
    """P(the best-scored of n candidates is right), for each problem of a run of independent chains, sorted by id: (problems,
    sizes). NaN where it is not defined."""
    return _means(run, [_best(each, sizes) for each in run.searches.iter_rows(named=True)])


def _means(run: SearchRun, values: Sequence[Floats]) -> Floats:
    return problem_means(run.searches["problem_id"].to_list(), np.array(values))


def _best(search: Search, sizes: Sequence[int]) -> Floats:
    if not search["known"] or not search["scores"]:
        return np.full(len(sizes), 0.0 if search["known"] else np.nan)
    outcomes = [(outcome is True, outcome is not None) for outcome in search["outcomes"]]
    scores = np.array(search["scores"], dtype=np.float64)
    right, graded = best_of_each(scores, np.array(outcomes, dtype=np.float64), sizes).T
    return share(right, graded)


def tokens_of_chains(run: SearchRun, sizes: Sequence[int]) -> Floats:
    """The expected tokens of the policy and of the scorer for n chains of each problem, sorted by id: (problems, sizes, 2).

    The scorer computes chains with equal texts once, so n of many chains cost it more than n times the mean. Tokens of chains
    that came to nothing are spread over the others. For more chains than a problem has, they go on in proportion."""
    spent = [np.stack(_tokens(each, run.n, sizes), axis=1).ravel() for each in run.searches.iter_rows(named=True)]
    return _means(run, spent).reshape(-1, len(sizes), 2)


def _tokens(search: Search, n: int, sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """The expected tokens of the policy and of the scorer for each of `sizes` chains of a search."""
    chains = len(search["scores"] or ()) or n
    wanted = np.array(sizes, dtype=np.float64)
    drawn = np.minimum(wanted, chains)
    counts, tokens = (np.array(search[name] or (), dtype=np.float64) for name in ("texts", "computed"))
    computed = (1 - _all_missed(counts, chains)[:, drawn.astype(np.int64)]).T @ tokens
    others = search["scorer_computed"] - float(tokens.sum())
    scorer = (computed + others * drawn / chains) * wanted / drawn
    return wanted * search["policy_tokens"] / chains, scorer


def _all_missed(counts: Floats, chains: int) -> Floats:
    """P(none of `counts` chains is among k of `chains`), for k from 0 to `chains`: (counts, chains + 1)."""
    k = np.arange(chains, dtype=np.float64)[None, :]
    missed = np.cumprod(np.maximum(0.0, chains - counts[:, None] - k) / (chains - k), axis=1)
    return np.hstack([np.ones((len(counts), 1)), missed])


def _number_for(tokens: Floats, costs: Floats) -> Floats:
    """How many chains cost `tokens` (...), if 1, 2, ... of them cost `costs` (..., most). Where they cost nothing, 1."""
    most = costs.shape[-1]
    every = np.concatenate([np.zeros((*costs.shape[:-1], 1)), costs], axis=-1)
    below = np.minimum((costs <= np.asarray(tokens)[..., None] * (1 + _ROUNDING)).sum(axis=-1), most - 1)
    lower, upper = (np.take_along_axis(every, (below + at)[..., None], axis=-1)[..., 0] for at in (0, 1))
    part = np.where(upper > lower, (tokens - lower) / np.where(upper > lower, upper - lower, 1.0), 0.0)
    return np.where(every[..., -1] > 0, below + part, 1.0)


def _statistic(most: int, run: int, chains: int) -> Callable[[Floats], Floats]:
    """From sums over problems, `run` times the accuracy of the run plus `chains` times that of best-of-k."""

    def figure(sums: Floats) -> Floats:
        k = np.clip(_number_for(sums[..., 0], sums[..., 1 : 1 + most]), 1, most)
        below = np.minimum(np.floor(k + _ROUNDING), most).astype(np.int64)
        part = np.clip(k - below, 0, 1)
        of = sums[..., 1 + most :].reshape(*sums.shape[:-1], most, _PER_SIZE)
        values = run * share(of[..., 1], of[..., 0]) + chains * share(of[..., 2], of[..., 0])
        lower, upper = (
            np.take_along_axis(values, (at - 1)[..., None], axis=-1)[..., 0]
            for at in (below, np.minimum(below + 1, most))
        )
        return np.asarray(np.where(part > 0, (1 - part) * lower + part * upper, lower))

    return figure
