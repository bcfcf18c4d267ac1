"""What a run of independent chains would have achieved with fewer of them: exact expectations over all parts of n of its
candidates. Pure.

With C candidates sorted by score, the one of rank i from 0 is the best of n for C(C - 1 - i, n - 1) of the C(C, n) parts.
Candidates with equal scores share the choice equally, a missing score ranks last. Votes use all parts of n, or random ones if
there are many (`select.methods`). A problem with fewer than n candidates has all that it has.

A choice that is not graded is no claim: the chance of a problem is P(the choice is right, given that it is graded).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.analysis.searches.estimates import mean_over, problem_means, share_over
from pipeline.analysis.searches.records import Candidates, Flags, ProblemSearch, SearchRun
from pipeline.analysis.select.methods import subsets_of, vote
from pipeline.core.ids import content_id
from pipeline.core.statistics import Floats, Interval, Ints, share
from pipeline.graders.answer_groups import answer_groups

_SEED_DIGITS = 12


def doublings(most: int) -> list[int]:
    """1, 2, 4 and so on, and `most`."""
    return [*(2**power for power in range(most.bit_length()) if 2**power < most), most]


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestChances:
    """Of the best-scored of n candidates of each problem, sorted by id: `right`, P(it is right), and `score`, its expected
    score: (problems, sizes). NaN where they are not defined."""

    right: Floats
    score: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VoteChances:
    """P(the vote of n candidates is right), with and without the scores as weights, as in `BestChances`."""

    weighted: Floats
    majority: Floats


def best_chances(run: SearchRun, sizes: Sequence[int]) -> BestChances:
    """What the best-scored of n candidates of a run of independent chains achieve."""
    right, score = _by_problem(run, [_best(each, sizes) for each in run.searches], sizes)
    return BestChances(right=right, score=score)


def vote_chances(run: SearchRun, sizes: Sequence[int], seed: int) -> VoteChances:
    """What votes of n candidates of a run of independent chains achieve. `seed`: of random parts of n that vote."""
    weighted, majority = _by_problem(run, [_votes(each, sizes, seed) for each in run.searches], sizes)
    return VoteChances(weighted=weighted, majority=majority)


def _by_problem(run: SearchRun, found: Sequence[tuple[Floats, Floats]], sizes: Sequence[int]) -> tuple[Floats, Floats]:
    means = problem_means(run.problem_ids, np.array(found).reshape(len(found), 2 * len(sizes)))
    return means[:, : len(sizes)], means[:, len(sizes) :]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What n chains achieve and cost. `best`, `weighted`, `majority`: accuracy; `score`: of the best. The tokens of a problem
    are those of `tokens_of_chains`; the majority needs none of `scorer_tokens`. A run without scores has `majority` alone."""

    n: int
    policy_tokens: float
    scorer_tokens: float
    majority: Interval
    best: Interval | None
    weighted: Interval | None
    score: Interval | None


def curve(run: SearchRun, best: BestChances, votes: VoteChances, sizes: Sequence[int], seed: int) -> list[CurvePoint]:
    """The curves of a run of independent chains over n. `best`, `votes`: of these sizes."""
    spent = tokens_of_chains(run, sizes).mean(axis=0)
    return [
        CurvePoint(
            n=n,
            policy_tokens=float(spent[at, 0]),
            scorer_tokens=float(spent[at, 1]),
            majority=share_over(votes.majority[:, at], seed),
            best=share_over(best.right[:, at], seed) if run.scored else None,
            weighted=share_over(votes.weighted[:, at], seed) if run.scored else None,
            score=mean_over(best.score[:, at], seed) if run.scored else None,
        )
        for at, n in enumerate(sizes)
    ]


def tokens_of_chains(run: SearchRun, sizes: Sequence[int]) -> Floats:
    """The expected tokens of the policy and of the scorer for n chains of each problem, sorted by id: (problems, sizes, 2).

    The scorer computes chains with equal texts once, so n of many chains cost it more than n times the mean. Tokens of chains
    that came to nothing are spread over the others. For more chains than a problem has, they go on in proportion."""
    spent = [np.stack(_tokens(each, run.n, sizes), axis=1).ravel() for each in run.searches]
    means = problem_means(run.problem_ids, np.array(spent, dtype=np.float64).reshape(len(spent), 2 * len(sizes)))
    return means.reshape(-1, len(sizes), 2)


def _tokens(search: ProblemSearch, n: int, sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """The expected tokens of the policy and of the scorer for each of `sizes` chains of a search."""
    chains, scored = len(search.candidates.answers) or n, search.candidates.scored
    wanted = np.array(sizes, dtype=np.float64)
    drawn = np.minimum(wanted, chains)
    counts, tokens = (np.array([each[at] for each in scored], dtype=np.float64) for at in (0, 1))
    computed = (1 - _all_missed(counts, chains)[:, drawn.astype(np.int64)]).T @ tokens
    others = search.scorer_tokens - float(tokens.sum())
    scorer = (computed + others * drawn / chains) * wanted / drawn
    return wanted * search.policy_tokens / chains, scorer


def _all_missed(counts: Floats, chains: int) -> Floats:
    """P(none of `counts` chains is among k of `chains`), for k from 0 to `chains`: (counts, chains + 1)."""
    k = np.arange(chains, dtype=np.float64)[None, :]
    missed = np.cumprod(np.maximum(0.0, chains - counts[:, None] - k) / (chains - k), axis=1)
    return np.hstack([np.ones((len(counts), 1)), missed])


def _best(search: ProblemSearch, sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """The best-scored of n candidates of a search: P(it is right), and its expected score."""
    of = search.candidates
    if not len(of.scores):
        return np.full(len(sizes), 0.0 if search.known else np.nan), np.full(len(sizes), np.nan)
    scored = ~np.isnan(of.scores)
    columns = [of.right, of.graded, np.where(scored, of.scores, 0.0), scored]
    right, graded, score, has_score = best_of_each(of.scores, np.column_stack(columns).astype(np.float64), sizes).T
    chance = share(right, graded) if search.known else np.full(len(sizes), np.nan)
    return chance, share(score, has_score)


def _votes(search: ProblemSearch, sizes: Sequence[int], seed: int) -> tuple[Floats, Floats]:
    """P(the vote of n candidates is right), weighted and not."""
    of, count = search.candidates, len(search.candidates.answers)
    if not count or not search.known:
        return (np.full(len(sizes), 0.0 if search.known else np.nan),) * 2
    groups = np.array([-1 if group is None else group for group in answer_groups(of.answers)])
    rng = np.random.default_rng([seed, int(content_id(search.problem_id)[:_SEED_DIGITS], 16)])
    found = []
    for size in sizes:
        subsets = subsets_of(count, min(size, count), rng)
        found.append([_vote(of, groups, weights, subsets) for weights in (np.nan_to_num(of.scores), np.ones(count))])
    weighted, majority = np.array(found).T
    return weighted, majority


def _vote(of: Candidates, groups: Ints, weights: Floats, subsets: Flags) -> float:
    """P(the vote is right, given that it is graded). A vote without any answer is wrong, so it is graded."""
    right = vote(groups, of.right, weights, subsets)
    ungraded = 0.0 if of.graded.all() else vote(groups, ~of.graded, weights, subsets)
    return right / (1 - ungraded) if ungraded < 1 else float("nan")
