"""Labels, values and scores of single steps against what people call good or bad; against position and length; and where the
lowest scores lie. Pure.

- Labels: the share of steps that a ruling calls what people call them, and the mean of these shares among good and bad steps.
- AUC: P(a good step scores above a bad one), see `comparison.auc`.
- Brier score: the mean of (score - 1)^2 over good and of score^2 over bad steps (Brier 1950). Bootstrap over chains.
- Brier skill: 1 - Brier score / Brier score of the share of good steps as the score of each step (Murphy 1973). Above 0,
  scores say more than that share.
- ECE: see `comparison.calibration_error`. It has no interval, because resampling adds to it.

Steps without a human label are left out, such as those after a first error. Positions and lengths use all steps. A value is
P(correct final answer), not P(good step): a curve off the diagonal does not mean a sampling error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl

from pipeline.analysis.agree.human import NO_ERROR, ChainPair
from pipeline.analysis.agree.rulings import Ruling
from pipeline.analysis.comparison import (
    Flags,
    auc,
    binned,
    bootstrap,
    calibration_error,
    rank_correlation,
    ratio,
    wilson,
)
from pipeline.core.formatting import format_span
from pipeline.core.statistics import Floats, Interval, share
from pipeline.display.columns import Column

PARTS = 5
"""Equal parts of a chain, for scores by position."""
LENGTHS = ((1, 2), (3, 4), (5, 8), (9, 16), (17, None))
"""First and last number of steps of each group of chains, for scores by length."""
_FEWEST_STEPS = 2
"""A chain with fewer steps has its lowest score on its last step whatever the scores are."""
_STEP = {"chain": pl.Int64, "place": pl.Float64, "value": pl.Float64, "good": pl.Boolean, "sampled": pl.Boolean}
_CHAIN = {
    **{"steps": pl.Int64, "scores": pl.Int64, "total": pl.Float64, "lowest": pl.Float64, "on_last": pl.Float64},
    "correct": pl.Boolean,
}
_GOOD, _GOOD_RIGHT, _BAD, _BAD_RIGHT = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLabels:
    """`good` and `bad`: steps by human label, without those that the ruling leaves `uncertain`. `balanced`: the mean of the
    accuracies among good and among bad steps."""

    good: Annotated[int, Column("good")]
    bad: Annotated[int, Column("bad")]
    uncertain: Annotated[int, Column("uncertain")]
    accuracy: Annotated[Interval, Column("accuracy")]
    balanced: Annotated[Interval, Column("balanced")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Steps with values in [`low`, `high`), the last bin including its end: their number, their mean value, and the share
    that humans call good, with its Wilson interval."""

    low: float
    high: float
    steps: int
    mean_value: float
    good: float
    good_low: float | None
    good_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """`bins`: those that hold steps. `sampled_auc` leaves out last steps whose value is the chain's own outcome. `unvalued`:
    steps with a human label but no value."""

    steps: int
    unvalued: int
    bins: tuple[Bin, ...]
    ece: float | None
    auc: Interval
    sampled_auc: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFigures:
    """`good`, `bad`: steps by human label."""

    good: Annotated[int, Column("good")]
    bad: Annotated[int, Column("bad")]
    auc: Annotated[Interval, Column("AUC")]
    brier: Annotated[Interval, Column("Brier score")]
    skill: Annotated[Interval, Column("Brier skill", sign="+")]
    ece: Annotated[float | None, Column("ECE")]
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionFigures:
    """Steps in one part of their chains, from `low` to `high` of its length. `mean_good` and `mean_bad` are mean scores by
    human label, `auc` is among the steps of this part."""

    low: float
    high: float
    steps: Annotated[int, Column("steps")]
    mean: Annotated[float, Column("mean")]
    good: Annotated[int, Column("good")]
    bad: Annotated[int, Column("bad")]
    mean_good: Annotated[float | None, Column("mean of good")]
    mean_bad: Annotated[float | None, Column("mean of bad")]
    auc: Annotated[Interval, Column("AUC")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFigures:
    """Chains with `first` to `last` steps. `lowest_correct`: mean of the lowest score in chains without a human error."""

    first: int
    last: int | None
    chains: Annotated[int, Column("chains")]
    mean: Annotated[float, Column("mean")]
    lowest: Annotated[float, Column("mean lowest")]
    lowest_correct: Annotated[float | None, Column("... without error")]


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


def cells(pairs: Sequence[ChainPair], calls: Sequence[Sequence[bool | None]]) -> Floats:
    """Steps of each chain that are good and called so, bad but called good, bad and called so, and good but called bad:
    (chains, 4). A step counts if people and the method that calls say something of it."""
    rows = np.zeros((len(pairs), 4))
    for row, pair, said in zip(rows, pairs, calls, strict=True):
        for good, call in zip(pair.human.goods, said, strict=True):
            if good is not None and call is not None:
                row[(0 if call else 3) if good else (1 if call else 2)] += 1
    return rows


def step_labels(pairs: Sequence[ChainPair], ruling: Ruling, resamples: int) -> StepLabels | None:
    """None for a ruling that does not judge single steps."""
    if ruling.goods is None:
        return None
    true_good, false_good, true_bad, false_bad = cells(pairs, ruling.goods).T
    rows = np.stack([true_good + false_bad, true_good, true_bad + false_good, true_bad], axis=-1)
    good, _, bad, _ = rows.sum(axis=0).astype(int).tolist()
    return StepLabels(
        good=good,
        bad=bad,
        uncertain=steps_of(pairs)["good"].count() - good - bad,
        accuracy=bootstrap(rows, _accuracy, resamples=resamples),
        balanced=bootstrap(rows, _balanced, resamples=resamples),
    )


def reliability(pairs: Sequence[ChainPair], n_bins: int) -> Reliability:
    """The reliability curve over bins of equal width, and the AUC of values: how well they rank good steps above bad ones."""
    judged = steps_of(pairs).drop_nulls("good")
    valued = judged.drop_nulls("value")
    return Reliability(
        steps=len(valued),
        unvalued=len(judged) - len(valued),
        bins=_bins(valued, n_bins),
        ece=_ece(valued, n_bins),
        auc=_auc(valued),
        sampled_auc=_auc(valued.filter("sampled")),
    )


def step_figures(pairs: Sequence[ChainPair], n_bins: int, resamples: int) -> StepFigures:
    """AUC, Brier score and ECE of the steps with a human label."""
    steps = steps_of(pairs)
    judged = steps.drop_nulls(("value", "good"))
    apart = pl.col("value") - pl.col("good").cast(pl.Float64)
    sums = steps.group_by("chain", maintain_order=True).agg(
        (apart**2).sum(),
        known=apart.count().cast(pl.Float64),
        good=pl.col("good").filter(apart.is_not_null()).sum().cast(pl.Float64),
    )
    return StepFigures(
        good=int(judged["good"].sum()),
        bad=int((~judged["good"]).sum()),
        auc=_auc(judged),
        brier=bootstrap(sums["value", "known"].to_numpy(), ratio, resamples=resamples),
        skill=bootstrap(sums["value", "known", "good"].to_numpy(), _skill, resamples=resamples),
        ece=_ece(judged, n_bins),
        bins=_bins(judged, n_bins),
    )


def by_position(pairs: Sequence[ChainPair]) -> list[PositionFigures]:
    """Scores in each part of the chains; parts without a step are left out."""
    part = (pl.col("place") * PARTS).cast(pl.Int64).clip(upper_bound=PARTS - 1)
    steps = steps_of(pairs).drop_nulls("value").with_columns(part=part)
    value, good = pl.col("value"), pl.col("good")
    figures = steps.group_by("part").agg(
        steps=pl.len(),
        mean=value.mean(),
        good=good.sum(),
        bad=(~good).sum(),
        mean_good=value.filter(good).mean(),
        mean_bad=value.filter(~good).mean(),
    )
    return [
        PositionFigures(
            low=at / PARTS, high=(at + 1) / PARTS, **row, auc=_auc(steps.filter(part=at).drop_nulls("good"))
        )
        for at, row in sorted((row.pop("part"), row) for row in figures.to_dicts())
    ]


def length_groups(pairs: Sequence[ChainPair]) -> list[str]:
    """The name of the group of LENGTHS that each chain belongs to."""
    lengths = [len(pair.human.steps) for pair in pairs]
    return [next(format_span(*ends) for ends in LENGTHS if ends[1] is None or n <= ends[1]) for n in lengths]


def by_length(pairs: Sequence[ChainPair]) -> list[LengthFigures]:
    """Scores of the chains of each length group; groups without a chain are left out."""
    chains = chains_of(pairs)
    return [
        LengthFigures(
            first=first,
            last=last,
            chains=len(each),
            mean=float(each["total"].to_numpy().sum() / each["scores"].to_numpy().sum()),
            lowest=float(each["lowest"].to_numpy().mean()),
            lowest_correct=_mean(each.filter("correct")["lowest"].to_numpy()),
        )
        for first, last in LENGTHS
        if len(each := chains.filter(pl.col("steps") >= first, last is None or pl.col("steps") <= last))
    ]


def lowest_on_last(pairs: Sequence[ChainPair], resamples: int) -> LowestOnLast:
    """How often the last step of a chain has its lowest score."""
    long = chains_of(pairs).filter(pl.col("steps") >= _FEWEST_STEPS).with_columns(one=1.0)
    correct = long.filter("correct")
    share, of_correct = (
        bootstrap(some["on_last", "one"].to_numpy(), ratio, resamples=resamples) for some in (long, correct)
    )
    return LowestOnLast(
        chains=len(long),
        share=share,
        by_chance=_mean(1 / long["steps"].to_numpy()),
        correct_chains=len(correct),
        correct=of_correct,
    )


def trends(pairs: Sequence[ChainPair]) -> Trends:
    """How scores go with position and with length where there is no error."""
    good = steps_of(pairs).drop_nulls("value").filter("good")
    correct = chains_of(pairs).filter("correct").cast({"steps": pl.Float64})
    return Trends(
        score_and_position=rank_correlation(good["place"].to_numpy(), good["value"].to_numpy()),
        lowest_and_length=rank_correlation(correct["steps"].to_numpy(), correct["lowest"].to_numpy()),
    )


def steps_of(pairs: Sequence[ChainPair]) -> pl.DataFrame:
    """A row per step: `chain`, its number; `place`, the middle of its place in the chain (0 to 1); `value` and `good`, null
    where they are unknown; `sampled`, whether the value is not the chain's own outcome."""
    rows = []
    for number, pair in enumerate(pairs):
        values, last = pair.labelled.values, len(pair.labelled.values) - 1
        for at, (value, good) in enumerate(zip(values, pair.human.goods, strict=True)):
            rows.append((number, (at + 0.5) / len(values), value, good, not pair.labelled.terminal or at < last))
    return pl.DataFrame(rows, schema=_STEP, orient="row")


def chains_of(pairs: Sequence[ChainPair]) -> pl.DataFrame:
    """A row per chain: its number of `steps` and of `scores`, the `total` of these and the `lowest`, the part of its lowest
    scores that is `on_last`, the last step, and whether it is `correct`, without a human error."""
    rows = []
    for pair in pairs:
        values = pair.labelled.values
        scores = [value for value in values if value is not None]
        on_last = (values[-1] == min(scores)) / scores.count(min(scores))
        correct = pair.human.first_error == NO_ERROR
        rows.append((len(values), len(scores), sum(scores), min(scores), on_last, correct))
    return pl.DataFrame(rows, schema=_CHAIN, orient="row")


def _auc(judged: pl.DataFrame) -> Interval:
    return auc(*(judged[name].to_numpy() for name in ("value", "good", "chain")))


def _ece(judged: pl.DataFrame, n_bins: int) -> float | None:
    return calibration_error(judged["value"].to_numpy(), judged["good"].cast(pl.Float64).to_numpy(), n_bins)


def _bins(judged: pl.DataFrame, n_bins: int) -> tuple[Bin, ...]:
    values, goods = judged["value"].to_numpy(), judged["good"].to_numpy()
    return tuple(_bin(low, high, values[held], goods[held]) for low, high, held in binned(values, n_bins))


def _bin(low: float, high: float, values: Floats, goods: Flags) -> Bin:
    good = wilson(int(goods.sum()), len(goods))
    return Bin(
        low=low,
        high=high,
        steps=len(values),
        mean_value=float(values.mean()),
        good=float(goods.mean()),
        good_low=good.low,
        good_high=good.high,
    )


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _skill(sums: Floats) -> Floats:
    squares, known, good = np.moveaxis(sums, -1, 0)
    return 1 - share(squares * known, good * (known - good))


def _accuracy(sums: Floats) -> Floats:
    return share(sums[..., _GOOD_RIGHT] + sums[..., _BAD_RIGHT], sums[..., _GOOD] + sums[..., _BAD])


def _balanced(sums: Floats) -> Floats:
    return (share(sums[..., _GOOD_RIGHT], sums[..., _GOOD]) + share(sums[..., _BAD_RIGHT], sums[..., _BAD])) / 2
