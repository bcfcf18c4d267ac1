"""How the values and labels of two runs differ over the prefixes that both have, how much of the difference sampling noise
explains, and how much remains. Pure.

**Shift.** Shifts use the column `unbiased_value`, which is unbiased for every single prefix, also if sampling stops early. A
mean over many prefixes averages out noise, but not bias. `value` may be shrunk towards usual values, and by different amounts
under two estimators, so the mean of its differences could shift although nothing changed. Correlations use `value`, because
labels are made from it and a model is trained on it.

**Beyond noise.** Let c of the n_a + n_b graded rollouts of a prefix in both runs be correct, and p = c / (n_a + n_b). If
nothing changed, the difference between the shares of correct rollouts has a standard deviation of about
sqrt(p (1 - p) (1 / n_a + 1 / n_b)). It exceeds 1.96 standard deviations in about 5 of 100 prefixes, in fewer if n is small,
because shares are discrete: eight rollouts give nine. `by_chance` is the exact share: given c, the number of correct rollouts
of b is hypergeometric (Fisher 1935), whatever the value. The figures do not say which prefixes moved; `beyond` - `by_chance` is
a lower bound on the share of those that did.

This is exact for `fixed`. `pooled` chooses rollouts by earlier outcomes; the effect of that is measured in the documented
figures. Under `first_success` and `bisect`, sampling stops at a correct rollout, so shares of counts have no meaning, and these
figures are left out.

**Correlation without noise.** This is Spearman's correction for attenuation (1904). The noise of two runs is independent, so
the covariance of their unbiased values is that of the true values V. It is divided by the standard deviations of the true
values instead of the estimated ones: Var V = Var(unbiased_value) - mean(p (1 - p) / (n - 1)) for `fixed`, from two rollouts on,
and Var V = Var(value) + mean(value_sd^2) for `pooled`, which holds for its posteriors on average (law of total variance).

**Labels** are compared step by step, and by the first error of each chain. A step that chains share counts once, with its
label in the first common chain. The last step of a chain with an outcome is left out of single steps, because both runs take
its label from the answer that the chain states. Their `by_chance` is the share of flips between two samples of the same true
values. It is exact given the number of correct rollouts of each prefix in both runs together. It is computed if both runs use
`fixed` and a rule that needs only a step's own counts: `any`, `threshold` or `posterior`, with `after_error=keep`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated

import numpy as np
import polars as pl
from scipy.stats import hypergeom

from pipeline.analysis.compare.frames import Common
from pipeline.analysis.comparison import jackknife, mean, rank_correlation, sums_of, within
from pipeline.config.choices import AfterError, LabelRule
from pipeline.core.records import Counts
from pipeline.core.statistics import Floats, Interval, Ints
from pipeline.display.columns import Column
from pipeline.estimators.base import Estimator
from pipeline.estimators.fixed import measured_value
from pipeline.estimators.labels import NEGATIVE, NEUTRAL, POSITIVE, step_labels

_SINGLE = 8
"""Up to this, each position is a range of its own. After it, a range ends at each power of two."""
_LEAST_VARIANCE = 1e-18
"""A smaller variance is rounding error: all values are the same."""
Z = 1.96
_ROUNDING = 1e-9
_FEWEST_ROLLOUTS = 2
"""A single rollout says nothing about its own noise."""
KINDS = (POSITIVE, NEGATIVE, NEUTRAL, None)
"""Rows and columns of the cross table."""
_BY_COUNTS = (LabelRule.any, LabelRule.threshold, LabelRule.posterior)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftByPosition:
    """Shift of the prefixes with `first` to `last` steps."""

    first: int
    last: int
    prefixes: Annotated[int, Column("prefixes")]
    shift: Annotated[Interval, Column("b - a", 3, "+")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """`shift`: mean of b - a over `prefixes` of `problems`, each prefix once. `equal`: how many of them have the same value in
    both. `pearson`, `spearman`: over `correlated` prefixes; `spearman` has no interval."""

    prefixes: int
    problems: int
    equal: int
    mean_a: float | None
    mean_b: float | None
    shift: Interval
    by_position: tuple[ShiftByPosition, ...]
    correlated: int
    pearson: Interval
    spearman: float | None


def shift(found: Common) -> Shift:
    rows = found.prefixes.drop_nulls(("unbiased_a", "unbiased_b"))
    problems, a, b = rows["problem"].to_numpy(), _floats(rows["unbiased_a"]), _floats(rows["unbiased_b"])
    first, last = _ranges(rows["position"].cast(pl.Int64).to_numpy())
    both = found.prefixes.drop_nulls(("value_a", "value_b"))
    values = _floats(both["value_a"]), _floats(both["value_b"])
    return Shift(
        prefixes=len(rows),
        problems=len(np.unique(problems)),
        equal=int((a == b).sum()),
        mean_a=float(a.mean()) if len(a) else None,
        mean_b=float(b.mean()) if len(b) else None,
        shift=within(mean(problems, b - a), -1, 1),
        by_position=tuple(
            ShiftByPosition(
                first=int(first[here][0]),
                last=int(last[here][0]),
                prefixes=int(here.sum()),
                shift=within(mean(problems[here], (b - a)[here]), -1, 1),
            )
            for here in (first == start for start in np.unique(first))
        ),
        correlated=len(both),
        pearson=correlation(both["problem"].to_numpy(), *values),
        spearman=rank_correlation(*values),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """`beyond`: share of the `tested` prefixes that differ by more than 1.96 standard deviations of their noise. `by_chance`:
    the share that is expected if nothing changed. `excess`: `beyond` - `by_chance`. These are None or empty if counts are not
    shares (`counts_are_shares`). `correlation`: of the true values, over `correlated` prefixes."""

    tested: int
    beyond: float | None
    by_chance: float | None
    excess: Interval
    correlated: int
    correlation: Interval


def noise(found: Common, estimator_a: Estimator, estimator_b: Estimator) -> Noise:
    counted = estimator_a.counts_are_shares and estimator_b.counts_are_shares
    prefixes = found.prefixes if counted else found.prefixes.clear()
    tested = prefixes.filter((pl.col("rollouts_a") > 0) & (pl.col("rollouts_b") > 0))
    counts = (tested[name].cast(pl.Int64).to_numpy() for name in ("rollouts_a", "rollouts_b", "correct_a", "correct_b"))
    beyond, by_chance = _exceeds(*counts).astype(np.float64), _by_chance(tested)
    rows, correlation = _correlation_of_truths(prefixes, estimator_a, estimator_b)
    return Noise(
        tested=len(tested),
        beyond=float(beyond.mean()) if len(tested) else None,
        by_chance=float(by_chance.mean()) if len(tested) else None,
        excess=within(mean(tested["problem"].to_numpy(), beyond - by_chance), -1, 1),
        correlated=rows,
        correlation=correlation,
    )


def correlation(problems: Ints, x: Floats, y: Floats) -> Interval:
    """Pearson's correlation. It is undefined if one of the two does not vary."""
    if not len(x):
        return Interval()
    x, y = x - x.mean(), y - y.mean()
    sums = sums_of(problems, [np.ones(len(x)), x, y, x * x, y * y, x * y])
    return within(jackknife(sums, _correlation), -1, 1)


