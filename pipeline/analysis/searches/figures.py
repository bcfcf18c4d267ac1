"""A run of `search` in numbers: its totals, and what can be said of its choices. Pure."""

from dataclasses import dataclass

import polars as pl

from pipeline.analysis.searches.coverage import Coverage, coverage
from pipeline.analysis.searches.equal_tokens import EqualTokens
from pipeline.analysis.searches.records import SearchRun, share_over
from pipeline.core.statistics import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFigures:
    """`known`: problems with a known answer, or with a choice whose outcome the data give; `graded` of them have a choice whose
    answer can be graded, or no choice, which is not right. `unreadable` of the others in `known` have an answer that the grader
    cannot read. `trusted`: problems that reach `search.accept`, None without it; `graded_trusted` and `right_trusted` are those
    of them. `highest`: the highest confidence; None where there is none. `candidates`: ended chains that were chosen from.
    `chosen`: problems with a chosen chain; `cut`: those whose chain a limit ended. `scored` and `unscored`: prefixes.
    `seconds_sampling` and `seconds_scoring`: how long searches waited for samples and for scores, each answer by itself."""

    problems: int
    known: int
    unreadable: int
    graded: int
    right: int
    candidates: int
    chosen: int
    trusted: int | None
    highest: float | None
    graded_trusted: int
    right_trusted: int
    cut: int
    scored: int
    unscored: int
    policy_tokens: int
    scorer_tokens: int
    scorer_computed: int
    seconds_sampling: float
    seconds_scoring: float

    @property
    def share_scoring(self) -> float:
        """The share of the waiting that was for scores."""
        return self.seconds_scoring / max(1e-9, self.seconds_sampling + self.seconds_scoring)

    @property
    def without_chain(self) -> int:
        return self.problems - self.chosen

    @property
    def tokens_per_problem(self) -> float:
        """Tokens of the policy and tokens that the scorer computed."""
        return (self.policy_tokens + self.scorer_computed) / max(1, self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Counts are of searches: `searches` in all, of which `unknown` have no known answer, `unreadable` have one that the grader
    cannot read, and `ungraded` have one and chose an answer that is not graded. Accuracy is claimed for the others, of which
    `without_choice` found no chain and are wrong. `given` of them begin with a chain of the input. Means are over problems:
    `chains`, ended ones that a search chose from, `accuracy`, tokens and seconds of a problem."""

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
    chains = pl.col("scores").list.len().fill_null(0)
    means = run.means("right", "policy_tokens", "scorer_computed", "seconds", chains)
    policy, scorer, seconds, chains_each = (float(mean) for mean in means[:, 1:].mean(axis=0))
    known, unreadable, chosen = pl.col("known"), pl.col("unreadable"), pl.col("chosen")
    ungraded = known & pl.col("right").is_null()
    counts = run.searches.select(
        searches=pl.len(),
        unknown=(~known).sum(),
        unreadable=(ungraded & unreadable).sum(),
        ungraded=(ungraded & ~unreadable).sum(),
        without_choice=(known & chosen.is_null()).sum(),
    )
    return RunSummary(
        name=run.name,
        method=run.method,
        n=run.n,
        problems=len(means),
        **counts.row(0, named=True),
        given=run.given,
        chains=chains_each,
        accuracy=share_over(means[:, 0], seed),
        policy_tokens=policy,
        scorer_tokens=scorer,
        total_tokens=policy + scorer,
        seconds=seconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What is said of the choices of a run. `equal_tokens`: None for the run that the others are compared with, where there is
    none, and for a run that begins with chains of the input."""

    summary: RunSummary
    accept: float | None
    calibrated: bool
    coverage: Coverage
    equal_tokens: EqualTokens | None = None


def run_figures(run: SearchRun, seed: int, equal_tokens: EqualTokens | None = None) -> RunFigures:
    """What is said of a run with at least one search."""
    return RunFigures(
        summary=summary(run, seed),
        accept=run.accept,
        calibrated=run.calibrated,
        coverage=coverage(run.searches, seed),
        equal_tokens=equal_tokens,
    )
