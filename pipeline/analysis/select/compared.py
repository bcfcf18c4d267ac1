"""Ways to choose among the candidates of a problem, compared over all problems. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from pipeline.analysis.select.answers import answer_groups
from pipeline.analysis.select.best_of import any_right, best_of
from pipeline.analysis.select.candidates import Contest
from pipeline.analysis.select.votes import subsets_of, vote
from pipeline.core.ids import content_id
from pipeline.core.statistics import Estimated, bootstrapped

_SEED_DIGITS = 12


class Method(Enum):
    """How one of n candidates is chosen; `oracle` is right where any of them is."""

    prm = "prm"
    weighted = "weighted"
    """The answer with the largest sum of PRM scores."""
    majority = "majority"
    orm = "orm"
    random = "random"
    oracle = "oracle"


AGAINST = (Method.majority, Method.orm, Method.random)
"""What best-of-N by the PRM is set against, problem by problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Shares of problems whose choice among n candidates is right; `ahead` is by how much the PRM's exceeds a method's.

    `short`: problems with fewer candidates, of whom all compete.
    """

    n: int
    short: int
    accuracy: Mapping[Method, Estimated]
    ahead: Mapping[Method, Estimated]


def compared(contests: Sequence[Contest], sizes: Sequence[int], seed: int) -> list[Row]:
    """One row for each of `sizes`. There is no `Method.orm` where no candidate has an outcome score."""
    ordered = sorted(contests, key=lambda contest: contest.problem_id)
    methods = [method for method in Method if method is not Method.orm or _has_outcome_scores(ordered)]
    tables = {n: np.zeros((len(ordered), len(methods))) for n in sizes}
    for place, contest in enumerate(ordered):
        for n, chances in _chances(contest, sizes, seed).items():
            tables[n][place] = [chances[method] for method in methods]
    rivals = [method for method in AGAINST if method in methods]
    rows = []
    for n, table in tables.items():
        lead = table[:, [methods.index(Method.prm)]] - table[:, [methods.index(rival) for rival in rivals]]
        estimates = bootstrapped(np.hstack([table, lead]), seed)
        rows.append(
            Row(
                n=n,
                short=sum(len(contest.candidates) < n for contest in ordered),
                accuracy=dict(zip(methods, estimates[: len(methods)], strict=True)),
                ahead=dict(zip(rivals, estimates[len(methods) :], strict=True)),
            )
        )
    return rows


def _has_outcome_scores(contests: Sequence[Contest]) -> bool:
    return any(candidate.outcome_score is not None for contest in contests for candidate in contest.candidates)


def _chances(contest: Contest, sizes: Sequence[int], seed: int) -> dict[int, dict[Method, float]]:
    """For each size, how likely each method's choice is right."""
    candidates = sorted(contest.candidates, key=lambda candidate: candidate.chain_id)
    count = len(candidates)
    right = [candidate.right for candidate in candidates]
    scores = [candidate.score for candidate in candidates]
    outcome_scores = [candidate.outcome_score for candidate in candidates]
    groups = np.array([-1 if group is None else group for group in answer_groups([c.answer for c in candidates])])
    flags, weights = np.array(right), np.array([score or 0.0 for score in scores])
    rng = np.random.default_rng([seed, int(content_id(contest.problem_id)[:_SEED_DIGITS], 16)])
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
