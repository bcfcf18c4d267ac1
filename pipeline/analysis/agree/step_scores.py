"""Scores of single steps against human labels, against position and against length; and where the lowest scores lie. Pure.

- AUC: P(a good step scores above a bad one), ties half (Mann and Whitney 1947). Its interval has chains as clusters (Obuchowski
  1997).
- Brier score: the mean of (score - 1)^2 over good and of score^2 over bad steps (Brier 1950). Bootstrap over chains.
- ECE: bins of equal width from 0 to 1, each with its lower end, the last with both. The mean distance between mean score and
  share of good steps, weighted by steps (Naeini et al. 2015). It has no interval, because resampling adds to it.
- Rank correlation: Spearman (1904).

Steps without a human label are left out, such as those after a first error. Positions and lengths use all steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.agree.human import NO_ERROR, ChainPair
from pipeline.analysis.agree.rulings import Bin, reliability
from pipeline.core.statistics import Floats, Interval, Resampling, auc, rank_correlation, ratio

PARTS = 5
"""Equal parts of a chain, for scores by position."""
LENGTHS = ((1, 2), (3, 4), (5, 8), (9, 16), (17, None))
"""First and last number of steps of each group of chains, for scores by length."""
_FEWEST_STEPS = 2
"""A chain with fewer steps has its lowest score on its last step whatever the scores are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFigures:
    """`good`, `bad`: steps by human label."""

    good: int
    bad: int
    auc: Interval
    brier: Interval
    ece: float | None
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionFigures:
    """Steps in one part of their chains, from `low` to `high` of its length. `mean_good` and `mean_bad` are mean scores by
    human label, `auc` is among the steps of this part."""

    low: float
    high: float
    steps: int
    mean: float
    good: int
    bad: int
    mean_good: float | None
    mean_bad: float | None
    auc: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFigures:
    """Chains with `first` to `last` steps. `lowest_correct`: mean of the lowest score in chains without a human error."""

    first: int
    last: int | None
    chains: int
    mean: float
    lowest: float
    lowest_correct: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LowestOnLast:
    """Over chains of at least two steps: how often the last step has the lowest score; ties count in parts. `by_chance`:
    how often it would if each step were equally likely. `correct`: the same over `correct_chains`, in which people find no
    error."""

    chains: int
    share: Interval
    by_chance: float | None
    correct_chains: int
    correct: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Trends:
    """Rank correlations: of a good step's score with its relative position, and of the lowest score in a chain without a human
    error with its number of steps. None without variation."""

    score_and_position: float | None
    lowest_and_length: float | None


def step_figures(pairs: Sequence[ChainPair], n_bins: int, resampling: Resampling) -> StepFigures:
    """AUC, Brier score and ECE of the steps with a human label."""
    curve = reliability(pairs, n_bins, resampling.confidence)
    sums = np.zeros((len(pairs), 4))
    for row, pair in zip(sums, pairs, strict=True):
        for score, good in zip(pair.labelled.values, pair.human.goods, strict=True):
            if score is not None and good is not None:
                row += ((score - good) ** 2, 1, good, not good)
    _, _, good, bad = sums.sum(axis=0)
    return StepFigures(
        good=int(good),
        bad=int(bad),
        auc=curve.auc,
        brier=resampling.estimate(sums[:, :2], ratio),
        ece=curve.ece,
        bins=curve.bins,
    )


def by_position(pairs: Sequence[ChainPair], confidence: float) -> list[PositionFigures]:
    """Scores in each part of the chains; parts without a step are left out."""
    steps = np.array(list(_steps(pairs)), dtype=np.float64).reshape(-1, 4)
    part = np.minimum((steps[:, 1] * PARTS).astype(np.int64), PARTS - 1)
    return [_position(steps[part == at], at, confidence) for at in range(PARTS) if (part == at).any()]


def length_groups(pairs: Sequence[ChainPair]) -> list[str]:
    """The name of the group of LENGTHS that each chain belongs to."""
    return [
        next(
            name_of_lengths(first, last)
            for first, last in LENGTHS
            if last is None or len(pair.human.steps) <= last
        )
        for pair in pairs
    ]  # fmt: skip


