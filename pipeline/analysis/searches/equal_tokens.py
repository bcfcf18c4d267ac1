"""A run of `search` against best-of-k at equal total tokens, problem by problem. Pure.

k is a real number: that with which k chains cost as many tokens on average (`tokens_of_chains`). Between two whole numbers, the
cost and the chance of best-of-k lie between those of the two, as if that share of the problems had one chain more. A k that the
other run does not reach is out of range: nothing is extrapolated.

The chance of best-of-k is exact (`best_of_each`). A choice that is not graded is no claim: the chance of a problem is P(the
choice is right, given that it is graded).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from pipeline.analysis.comparison import best_of_each, bootstrap, none_drawn, problem_means, with_ends
from pipeline.analysis.searches.figures import ROUNDING, EqualTokens, SearchRun, means_of
from pipeline.core.statistics import Floats, share

_PER_SIZE = 3
Search = Mapping[str, Any]
"""A row of `SearchRun.searches`."""


def at_equal_tokens(run: SearchRun, chains: SearchRun, seed: int) -> EqualTokens:
    """Compare the choices of `run` with the best of as many chains as cost the same. `chains`: a run of independent chains with
    scores, of the same problems. The interval also covers what is not known of k: each resample has its own."""
    most = max((len(each) for each in chains.searches["scores"].drop_nulls()), default=0)
    tokens = means_of(run.searches, pl.col("policy_tokens") + pl.col("scorer_computed"))[:, 0]
    costs = tokens_of_chains(chains, range(1, max(1, most) + 1)).sum(axis=2)
    k = float(_number_for(tokens.mean(), costs.mean(axis=0))) if costs.any() else float("inf")
    found = EqualTokens(
        tokens=float(tokens.mean()), k=k, most=most, most_tokens=float(costs[:, -1].mean()) if most else 0.0
    )
    if not most or not found.in_range:
        return found
    right = means_of(run.searches, "right")
    best = best_chances(chains, range(1, most + 1))
    both = ~np.isnan(right) & ~np.isnan(best)
    # For each k: whether both are defined, and the two chances where they are.
    columns = np.stack([both, np.where(both, right, 0.0), np.where(both, best, 0.0)], axis=2)
    rows = np.hstack([tokens[:, None], costs, columns.reshape(len(tokens), -1)])
    figures = [bootstrap(rows, _statistic(most, *which), seed=seed) for which in ((1, 0), (0, 1), (1, -1))]
    problems = int(both[:, min(most, max(1, int(k + ROUNDING))) - 1].sum())
    return replace(
        found,
        problems=problems,
        accuracy=with_ends(figures[0], problems),
        best_of_k=with_ends(figures[1], problems),
        difference=figures[2],
    )


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
    computed = (1 - none_drawn(counts, chains)[:, drawn.astype(np.int64)]).T @ tokens
    others = search["scorer_computed"] - float(tokens.sum())
    scorer = (computed + others * drawn / chains) * wanted / drawn
    return wanted * search["policy_tokens"] / chains, scorer


def _number_for(tokens: Floats, costs: Floats) -> Floats:
    """How many chains cost `tokens` (...), if 1, 2, ... of them cost `costs` (..., most). Where they cost nothing, 1."""
    most = costs.shape[-1]
    every = np.concatenate([np.zeros((*costs.shape[:-1], 1)), costs], axis=-1)
    below = np.minimum((costs <= np.asarray(tokens)[..., None] * (1 + ROUNDING)).sum(axis=-1), most - 1)
    lower, upper = (np.take_along_axis(every, (below + at)[..., None], axis=-1)[..., 0] for at in (0, 1))
    part = np.where(upper > lower, (tokens - lower) / np.where(upper > lower, upper - lower, 1.0), 0.0)
    return np.where(every[..., -1] > 0, below + part, 1.0)


def _statistic(most: int, run: int, chains: int) -> Callable[[Floats], Floats]:
    """From sums over problems, `run` times the accuracy of the run plus `chains` times that of best-of-k."""

    def figure(sums: Floats) -> Floats:
        k = np.clip(_number_for(sums[..., 0], sums[..., 1 : 1 + most]), 1, most)
        below = np.minimum(np.floor(k + ROUNDING), most).astype(np.int64)
        part = np.clip(k - below, 0, 1)
        of = sums[..., 1 + most :].reshape(*sums.shape[:-1], most, _PER_SIZE)
        values = run * share(of[..., 1], of[..., 0]) + chains * share(of[..., 2], of[..., 0])
        lower, upper = (
            np.take_along_axis(values, (at - 1)[..., None], axis=-1)[..., 0]
            for at in (below, np.minimum(below + 1, most))
        )
        return np.asarray(np.where(part > 0, (1 - part) * lower + part * upper, lower))

    return figure
