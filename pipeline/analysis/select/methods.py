"""Methods that choose one of the candidates of a problem, compared over all problems. Pure: the caller passes the seed.

The accuracy of a method at n is the probability that its choice is correct among n candidates drawn at random without
replacement. It is exact for a choice by score (`best_of`). For a vote (`vote`) it is an average over all subsets or, if there
are many, over random ones. `count` is the number of candidates of a problem; 1 <= n <= count.

Candidates are rows of a frame, in any order: `problem_id`, `chain_id`, `final_answer` (null if the chain states none),
`outcome` (an answer that could not be judged is not right), `score` and `outcome_score` (null if it is missing).

Arrays: `groups` (C,) holds the number of each candidate's answer, -1 for no answer; `subsets` (S, C) marks the candidates that
vote.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from math import comb

import numpy as np
import polars as pl

from pipeline.analysis.comparison import Flags, best_of_each, bootstrap_means, none_drawn
from pipeline.core.ids import content_id
from pipeline.core.statistics import Floats, Interval, Ints
from pipeline.graders.answer_groups import answer_groups

MAX_SUBSETS = 500
"""If there are more subsets, this many are drawn. The share of correct votes of one problem then has an sd of at most 0.022."""
ROUNDING = 1e-9
"""Sums of scores that differ by less count as equal."""
_SEED_DIGITS = 12


class Method(Enum):
    """How one of n candidates is chosen. `oracle` is correct if any candidate is."""

    prm = "prm"
    weighted = "weighted"
    """The answer with the largest sum of PRM scores."""
    majority = "majority"
    orm = "orm"
    random = "random"
    oracle = "oracle"


AGAINST = (Method.majority, Method.orm, Method.random)
"""The methods that best-of-N by the PRM is compared with, problem by problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeResult:
    """`accuracy`: share of problems whose choice among n candidates is correct. `ahead`: the PRM's accuracy minus a method's.

    `short`: number of problems with fewer than n candidates; all of these candidates compete.
    """

    n: int
    short: int
    accuracy: Mapping[Method, Interval]
    ahead: Mapping[Method, Interval]


def compare_methods(candidates: pl.DataFrame, sizes: Sequence[int], seed: int) -> list[SizeResult]:
    """One result for each n in `sizes`. `Method.orm` is missing if no candidate has an outcome score; if none has a score,
    `Method.prm` and `Method.weighted` are, and nothing is ahead of anything."""
    contests = candidates.sort("problem_id", "chain_id").partition_by("problem_id", maintain_order=True)
    needs = {Method.prm: "score", Method.weighted: "score", Method.orm: "outcome_score"}
    methods = [method for method in Method if method not in needs or has_any(candidates, needs[method])]
    rivals = [method for method in AGAINST if method in methods and Method.prm in methods]
    chances = [_chances(contest, sizes, seed) for contest in contests]
    rows = []
    for n in sizes:
        right = {method: np.array([each[n][method] for each in chances]) for method in methods}
        leads = [right[Method.prm] - right[rival] for rival in rivals]
        estimates = bootstrap_means(np.column_stack([*right.values(), *leads]), seed)
        rows.append(
            SizeResult(
                n=n,
                short=sum(contest.height < n for contest in contests),
                accuracy=dict(zip(methods, estimates[: len(methods)], strict=True)),
                ahead=dict(zip(rivals, estimates[len(methods) :], strict=True)),
            )
        )
    return rows


def best_of(scores: Sequence[float | None], right: Sequence[bool], n: int) -> float:
    """P(the best-scored of n candidates is correct), averaged over all subsets of size n, see `best_of_each`."""
    table = best_of_each(np.array(scores, dtype=np.float64), np.array(right, dtype=np.float64)[:, None], [n])
    return float(table[0, 0])


def any_right(n_right: int, count: int, n: int) -> float:
    """P(at least one of n candidates is correct), the upper bound of every method: pass@n."""
    return 1 - float(none_drawn(np.array([n_right], dtype=np.float64), count)[0, n])


def vote(groups: Ints, right: Flags, weights: Floats, subsets: Flags) -> float:
    """P(the vote is correct). The answer with the largest sum of weights wins; one of its candidates, at random, is chosen.

    Answers with equal sums are equally likely to win. A candidate without an answer has no vote. A vote without any answer is
    wrong.
    """
    said = groups >= 0
    if not said.any():
        return 0.0
    ballots = subsets[:, said].astype(np.float64)
    names, answer = np.unique(groups[said], return_inverse=True)
    gave = np.eye(len(names))[answer]
    voters = ballots @ gave
    right_voters = ballots @ (gave * right[said, None])
    sums = np.where(voters > 0, ballots @ (gave * weights[said, None]), -np.inf)
    won = (sums >= sums.max(axis=1, keepdims=True) - ROUNDING) & (voters > 0)
    share = np.where(won, right_voters / np.maximum(voters, 1), 0.0).sum(axis=1) / np.maximum(won.sum(axis=1), 1)
    return float(share.mean())


def subsets_of(count: int, n: int, rng: np.random.Generator) -> Flags:
    """All subsets of n out of `count` candidates, or MAX_SUBSETS random ones if there are more."""
    if comb(count, n) <= MAX_SUBSETS:
        members = np.array(list(combinations(range(count), n)), dtype=np.int64)
    else:
        members = rng.random((MAX_SUBSETS, count)).argpartition(n - 1, axis=1)[:, :n]
    chosen = np.zeros((len(members), count), dtype=np.bool_)
    np.put_along_axis(chosen, members, True, axis=1)
    return chosen


def has_any(candidates: pl.DataFrame, score: str) -> bool:
    """Whether any candidate has this score."""
    return candidates[score].null_count() < candidates.height


def _chances(contest: pl.DataFrame, sizes: Sequence[int], seed: int) -> dict[int, dict[Method, float]]:
    """Size -> method -> P(its choice is correct), for the candidates of a problem."""
    count = contest.height
    right = contest["outcome"].fill_null(value=False).to_list()
    scores, outcome_scores = contest["score"].to_list(), contest["outcome_score"].to_list()
    answers = answer_groups(contest["final_answer"].to_list())
    groups = np.array([-1 if group is None else group for group in answers])
    flags, weights = np.array(right), np.array([score or 0.0 for score in scores])
    rng = np.random.default_rng([seed, int(content_id(contest["problem_id"][0])[:_SEED_DIGITS], 16)])
    chances = {}
    for size in sizes:
        n = min(size, count)
        subsets = subsets_of(count, n, rng)
        chances[size] = {
            Method.prm: best_of(scores, right, n),
            Method.weighted: vote(groups, flags, weights, subsets),
            Method.majority: vote(groups, flags, np.ones(count), subsets),
            Method.orm: best_of(outcome_scores, right, n),
            Method.random: sum(right) / count,
            Method.oracle: any_right(sum(right), count, n),
        }
    return chances
