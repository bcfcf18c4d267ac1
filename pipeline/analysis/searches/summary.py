"""A run of `search` in one line: accuracy of its choices, and what they cost. Pure."""

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.searches.equal_tokens import rights
from pipeline.analysis.searches.estimates import mean_over, problem_means, share_over
from pipeline.analysis.searches.records import SearchRun
from pipeline.core.statistics import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Counts are of searches: `searches` in all, of which `unknown` have no known answer, `unreadable` have one that the grader
    cannot read, and `ungraded` have one and chose an answer that is not graded. Accuracy is claimed for the others, of which
    `without_choice` found no chain and are wrong. `given` of them begin with a chain of the input. Means are over problems:
    `chains`, ended ones that a search chose from, `accuracy`, `score` of the chosen chain, tokens and seconds of a problem."""

    name: str
    method: str
    n: int
    problems: int
    searches: int
    unknown: int
    unreadable: int
    ungraded: int
    without_choice: int
    given: int
    chains: float
    accuracy: Interval
    score: Interval
    policy_tokens: float
    scorer_tokens: float
    total_tokens: float
    seconds: float

    @property
    def unclaimed(self) -> int:
        """Searches for which accuracy is not claimed."""
        return self.unknown + self.unreadable + self.ungraded


def summary(run: SearchRun, seed: int) -> RunSummary:
    """The line of a run with at least one search."""
    columns = [
        rights(run),
        np.array([np.nan if each.score is None else each.score for each in run.searches]),
        np.array([each.policy_tokens for each in run.searches], dtype=np.float64),
        np.array([each.scorer_tokens for each in run.searches], dtype=np.float64),
        np.array([each.seconds for each in run.searches]),
        np.array([len(each.candidates.answers) for each in run.searches], dtype=np.float64),
    ]
    ungraded = [each for each in run.searches if each.known and each.right is None]
    means = problem_means(run.problem_ids, np.column_stack(columns))
    policy, scorer, seconds, chains = (float(mean) for mean in means[:, 2:].mean(axis=0))
    return RunSummary(
        name=run.name,
        method=run.method,
        n=run.n,
        problems=len(means),
        searches=len(run.searches),
        unknown=sum(not each.known for each in run.searches),
        unreadable=sum(each.unreadable for each in ungraded),
        ungraded=sum(not each.unreadable for each in ungraded),
        without_choice=sum(each.known and not each.has_choice for each in run.searches),
        given=run.given,
        chains=chains,
        accuracy=share_over(means[:, 0], seed),
        score=mean_over(means[:, 1], seed),
        policy_tokens=policy,
        scorer_tokens=scorer,
        total_tokens=policy + scorer,
        seconds=seconds,
    )