def correlation_of(covariance: Floats, variance_x: Floats, variance_y: Floats) -> Floats:
    """Correlations between -1 and 1; NaN where a variance is not above 0."""
    defined = (variance_x > _LEAST_VARIANCE) & (variance_y > _LEAST_VARIANCE)
    spread = np.sqrt(np.where(defined, variance_x * variance_y, 1.0))
    return np.asarray(np.where(defined, np.clip(covariance / spread, -1.0, 1.0), np.nan))


@lru_cache(maxsize=65_536)
def right_of_b(n_a: int, n_b: int, correct: int) -> tuple[Ints, Floats]:
    """The possible numbers of correct rollouts of b and their probabilities (hypergeometric), given that `correct` rollouts of
    both runs are correct and nothing changed."""
    right = np.arange(max(0, correct - n_a), min(correct, n_b) + 1)
    return right, np.asarray(hypergeom.pmf(right, n_a + n_b, correct, n_b))


@lru_cache(maxsize=65_536)
def beyond_by_chance(n_a: int, n_b: int, correct: int) -> float:
    """Probability of a difference beyond noise if nothing changed."""
    right, mass = right_of_b(n_a, n_b, correct)
    return float(mass[_exceeds(n_a, n_b, correct - right, right)].sum())


def _correlation(sums: Floats) -> Floats:
    x, y, xx, yy, xy = _means(sums)
    return correlation_of(xy - x * y, xx - x * x, yy - y * y)


