"""How well step scores find the errors that people find: figures of each way to choose the threshold, and of baselines. Pure.

F1 and its two accuracies are those of `rulings`. The intervals of F1 are bootstrap percentiles over chains, those of the
accuracies Wilson's. All are for the thresholds as they are: how they were chosen is not part of an interval.

The mean is over subsets. A subset on which the threshold was chosen is left out of it, and so is a subset whose F1 is not
defined.

**The best threshold.** A step is good if its score is above the threshold, and the first step that is not is the error. So
F1 changes only where the threshold passes a score that decides a chain; between two such scores it is constant. All these
ranges are compared, not a grid. Ranges beside each other with the same F1 are one. If several ranges have the highest F1, the
widest is taken, and the lowest of equally wide ones: a threshold in its middle depends least on these chains. The number of
the others is reported.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

import numpy as np

from pipeline.analysis.agree.human import NO_ERROR, ChainPair
from pipeline.analysis.agree.rulings import (
    F1,
    FirstErrorShift,
    RightAnswers,
    Ruling,
    baselines,
    by_threshold,
    f1,
    first_errors,
    mean_f1,
)
from pipeline.analysis.comparison import wilson
from pipeline.core.statistics import Floats, Interval
from pipeline.display.columns import Column

_SAME = 1e-12
"""F1 values that differ by less are equal: they are ratios of counts."""


class How(StrEnum):
    """How the threshold of a method was chosen."""

    fixed = "fixed"
    """By the user, before looking."""
    dev = "dev"
    """The best one on another subset."""
    best = "best"
    """The best one on each subset itself: an upper bound, which no user reaches."""
    baseline = "baseline"
    """There is none: the method knows no scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestThreshold:
    """`threshold` is the middle of the range from `low` (included) to `high` (not included), in which F1 has its highest value
    `f1`. `others`: other ranges with the same F1."""

    threshold: float
    f1: float
    low: float
    high: float
    others: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetResult:
    """`erroneous`, `correct`: chains with and without a human error. The two accuracies are those among them. `best`: how the
    threshold was chosen on this subset itself."""

    erroneous: Annotated[int, Column("with error")]
    correct: Annotated[int, Column("without")]
    error_accuracy: Annotated[Interval, Column("error accuracy")]
    correct_accuracy: Annotated[Interval, Column("correct accuracy")]
    f1: Annotated[Interval, Column("F1")]
    threshold: float | None
    best: BestThreshold | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """`mean`: mean F1 over the subsets `mean_of`. `mean_with_dev`: the same with the subset on which a threshold was
    chosen, as papers print it. `uncertain`: chains of which the method says nothing; they count as missed."""

    name: str
    how: How
    total: SubsetResult
    by_subset: dict[str, SubsetResult]
    mean: Interval
    mean_of: tuple[str, ...]
    mean_with_dev: Interval | None
    shift: FirstErrorShift
    right_answers: RightAnswers
    uncertain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Chains with their human labels and the names of their subsets, None for none. Where a step without a score decides, the
    error counts as missed. `dev`: the subset on which a threshold is chosen. The means of all methods leave it out, so that
    they are of the same subsets."""

    pairs: tuple[ChainPair, ...]
    subsets: tuple[str | None, ...]
    resamples: int
    dev: str | None = None

    @property
    def names(self) -> list[str]:
        """The subsets in the order of the data."""
        return list(dict.fromkeys(name for name in self.subsets if name is not None))

    def of(self, subset: str | None) -> list[ChainPair]:
        """The chains of a subset."""
        return [pair for pair, name in zip(self.pairs, self.subsets, strict=True) if name == subset]


def undefined(judged: Judged) -> dict[str, str]:
    """The subsets whose F1 is not defined, with the reason."""
    found = {}
    for name in judged.names:
        errors = [pair.human.first_error for pair in judged.of(name) if pair.human.first_error is not None]
        if all(error == NO_ERROR for error in errors):
            found[name] = "no chain with an error"
        elif NO_ERROR not in errors:
            found[name] = "no chain without an error"
    return found


def best_on(pairs: Sequence[ChainPair]) -> BestThreshold | None:
    """The threshold with the highest F1 on these chains; None if F1 is not defined on them."""
    return best_threshold(
        ([score for score in pair.labelled.values if score is not None], pair.human.first_error)
        for pair in pairs
        if pair.human.first_error is not None
    )


def at_threshold(judged: Judged, threshold: float) -> MethodResult:
    """One threshold for all chains, chosen without them."""
    return _result(judged, _scored(judged, threshold), How.fixed)


def at_dev_threshold(judged: Judged, dev: str, found: BestThreshold) -> MethodResult:
    """The best threshold on the subset `dev` for all chains."""
    return _result(judged, _scored(judged, found.threshold), How.dev, {dev: found})


def at_best_thresholds(judged: Judged) -> MethodResult:
    """On every subset its own best threshold. A subset whose F1 is not defined has none, and its chains are left out. If
    that is so for all, such as for PRMBench's classes, one threshold for all chains."""
    whole = best_on(judged.pairs)
    if whole is not None and not any(map(best_on, map(judged.of, judged.names))):
        made = _result(judged, _scored(judged, whole.threshold), How.best)
        return replace(made, name="best threshold of all chains", total=replace(made.total, best=whole))
    found = {name: best for name in dict.fromkeys(judged.subsets) if (best := best_on(judged.of(name))) is not None}
    kept = [(pair, name) for pair, name in zip(judged.pairs, judged.subsets, strict=True) if name in found]
    among = replace(judged, pairs=tuple(pair for pair, _ in kept), subsets=tuple(name for _, name in kept))
    errors = (by_threshold([pair.labelled], found[name].threshold).errors[0] for pair, name in kept)
    ruling = Ruling(name="best threshold of each subset", errors=tuple(errors))
    return _result(among, ruling, How.best, found)


