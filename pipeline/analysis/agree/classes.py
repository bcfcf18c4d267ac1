"""PRMBench's classes of errors: F1 of good steps, F1 of bad steps, and their mean, the PRMScore (Song et al. 2025, arXiv
2501.03124). Pure.

As in the code of its authors, all steps of a chain count, a step is called good if its score is above the threshold (theirs
is 0.5), "positive" is good, and

    F1 = 2 TP / (2 TP + FP + FN)    negative F1 = 2 TN / (2 TN + FN + FP)    PRMScore = (F1 + negative F1) / 2

over all steps of a class, or of all classes. Chains of the class `correct`, which are the original processes, are a class
of their own and are not in the total. The class `multi_solutions` has no bad step: its PRMScore is its F1, as in their
table, while the total takes its steps as they are. The score of a dimension is the mean of its classes.

Two things differ. Where precision and recall are both 0 their code writes -1 for F1; here it is 0. A figure without a step
is not defined; theirs is -1. Their `similarity`, and the scores for redundancy that some models have beside those for
validity, are not covered. Intervals are bootstrap percentiles over chains.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.agree.human import UNMODIFIED, ChainPair
from pipeline.analysis.agree.rulings import by_threshold
from pipeline.analysis.agree.steps import cells
from pipeline.analysis.comparison import bootstrap
from pipeline.core.statistics import Floats, Interval, share

DIMENSIONS = {
    "simplicity": ("redundency", "circular"),
    "soundness": ("counterfactual", "step_contradiction", "domain_inconsistency", "confidence"),
    "sensitivity": ("missing_condition", "deception", "multi_solutions"),
}
"""The classes of each dimension, with the names in the data set."""
_TP, _FP, _TN, _FN = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassResult:
    """`true_good`: good steps that are called good, and so on."""

    chains: int
    true_good: int
    false_good: int
    true_bad: int
    false_bad: int
    f1: Interval
    negative_f1: Interval
    prm_score: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """`dimensions`: None where a class of it is missing or its score is not defined."""

    threshold: float
    total: ClassResult
    by_class: dict[str, ClassResult]
    dimensions: dict[str, float | None]


def error_classes(pairs: Sequence[ChainPair], threshold: float, resamples: int) -> Classes | None:
    """The results of all classes at one threshold. None if no chain has a class."""
    classed = [(pair, pair.human.error_class) for pair in pairs if pair.human.error_class is not None]
    if not classed:
        return None
    of_classes = [pair for pair, _ in classed]
    goods = by_threshold([pair.labelled for pair in of_classes], threshold).goods
    assert goods is not None
    rows = cells(of_classes, goods)
    names = np.array([name for _, name in classed])
    by_class = {name: _result(rows[names == name], resamples) for name in dict.fromkeys(names.tolist())}
    return Classes(
        threshold=threshold,
        total=_result(rows[names != UNMODIFIED], resamples),
        by_class=by_class,
        dimensions={name: _dimension(classes, by_class) for name, classes in DIMENSIONS.items()},
    )


def f1_good(sums: Floats) -> Floats:
    """(..., 4) sums of steps -> (...): F1 of good steps; NaN without a good step that is there or called so."""
    return share(2 * sums[..., _TP], 2 * sums[..., _TP] + sums[..., _FP] + sums[..., _FN])


def f1_bad(sums: Floats) -> Floats:
    """(..., 4) sums of steps -> (...): F1 of bad steps; NaN without a bad step that is there or called so."""
    return share(2 * sums[..., _TN], 2 * sums[..., _TN] + sums[..., _FN] + sums[..., _FP])


def prm_score(sums: Floats) -> Floats:
    """(..., 4) sums of steps -> (...)."""
    return (f1_good(sums) + f1_bad(sums)) / 2


def _result(rows: Floats, resamples: int) -> ClassResult:
    sums = rows.sum(axis=0)
    without_bad = sums[_FP] + sums[_TN] == 0
    return ClassResult(
        chains=len(rows),
        true_good=int(sums[_TP]),
        false_good=int(sums[_FP]),
        true_bad=int(sums[_TN]),
        false_bad=int(sums[_FN]),
        f1=bootstrap(rows, f1_good, resamples=resamples),
        negative_f1=Interval() if without_bad else bootstrap(rows, f1_bad, resamples=resamples),
        prm_score=bootstrap(rows, f1_good if without_bad else prm_score, resamples=resamples),
    )


def _dimension(classes: Sequence[str], by_class: dict[str, ClassResult]) -> float | None:
    scores = [by_class[name].prm_score.value for name in classes if name in by_class]
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if len(known) == len(classes) else None
