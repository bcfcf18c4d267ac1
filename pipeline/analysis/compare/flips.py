"""Labels of two runs compared step by step, and by the first error of each chain. Pure.

A step that chains share counts once, with its label in the first common chain. The last step of a chain with an outcome is left
out of single steps, because both runs take its label from the answer that the chain states.

`by_chance` is the share of flips between two samples of the same true values. It is exact given the number of correct rollouts
of each prefix in both runs together, see `shift`. It is computed if both runs use `fixed` and a rule that needs only a step's
own counts: `any`, `threshold` or `posterior`, with `after_error=keep`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import polars as pl

from pipeline.analysis.compare.frames import Common
from pipeline.analysis.compare.shift import right_of_b
from pipeline.analysis.comparison import mean, within
from pipeline.config.choices import AfterError, LabelRule
from pipeline.core.records import Counts
from pipeline.core.statistics import Interval
from pipeline.estimators.base import Estimator
from pipeline.estimators.fixed import measured_value
from pipeline.estimators.labels import NEGATIVE, NEUTRAL, POSITIVE, step_labels

KINDS = (POSITIVE, NEGATIVE, NEUTRAL, None)
"""Rows and columns of the cross table."""
_BY_COUNTS = (LabelRule.any, LabelRule.threshold, LabelRule.posterior)


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
        by_chance=_by_chance(found, steps, estimator_a, estimator_b),
        first_errors=_first_errors(found.steps),
    )


def _first_errors(steps: pl.DataFrame) -> FirstErrors:
    chains = steps.group_by("chain_id").agg(
        *(expression for side in "ab" for expression in (_first(side, NEGATIVE), _first(side, None)))
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


def _first(side: str, label: int | None) -> pl.Expr:
    column = pl.col(f"label_{side}")
    is_label = column.is_null() if label is None else column == label
    name = "open" if label is None else "error"
    return pl.col("position").filter(is_label).min().alias(f"{name}_{side}")


def _by_chance(found: Common, steps: pl.DataFrame, estimator_a: Estimator, estimator_b: Estimator) -> float | None:
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
