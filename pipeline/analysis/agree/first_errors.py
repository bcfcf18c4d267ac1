"""How well first errors are found.

F1 is that of ProcessBench (Zheng et al. 2024, arXiv 2412.06559): the harmonic mean of two accuracies, one among chains in which
people find an error (the same first error is found), one among chains in which they find none (none is). A chain that is
undecided is counted apart, and as missed, like an answer that cannot be read in ProcessBench's own code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.agree.match import Pair
from pipeline.analysis.agree.rating import NO_ERROR
from pipeline.analysis.agree.rulings import Ruling
from pipeline.core.statistics import Estimated, Floats, Resampling, share

_ERRONEOUS, _EXACT, _CORRECT, _CLEARED = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class F1:
    """`erroneous` and `correct`: chains by people's word; `found` and `cleared`: the accuracies in them."""

    erroneous: int
    correct: int
    found: float | None
    cleared: float | None
    f1: Estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Of the chains in which people find an error, how many have their first error put too early, right, too late, nowhere, or
    undecided; `mean` is by how many steps, of those put somewhere, late being positive. Expected numbers for random rulings."""

    early: float
    exact: float
    late: float
    missed: float
    undecided: float
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RightAnswers:
    """Chains with a right final answer, those of them in which people find an error, and in how many of these one is found."""

    chains: int
    wrong_process: int
    found: float
    found_exactly: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstErrors:
    """`by_subset` in the order of the data; `mean` is that of the subsets' F1, as the paper averages."""

    total: F1
    by_subset: dict[str, F1]
    mean: Estimated | None
    shift: Shift
    right_answers: RightAnswers
    undecided: float


def f1(sums: Floats) -> Floats:
    """(..., 4) sums of erroneous, exact, correct and cleared chains -> (...). NaN where one kind of chain is not there."""
    found = share(sums[..., _EXACT], sums[..., _ERRONEOUS])
    cleared = share(sums[..., _CLEARED], sums[..., _CORRECT])
    both = found + cleared
    return np.divide(2 * found * cleared, both, out=np.asarray(both * 0.0), where=both != 0)


def first_errors(
    pairs: Sequence[Pair], subsets: Sequence[str | None], ruling: Ruling, resampling: Resampling
) -> FirstErrors:
    """`subsets`: that of each pair. Pairs of which people leave the first error open are left out."""
    cases = [
        (pair, subset, errors)
        for pair, subset, errors in zip(pairs, subsets, ruling.errors, strict=True)
        if pair.human.first_error is not None
    ]
    names = list(dict.fromkeys(subset for _, subset, _ in cases if subset is not None))
    places: dict[str | None, int] = {None: len(names), **{name: index for index, name in enumerate(names)}}
    rows = np.zeros((len(cases), len(names) + 1, 4))
    for row, (pair, subset, errors) in zip(rows, cases, strict=True):
        truth = pair.human.first_error
        hit = errors.get(truth, 0.0)
        cell = [0.0, 0.0, 1.0, hit] if truth == NO_ERROR else [1.0, hit, 0.0, 0.0]
        row[places[subset]] = cell
    wholes = rows.sum(axis=1)
    return FirstErrors(
        total=_f1(wholes, resampling),
        by_subset={name: _f1(rows[:, index], resampling) for index, name in enumerate(names)},
        mean=_mean_f1(rows[:, :-1], resampling) if len(names) > 1 else None,
        shift=_shift([(pair.human.first_error, errors) for pair, _, errors in cases]),
        right_answers=_right_answers([(pair, errors) for pair, _, errors in cases]),
        undecided=sum(errors.get(None, 0.0) for _, _, errors in cases),
    )


def _f1(rows: Floats, resampling: Resampling) -> F1:
    rows = rows[rows[:, _ERRONEOUS] + rows[:, _CORRECT] > 0]
    sums = rows.sum(axis=0)
    erroneous, correct = int(sums[_ERRONEOUS]), int(sums[_CORRECT])
    return F1(
        erroneous=erroneous,
        correct=correct,
        found=float(sums[_EXACT]) / erroneous if erroneous else None,
        cleared=float(sums[_CLEARED]) / correct if correct else None,
        f1=resampling.estimate(rows, f1),
    )


def _mean_f1(rows: Floats, resampling: Resampling) -> Estimated:
    n_subsets = rows.shape[1]
    return resampling.estimate(
        rows.reshape(len(rows), -1), lambda sums: f1(sums.reshape(*sums.shape[:-1], n_subsets, 4)).mean(axis=-1)
    )


def _shift(cases: Sequence[tuple[int | None, Mapping[int | None, float]]]) -> Shift:
    early = exact = late = missed = undecided = moved = 0.0
    for truth, errors in cases:
        if truth is None or truth == NO_ERROR:
            continue
        for error, weight in errors.items():
            if error is None:
                undecided += weight
            elif error == NO_ERROR:
                missed += weight
            else:
                early += weight * (error < truth)
                exact += weight * (error == truth)
                late += weight * (error > truth)
                moved += weight * (error - truth)
    put = early + exact + late
    return Shift(
        early=early, exact=exact, late=late, missed=missed, undecided=undecided, mean=moved / put if put else None
    )


def _right_answers(cases: Sequence[tuple[Pair, Mapping[int | None, float]]]) -> RightAnswers:
    right = [(pair.human.first_error, errors) for pair, errors in cases if pair.labelled.outcome]
    wrong = [(truth, errors) for truth, errors in right if truth != NO_ERROR]
    return RightAnswers(
        chains=len(right),
        wrong_process=len(wrong),
        found=sum(1.0 - errors.get(NO_ERROR, 0.0) - errors.get(None, 0.0) for _, errors in wrong),
        found_exactly=sum(errors.get(truth, 0.0) for truth, errors in wrong),
    )