def _means(sums: Floats) -> Floats:
    """The means of the columns after the first, which counts: (..., columns) -> (columns - 1, ...)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.moveaxis(sums[..., 1:] / sums[..., :1], -1, 0)


def _ranges(positions: Ints) -> tuple[Ints, Ints]:
    """First and last position of the range of each position: single ones up to `_SINGLE`, then 9-16, 17-32 ..."""
    doublings = np.ceil(np.log2(np.maximum(positions, 2))).astype(np.int64)
    single = positions <= _SINGLE
    return np.where(single, positions, 2 ** (doublings - 1) + 1), np.where(single, positions, 2**doublings)


def _floats(column: pl.Series) -> Floats:
    return column.cast(pl.Float64).to_numpy()


def _exceeds(n_a: Ints | int, n_b: Ints | int, right_a: Ints, right_b: Ints) -> np.typing.NDArray[np.bool_]:
    share = (right_a + right_b) / (np.asarray(n_a) + n_b)
    sd = np.sqrt(share * (1 - share) * (1 / np.asarray(n_a) + 1 / np.asarray(n_b)))
    return np.asarray(np.abs(right_b / np.asarray(n_b) - right_a / np.asarray(n_a)) > Z * sd + _ROUNDING)


def _by_chance(tested: pl.DataFrame) -> Floats:
    counts = tested.select("rollouts_a", "rollouts_b", (pl.col("correct_a") + pl.col("correct_b")).alias("correct"))
    distinct = counts.unique(maintain_order=True)
    chances = pl.Series("chance", [beyond_by_chance(*row) for row in distinct.iter_rows()], pl.Float64)
    return counts.join(distinct.with_columns(chances), on=counts.columns, maintain_order="left")["chance"].to_numpy()


def _correlation_of_truths(
    prefixes: pl.DataFrame, estimator_a: Estimator, estimator_b: Estimator
) -> tuple[int, Interval]:
    sides = (("a", estimator_a), ("b", estimator_b))
    rows = prefixes.filter(pl.all_horizontal(_known(*side) for side in sides))
    if not len(rows):
        return 0, Interval()
    a, b = (_centred(rows[f"unbiased_{side}"]) for side in "ab")
    columns = [np.ones(len(rows)), a, b, a * b, *(column for side in sides for column in _truth(rows, *side))]
    problems = rows["problem"].to_numpy()
    return len(rows), within(jackknife(sums_of(problems, columns), _without_noise), -1, 1)


def _known(side: str, estimator: Estimator) -> pl.Expr:
    if estimator.value_is_share:
        return pl.col(f"unbiased_rollouts_{side}") >= _FEWEST_ROLLOUTS
    return pl.col(f"unbiased_{side}").is_not_null() & pl.col(f"sd_{side}").is_not_null()


def _truth(rows: pl.DataFrame, side: str, estimator: Estimator) -> tuple[Floats, Floats]:
    """Per row, an estimate of the true value, and its square corrected for noise. Their means give the variance of true
    values."""
    if estimator.value_is_share:
        share, n = rows[f"unbiased_{side}"].to_numpy(), rows[f"unbiased_rollouts_{side}"].to_numpy()
        centred = _centred(rows[f"unbiased_{side}"])
        most = 1 / (1 - estimator.settings.miss_rate)
        return centred, centred**2 - share * (most - share) / (n - 1)
    centred = _centred(rows[f"value_{side}"])
    return centred, centred**2 + rows[f"sd_{side}"].to_numpy() ** 2


def _without_noise(sums: Floats) -> Floats:
    a, b, ab, near_a, square_a, near_b, square_b = _means(sums)
    return correlation_of(ab - a * b, square_a - near_a**2, square_b - near_b**2)


def _centred(column: pl.Series) -> Floats:
    numbers = column.to_numpy()
    return np.asarray(numbers - numbers.mean(), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstErrors:
    """The first step with label 0 of each of `chains`: in b it is the `same` step, an `earlier` or a `later` one, `appeared`
    (no error in a) or `vanished` (no error in b). `none`: no error in either. `uncertain`: unknown in one of the runs."""

    chains: int
    none: int
    same: int
    earlier: int
    later: int
    appeared: int
    vanished: int
    uncertain: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """`table`: steps by label in a (rows) and in b (columns), in the order of `KINDS`. `decided`: number of steps that are not
    uncertain in either run. `flipped`: the share of them whose labels differ."""

    table: tuple[tuple[int, ...], ...]
    decided: int
    flipped: Interval
    by_chance: float | None
    first_errors: FirstErrors


def label_flips(found: Common, estimator_a: Estimator, estimator_b: Estimator) -> Flips:
    """The estimators must have the settings that the labels were made with."""
    steps = found.steps.filter(~pl.col("terminal")).unique("prefix_id", keep="first", maintain_order=True)
    counted = {(a, b): number for a, b, number in steps.group_by("label_a", "label_b").len().iter_rows()}
    decided = steps.drop_nulls(("label_a", "label_b"))
    differ = (decided["label_a"] != decided["label_b"]).cast(pl.Float64).to_numpy()
    problems = decided["problem"].to_numpy()
    return Flips(
        table=tuple(tuple(counted.get((a, b), 0) for b in KINDS) for a in KINDS),
        decided=len(decided),
        flipped=within(mean(problems, differ), 0, 1),
        by_chance=_flips_by_chance(found, steps, estimator_a, estimator_b),
        first_errors=_first_errors(found.steps),
    )


def _first_errors(steps: pl.DataFrame) -> FirstErrors:
    position = pl.col("position")
    chains = steps.group_by("chain_id").agg(
        *(position.filter(pl.col(f"label_{side}") == NEGATIVE).min().alias(f"error_{side}") for side in "ab"),
        *(position.filter(pl.col(f"label_{side}").is_null()).min().alias(f"open_{side}") for side in "ab"),
    )
    known = [
        pl.col(f"open_{side}").is_null() | (pl.col(f"error_{side}") < pl.col(f"open_{side}")).fill_null(value=False)
        for side in "ab"
    ]
    decided = chains.filter(pl.all_horizontal(known))
    a, b = pl.col("error_a"), pl.col("error_b")
    cases = {
        "none": a.is_null() & b.is_null(),
        "same": (a == b).fill_null(value=False),
        "earlier": (b < a).fill_null(value=False),
        "later": (b > a).fill_null(value=False),
        "appeared": a.is_null() & b.is_not_null(),
        "vanished": a.is_not_null() & b.is_null(),
    }
    counts = decided.select(case.sum().alias(name) for name, case in cases.items()).row(0, named=True)
    return FirstErrors(chains=len(chains), uncertain=len(chains) - len(decided), **counts)


def _flips_by_chance(
    found: Common, steps: pl.DataFrame, estimator_a: Estimator, estimator_b: Estimator
) -> float | None:
    if not (_follows_counts(estimator_a) and _follows_counts(estimator_b)):
        return None
    rules = rule_of_counts(estimator_a), rule_of_counts(estimator_b)
    counts = (
        steps.select("prefix_id")
        .join(found.prefixes, on="prefix_id")
        .filter((pl.col("rollouts_a") > 0) & (pl.col("rollouts_b") > 0))
        .group_by("rollouts_a", "rollouts_b", (pl.col("correct_a") + pl.col("correct_b")).alias("correct"))
        .len()
    )
    flipped = decided = 0.0
    for n_a, n_b, correct, prefixes in counts.iter_rows():
        right_of_each, masses = right_of_b(n_a, n_b, correct)
        for right, mass in zip(right_of_each.tolist(), masses.tolist(), strict=True):
            labels = rules[0](correct - right, n_a), rules[1](right, n_b)
            if None not in labels:
                decided += prefixes * mass
                flipped += prefixes * mass * (labels[0] != labels[1])
    return flipped / decided if decided else None


def _follows_counts(estimator: Estimator) -> bool:
    """Whether a label depends only on the counts of its own prefix, and their number on no outcome."""
    settings = estimator.settings
    by_counts = settings.rule in _BY_COUNTS and settings.after_error is AfterError.keep
    return estimator.one_round and estimator.value_is_share and by_counts


def rule_of_counts(estimator: Estimator) -> Callable[[int, int], int | None]:
    """The label of a step as a function of its correct and its graded rollouts, for a fixed number of rollouts and rules that
    use nothing else."""

    @cache
    def label(correct: int, graded: int) -> int | None:
        step = measured_value(Counts(correct=correct, graded=graded), estimator.settings)
        return step_labels(step, [step], estimator.settings)[0]

    return label