def name_of_lengths(first: int, last: int | None) -> str:
    """A group of chains by their number of steps, such as `5-8` or `17+`."""
    return f"{first}+" if last is None else f"{first}-{last}"


def by_length(pairs: Sequence[ChainPair]) -> list[LengthFigures]:
    """Scores of the chains of each length group; groups without a chain are left out."""
    groups = length_groups(pairs)
    return [
        _length(first, last, found)
        for first, last in LENGTHS
        if (found := [pair for pair, name in zip(pairs, groups, strict=True) if name == name_of_lengths(first, last)])
    ]


def lowest_on_last(pairs: Sequence[ChainPair], resampling: Resampling) -> LowestOnLast:
    """How often the last step of a chain has its lowest score."""
    long = [pair for pair in pairs if len(pair.labelled.values) >= _FEWEST_STEPS]
    correct = [pair for pair in long if pair.human.first_error == NO_ERROR]

    def share(some: Sequence[ChainPair]) -> Interval:
        return resampling.estimate(np.array([(_on_last(pair), 1.0) for pair in some]).reshape(-1, 2), ratio)

    return LowestOnLast(
        chains=len(long),
        share=share(long),
        by_chance=float(np.mean([1 / len(pair.labelled.values) for pair in long])) if long else None,
        correct_chains=len(correct),
        correct=share(correct),
    )


def trends(pairs: Sequence[ChainPair]) -> Trends:
    """How scores go with position and with length where there is no error."""
    steps = np.array(list(_steps(pairs)), dtype=np.float64).reshape(-1, 4)
    good = steps[steps[:, 3] == 1]
    correct = [pair for pair in pairs if pair.human.first_error == NO_ERROR]
    return Trends(
        score_and_position=rank_correlation(good[:, 1], good[:, 2]),
        lowest_and_length=rank_correlation(
            np.array([float(len(pair.labelled.values)) for pair in correct]),
            np.array([_lowest(pair) for pair in correct]),
        ),
    )


def _steps(pairs: Sequence[ChainPair]) -> Iterator[tuple[float, float, float, float]]:
    """Of every step: its chain's number, the middle of its place in the chain (0 to 1), its score, and 1 for good, 0 for
    bad or NaN by human label."""
    for number, pair in enumerate(pairs):
        length = len(pair.labelled.values)
        for at, (score, good) in enumerate(zip(pair.labelled.values, pair.human.goods, strict=True)):
            if score is not None:
                yield number, (at + 0.5) / length, score, float("nan") if good is None else float(good)


def _position(steps: Floats, at: int, confidence: float) -> PositionFigures:
    judged = steps[~np.isnan(steps[:, 3])]
    goods = judged[:, 3] == 1
    return PositionFigures(
        low=at / PARTS,
        high=(at + 1) / PARTS,
        steps=len(steps),
        mean=float(steps[:, 2].mean()),
        good=int(goods.sum()),
        bad=int((~goods).sum()),
        mean_good=_mean(judged[goods, 2]),
        mean_bad=_mean(judged[~goods, 2]),
        auc=auc(judged[:, 2], goods, judged[:, 0].astype(np.int64), confidence),
    )


def _length(first: int, last: int | None, pairs: Sequence[ChainPair]) -> LengthFigures:
    scores = [score for pair in pairs for score in pair.labelled.values if score is not None]
    correct = [_lowest(pair) for pair in pairs if pair.human.first_error == NO_ERROR]
    return LengthFigures(
        first=first,
        last=last,
        chains=len(pairs),
        mean=float(np.mean(scores)),
        lowest=float(np.mean([_lowest(pair) for pair in pairs])),
        lowest_correct=_mean(np.array(correct)),
    )


def _lowest(pair: ChainPair) -> float:
    return min(score for score in pair.labelled.values if score is not None)


def _on_last(pair: ChainPair) -> float:
    scores = pair.labelled.values
    lowest = _lowest(pair)
    return (scores[-1] == lowest) / sum(score == lowest for score in scores)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
