"""What can be said of the choices of a run of `search`: their accuracy and cost, and what their confidence is worth. Pure.

Accuracy is claimed only where the answer is known and the chosen answer is graded. A search that ends without a chain, or with
a chain without an answer, is wrong there. A problem with several searches counts once, with their mean. A problem for which a
figure is not defined (NaN) is left out of it, so the difference of two columns is over the problems that have both, and paired.

**Coverage** is the accuracy of the choices where only the most confident ones are used. Searches are sorted by confidence; one
without a confidence comes last. The accuracy at a coverage of c is that of the share c with the most confidence. Searches with
equal confidence are used in random order: the accuracy is the mean over all orders. Intervals are of the bootstrap over
problems; each resample has its own order. Searches for which no accuracy is claimed do not count.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from pipeline.analysis.comparison import between, draws, problem_means, share_over, with_ends
from pipeline.core.statistics import Floats, Interval, Ints

COVERAGES = (1.0, 0.8, 0.6, 0.4, 0.2)
ROUNDING = 1e-9
"""Numbers that differ by less are equal."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchRun:
    """A finished run of `search`. `accept`: `search.accept`. `calibrated`: its scores are probabilities. `independent`: its
    candidates are chains that were sampled whole and without regard to each other, a fixed number for each problem. So a part
    of them is what a smaller run would have. `settings`: what determines it, by dotted key.

    `searches`: see `read.finished_searches`; a problem may have several, such as one for each chain that the input has. Of the
    candidates of each, lists: `scores`, and `outcomes`, null where one is not graded. `texts`: how many candidates have the
    same text of a whole chain, and `computed`: the tokens that the scorer computed for it, which it does once; 0 where that is
    not known."""

    name: str
    method: str
    n: int
    accept: float | None
    calibrated: bool
    independent: bool
    settings: Mapping[str, object]
    searches: pl.DataFrame

    @property
    def scored(self) -> bool:
        """Whether any candidate has a score."""
        return self.searches["scores"].explode().count() > 0

    @property
    def given(self) -> int:
        """Searches that begin with a chain of the input."""
        return int(self.searches["given"].sum())


def means_of(searches: pl.DataFrame, *values: str | pl.Expr) -> Floats:
    """The means of values over the searches of each problem, NaN where none is defined: (problems, values), sorted by their
    ids. `searches`: rows of `SearchRun.searches`."""
    columns = [pl.col(each) if isinstance(each, str) else each for each in values]
    found = searches.select(column.cast(pl.Float64).alias(str(at)) for at, column in enumerate(columns))
    return problem_means(searches["problem_id"].to_list(), found.to_numpy())


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
class CoveragePoint:
    """`accuracy` of the share `coverage` of the searches, the `used` ones with the most confidence. `least`: the confidence of
    the last of them; None if it has none."""

    coverage: float
    used: int
    accuracy: Interval
    least: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """`share` of all searches that reached `search.accept`, and their `accuracy`; `accuracy_of_others`. `claimed`: trusted
    searches for which accuracy is claimed. `highest`: the highest confidence of all; None where none is stated."""

    searches: int
    trusted: int
    claimed: int
    highest: float | None
    share: Interval
    accuracy: Interval
    accuracy_of_others: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """`searches`: those for which accuracy is claimed. `points`: none where no confidence is stated. `trust`: None where
    `search.accept` is not set."""

    searches: int
    points: tuple[CoveragePoint, ...]
    trust: Trust | None


def coverage(searches: pl.DataFrame, seed: int, coverages: Sequence[float] = COVERAGES) -> Coverage:
    """Accuracy against coverage of the searches of a `SearchRun`. No points where no confidence is stated, or accuracy is
    claimed for no search."""
    claimed = searches.filter(pl.col("right").is_not_null())
    return Coverage(
        searches=claimed.height,
        points=tuple(_points(claimed, seed, coverages)) if claimed["confidence"].count() else (),
        trust=_trust(searches, seed) if searches["trusted"].count() else None,
    )


def _points(claimed: pl.DataFrame, seed: int, coverages: Sequence[float]) -> Iterator[CoveragePoint]:
    claimed = claimed.sort("confidence", descending=True, nulls_last=True, maintain_order=True)
    ranked = claimed["confidence"].fill_null(-np.inf).to_numpy()
    right = claimed["right"].cast(pl.Float64).to_numpy()
    _, problems = np.unique(claimed["problem_id"].to_numpy().astype(np.str_), return_inverse=True)
    blocks = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    shares = np.array(coverages)
    values = _accuracies(np.ones((1, len(ranked))), right, blocks, shares)[0]
    drawn = draws(np.ones(problems.max() + 1, dtype=np.int64), len(right), seed)
    resampled = np.concatenate(
        [_accuracies(weights[:, problems].astype(np.float64), right, blocks, shares) for weights in drawn]
    )
    for at, each in enumerate(coverages):
        used = max(1, int(np.ceil(each * len(ranked) - ROUNDING)))
        least = float(ranked[used - 1])
        accuracy = between(float(values[at]), resampled[:, at])
        yield CoveragePoint(
            coverage=each,
            used=used,
            accuracy=with_ends(accuracy, len(set(problems[:used].tolist()))),
            least=least if np.isfinite(least) else None,
        )


def _accuracies(weights: Floats, right: Floats, blocks: Ints, shares: Floats) -> Floats:
    """The accuracy at each coverage: (samples, shares). `weights` (samples, searches): how often each search is in a sample,
    in the order of confidence. `blocks`: where searches with the next confidence begin."""
    sizes = np.add.reduceat(weights, blocks, axis=1)
    hits = np.add.reduceat(weights * right, blocks, axis=1)
    sizes_to, hits_to = np.cumsum(sizes, axis=1), np.cumsum(hits, axis=1)
    wanted = sizes_to[:, -1:] * shares
    found = np.empty(wanted.shape)
    for at in range(len(shares)):
        cut = (sizes_to >= wanted[:, at : at + 1] - ROUNDING).argmax(axis=1)[:, None]
        size, hit, to, hit_to = (np.take_along_axis(of, cut, axis=1)[:, 0] for of in (sizes, hits, sizes_to, hits_to))
        # Of the last block only a part is used, as right as the whole block.
        used = wanted[:, at] - (to - size)
        found[:, at] = ((hit_to - hit) + used * hit / size) / wanted[:, at]
    return found


def _trust(searches: pl.DataFrame, seed: int) -> Trust:
    trusted, right = pl.col("trusted").fill_null(value=False), pl.col("right").cast(pl.Float64)
    means = means_of(searches, trusted, pl.when(trusted).then(right), pl.when(~trusted).then(right))
    share, accuracy, others = (share_over(column, seed) for column in means.T)
    counts = searches.select(
        searches=pl.len(),
        trusted=trusted.sum(),
        claimed=(trusted & right.is_not_null()).sum(),
        highest=pl.col("confidence").max(),
    )
    return Trust(**counts.row(0, named=True), share=share, accuracy=accuracy, accuracy_of_others=others)


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
    means = means_of(run.searches, "right", "policy_tokens", "scorer_computed", "seconds", chains)
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
        return 1 - ROUNDING <= self.k <= self.most * (1 + ROUNDING)


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