def baseline_results(judged: Judged) -> list[MethodResult]:
    """Methods that know no scores, see `rulings.baselines`."""
    chains = [pair.labelled for pair in judged.pairs]
    return [_result(judged, ruling, How.baseline) for ruling in baselines(chains)]


def _scored(judged: Judged, threshold: float) -> Ruling:
    ruling = by_threshold([pair.labelled for pair in judged.pairs], threshold)
    return replace(ruling, name=f"score > {threshold:.4g}")


def _result(
    judged: Judged, ruling: Ruling, how: How, best: Mapping[str | None, BestThreshold] | None = None
) -> MethodResult:
    """`best`: subsets on which a threshold was chosen."""
    found = first_errors(judged.pairs, judged.subsets, ruling, judged.resamples)
    defined = [name for name, each in found.by_subset.items() if each.erroneous and each.correct]
    held_out = tuple(name for name in defined if name != judged.dev)

    def mean(among: Sequence[str]) -> Interval:
        return mean_f1(judged.pairs, judged.subsets, ruling, judged.resamples, among)

    def subset(each: F1, chosen: BestThreshold | None = None) -> SubsetResult:
        return SubsetResult(
            erroneous=each.erroneous,
            correct=each.correct,
            error_accuracy=accuracy(each.found, each.erroneous),
            correct_accuracy=accuracy(each.cleared, each.correct),
            f1=each.f1,
            threshold=ruling.threshold if chosen is None else chosen.threshold,
            best=chosen,
        )

    def accuracy(share: float | None, chains: int) -> Interval:
        # Those of a baseline are expected values, not shares of chains.
        if share is None or how is How.baseline:
            return Interval(value=share)
        return wilson(round(share * chains), chains)

    return MethodResult(
        name=ruling.name,
        how=how,
        total=subset(found.total),
        by_subset={name: subset(each, (best or {}).get(name)) for name, each in found.by_subset.items()},
        mean=mean(held_out),
        mean_of=held_out,
        mean_with_dev=None if judged.dev is None else mean(defined),
        shift=found.shift,
        right_answers=found.right_answers,
        uncertain=found.uncertain,
    )


def best_threshold(chains: Iterable[tuple[Sequence[float], int]]) -> BestThreshold | None:
    """The threshold in [0, 1) with the highest F1, for chains as (step scores, first error by people or NO_ERROR).

    None if F1 is not defined, because no chain has an error or all have one.
    """
    found, missed, cleared = [], [], []
    erroneous = correct = 0
    for scores, error in chains:
        if error == NO_ERROR:
            correct += 1
            cleared.append(min(scores))
            continue
        erroneous += 1
        before = min(scores[:error], default=1.0)
        if scores[error] < before:
            found.append(scores[error])
            missed.append(before)
    if not erroneous or not correct:
        return None
    edges = np.unique([0.0, *found, *missed, *cleared])
    edges = edges[edges < 1]
    exact = _at_most(found, edges) - _at_most(missed, edges)
    good = correct - _at_most(cleared, edges)
    reached = f1(np.stack(np.broadcast_arrays(float(erroneous), exact, float(correct), good), axis=-1))
    best = float(reached.max())
    # Neighbours that are all the best are one range: it begins and ends where the next one is not like the one before.
    changes = np.flatnonzero(np.diff(reached >= best - _SAME, prepend=False, append=False))
    ranges = np.append(edges, 1.0)[changes].reshape(-1, 2).tolist()
    low, high = max(ranges, key=lambda span: span[1] - span[0])
    middle = (low + high) / 2
    threshold = middle if middle < high else low
    return BestThreshold(threshold=threshold, f1=best, low=low, high=high, others=len(ranges) - 1)


def _at_most(values: Sequence[float], edges: Floats) -> Floats:
    """How many of the values are at most each edge."""
    return np.searchsorted(np.sort(np.asarray(values, dtype=np.float64)), edges, side="right").astype(np.float64)
