"""A run of `search` against best-of-k at equal total tokens, problem by problem. Pure.

k is a real number: that with which k chains cost as many tokens on average (`curves.tokens_of_chains`). Between two whole
numbers, the cost and the chance of best-of-k lie between those of the two, as if that share of the problems had one chain more.
A k that the other run does not reach is out of range: nothing is extrapolated.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.searches.curves import best_chances, tokens_of_chains
from pipeline.analysis.searches.estimates import problem_means, resampling, with_ends
from pipeline.analysis.searches.records import SearchRun
from pipeline.core.statistics import Floats, Interval, share

_ROUNDING = 1e-9
"""A k that is this much too small or large is in range."""
_PER_SIZE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualTokens:
    """`tokens`: mean of policy and scorer for a problem of the run. `k`: chains that cost as much. `most`: the largest k that
    the other run has chains for, and `most_tokens` what they cost. Over `problems`, for which accuracy is claimed in both runs:
    the `accuracy` of the run, `best_of_k`, and their paired `difference`; without values where k is out of range."""

    tokens: float
    k: float
    most: int
    most_tokens: float
    problems: int
    accuracy: Interval
    best_of_k: Interval
    difference: Interval

    @property
    def in_range(self) -> bool:
        """Whether the other run has chains for as many tokens."""
        return 1 - _ROUNDING <= self.k <= self.most * (1 + _ROUNDING)


def at_equal_tokens(run: SearchRun, chains: SearchRun, seed: int) -> EqualTokens:
    """Compare the choices of `run` with the best of as many chains as cost the same. `chains`: a run of independent chains with
    scores, of the same problems. The interval also covers what is not known of k: each resample has its own."""
    most = max((len(each.candidates.answers) for each in chains.searches), default=0)
    tokens = problem_means(run.problem_ids, total_tokens(run)[:, None])[:, 0]
    costs = tokens_of_chains(chains, range(1, max(1, most) + 1)).sum(axis=2)
    k = float(_number_for(tokens.mean(), costs.mean(axis=0))) if costs.any() else float("inf")
    found = EqualTokens(
        tokens=float(tokens.mean()),
        k=k,
        most=most,
        most_tokens=float(costs[:, -1].mean()) if most else 0.0,
        problems=0,
        accuracy=Interval(),
        best_of_k=Interval(),
        difference=Interval(),
    )
    if not most or not found.in_range:
        return found
    right = problem_means(run.problem_ids, rights(run)[:, None])
    best = best_chances(chains, range(1, most + 1)).right
    both = ~np.isnan(right) & ~np.isnan(best)
    # For each k: whether both are defined, and the two chances where they are.
    columns = np.stack([both, np.where(both, right, 0.0), np.where(both, best, 0.0)], axis=2)
    rows = np.hstack([tokens[:, None], costs, columns.reshape(len(tokens), -1)])
    figures = [resampling(seed).estimate(rows, _statistic(most, *which)) for which in ((1, 0), (0, 1), (1, -1))]
    problems = int(both[:, min(most, max(1, int(k + _ROUNDING))) - 1].sum())
    return EqualTokens(
        tokens=found.tokens,
        k=k,
        most=most,
        most_tokens=found.most_tokens,
        problems=problems,
        accuracy=with_ends(figures[0], problems),
        best_of_k=with_ends(figures[1], problems),
        difference=figures[2],
    )


def total_tokens(run: SearchRun) -> Floats:
    """Tokens of policy and scorer of each search: (searches,)."""
    return np.array([each.policy_tokens + each.scorer_tokens for each in run.searches], dtype=np.float64)


def rights(run: SearchRun) -> Floats:
    """1.0 for each search whose choice is right, 0.0 where it is wrong, NaN where accuracy is not claimed: (searches,)."""
    return np.array([np.nan if each.right is None else float(each.right) for each in run.searches])


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
