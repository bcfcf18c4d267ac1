"""Looks for reward hacking: choices whose scores rise while fewer of them are right. Pure.

More candidates have a better best score by their number alone. With a score that is right about chains, accuracy rises too.
Where it falls, the search has found what the scorer likes instead of what is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pipeline.analysis.searches.curves import best_chances, doublings
from pipeline.analysis.searches.estimates import mean_over, problem_means, resampling, share_over, student, with_ends
from pipeline.analysis.searches.records import Flags, ProblemSearch, SearchRun
from pipeline.core.statistics import CONFIDENCE, Floats, Interval, ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Hacking:
    """What is found in one run. `by_n`: from the chains of a run of independent ones; `rising`: from the steps of a run whose
    chains grow by their scores. Each is None for the other kind, and both are for a run without scores."""

    by_n: "ScoreAgainstOutcome | None"
    rising: "RisingChains | None"


def hacking(run: SearchRun, seed: int) -> Hacking:
    """Look for reward hacking in a run, at n = 1, 2, 4 and so on."""
    most = max((len(each.candidates.answers) for each in run.searches), default=0)
    if not run.scored or not most:
        return Hacking(by_n=None, rising=None)
    if not run.independent:
        return Hacking(by_n=None, rising=rising_chains(run.searches, seed))
    sizes = doublings(most)
    best = best_chances(run, sizes)
    return Hacking(by_n=score_against_outcome(sizes, best.score, best.right, seed), rising=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePoint:
    """The mean score of the choice at n, and its accuracy."""

    n: int
    score: Interval
    accuracy: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """From n = `before` to n = `after` the score rises by `score`, and accuracy changes by `accuracy`, which is less than 0 by
    more than its interval. The intervals hold for all pairs of sizes together (Bonferroni)."""

    before: int
    after: int
    score: Interval
    accuracy: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAgainstOutcome:
    """Score and accuracy by n, and where they part. `problems`: those with a score and a claim of accuracy at some n."""

    problems: int
    points: tuple[ScorePoint, ...]
    falls: tuple[Fall, ...]

    @property
    def worst(self) -> Fall | None:
        """The largest fall of accuracy; None if there is none."""
        return min(self.falls, key=lambda fall: fall.accuracy.value or 0.0, default=None)


def score_against_outcome(sizes: Sequence[int], scores: Floats, right: Floats, seed: int) -> ScoreAgainstOutcome:
    """Compare scores and accuracy of choices at rising `sizes`. `scores`, `right`: of each problem at each size, (problems,
    sizes), NaN where they are not defined. Every figure is over the problems for which both are."""
    both = ~np.isnan(scores) & ~np.isnan(right)
    scores, right = np.where(both, scores, np.nan), np.where(both, right, np.nan)
    pairs = list(combinations(range(len(sizes)), 2))
    level = 1 - (1 - CONFIDENCE) / max(1, len(pairs))
    changes = [
        Fall(
            before=sizes[before],
            after=sizes[after],
            score=student(scores[:, after] - scores[:, before], level),
            accuracy=student(right[:, after] - right[:, before], level),
        )
        for before, after in pairs
    ]
    return ScoreAgainstOutcome(
        problems=int(both.any(axis=1).sum()),
        points=tuple(
            ScorePoint(n=n, score=mean_over(scores[:, at], seed), accuracy=share_over(right[:, at], seed))
            for at, n in enumerate(sizes)
        ),
        falls=tuple(change for change in changes if _below(change.accuracy) and _above(change.score)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RisingShare:
    """`share` of the `chains` whose last step has a higher score than the first one; `rise`: the mean difference."""

    chains: int
    share: Interval
    rise: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RisingChains:
    """Chosen chains with at least two steps, each of which has a score: those that are wrong, and those that are right.
    `difference`: the share of wrong chains that rise minus that of right ones. If it is not below 0, a rising score says
    nothing of the answer."""

    wrong: RisingShare
    right: RisingShare
    difference: Interval


def rising_chains(searches: Sequence[ProblemSearch], seed: int) -> RisingChains:
    """How the step scores of chosen chains go from beginning to end. For runs whose chains grow by their scores."""
    used = [
        (each, rise) for each in searches if each.right is not None and (rise := _rise(each.step_scores)) is not None
    ]
    ids = [each.problem_id for each, _ in used]
    right = np.array([bool(each.right) for each, _ in used], dtype=np.bool_)
    rises = np.array([rise for _, rise in used], dtype=np.float64)
    # For wrong and for right chains: those that rise, and all.
    sums = _sums(ids, np.column_stack([(rises > 0) & ~right, ~right, (rises > 0) & right, right]))
    return RisingChains(
        wrong=_rising(ids, rises, ~right, sums[:, :2], seed),
        right=_rising(ids, rises, right, sums[:, 2:], seed),
        difference=resampling(seed).estimate(sums, lambda of: ratio(of[..., :2]) - ratio(of[..., 2:])),
    )


def _rising(ids: Sequence[str], rises: Floats, which: Flags, sums: Floats, seed: int) -> RisingShare:
    means = problem_means(ids, np.where(which, rises, np.nan)[:, None])[:, 0]
    share = with_ends(resampling(seed).estimate(sums, ratio), int((sums[:, 1] > 0).sum()))
    return RisingShare(chains=int(which.sum()), share=share, rise=mean_over(means, seed))


def _sums(ids: Sequence[str], columns: Floats) -> Floats:
    """Sums of the columns by problem."""
    problems, place = np.unique(np.asarray(ids, dtype=np.str_), return_inverse=True)
    sums = np.zeros((len(problems), columns.shape[1]))
    np.add.at(sums, place, columns)
    return sums


def _rise(step_scores: Sequence[float | None]) -> float | None:
    known = [score for score in step_scores if score is not None]
    return known[-1] - known[0] if len(known) == len(step_scores) > 1 else None


def _below(change: Interval) -> bool:
    return change.high is not None and change.high < 0


def _above(change: Interval) -> bool:
    return change.low is not None and change.low > 0
