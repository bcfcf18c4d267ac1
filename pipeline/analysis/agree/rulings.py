"""Methods that judge steps (rulings), and how well each agrees with human labels on first errors. Pure.

**Rulings** are the run's own labels, its values above a threshold, and baselines that need no rollouts. The baselines show
which agreement costs nothing. Two of them know which final answers are correct, as the run does. Labels by consensus come with
Monte Carlo's own labels and with each witness alone.

**First errors.** F1 is that of ProcessBench (Zheng et al. 2024, arXiv 2412.06559): the harmonic mean of two accuracies. One is
over chains with a human error (correct: the same first error is found), the other over chains without (correct: none is found).
An uncertain chain is counted separately and also as missed, like an unreadable answer in ProcessBench's own code.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pipeline.analysis.agree.human import NEUTRAL, NO_ERROR, ChainPair, ModelChain, first_error, goods_until
from pipeline.analysis.comparison import bootstrap
from pipeline.analysis.settings import Neutral
from pipeline.core.statistics import Floats, Interval, share
from pipeline.display.columns import Column

_LABELS: dict[int | None, bool | None] = {1: True, 0: False, None: None}
_ERRONEOUS, _EXACT, _CORRECT, _CLEARED = range(4)
_Case = tuple[ChainPair, str | None, Mapping[int | None, float]]
"""A pair whose first error people tell, its subset, and the errors of a ruling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The verdicts of one method.

    `errors`: for each chain, first error -> probability. Keys: a step counted from 0, NO_ERROR, or None for uncertain.
    `goods`: for each chain, the verdict on each step; None for a baseline, which does not judge single steps.
    """

    name: str
    threshold: float | None = None
    errors: tuple[Mapping[int | None, float], ...]
    goods: tuple[tuple[bool | None, ...], ...] | None = None


def by_label(chains: Sequence[ModelChain], name: str, neutral: Neutral) -> Ruling:
    """Steps judged by the column `label`."""
    return _of_labels(name, [chain.labels for chain in chains], neutral)


def by_opinion(chains: Sequence[ModelChain], neutral: Neutral) -> list[Ruling]:
    """Of labels by consensus: Monte Carlo's own labels, and the place that each witness names most often, which says nothing of
    later steps. A witness that says nothing of a chain is uncertain. Empty for labels without consensus."""
    if all(chain.mc_labels is None for chain in chains):
        return []
    alone = [chain.labels if chain.mc_labels is None else chain.mc_labels for chain in chains]
    rulings = [_of_labels("Monte Carlo alone", alone, neutral)]
    for name in sorted({name for chain in chains for name in chain.places}):
        goods = [_until(chain.places.get(name), len(chain.steps)) for chain in chains]
        rulings.append(_of_steps(f"{name} alone", goods))
    return rulings


def by_threshold(chains: Sequence[ModelChain], threshold: float) -> Ruling:
    """A step is good if its value is above `threshold`, and uncertain if it has no value."""
    goods = [tuple(None if value is None else value > threshold for value in chain.values) for chain in chains]
    return _of_steps(f"value > {threshold:g}", goods, threshold)


def baselines(chains: Sequence[ModelChain]) -> list[Ruling]:
    """Methods that need no rollouts. `random`: each step and "no error" are equally likely. `wrong answer: any step`: each step
    of a chain with a wrong answer is equally likely."""
    errors_by: dict[str, Callable[[ModelChain], Mapping[int | None, float]]] = {
        "never an error": lambda _chain: {NO_ERROR: 1.0},
        "random": lambda chain: _even(range(NO_ERROR, len(chain.steps))),
        "wrong answer: any step": lambda chain: _if_wrong(chain, _even(range(len(chain.steps)))),
        "wrong answer: last step": lambda chain: _if_wrong(chain, {len(chain.steps) - 1: 1.0}),
    }
    return [Ruling(name=name, errors=tuple(map(errors, chains))) for name, errors in errors_by.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class F1:
    """`erroneous` and `correct`: chains with and without a human error. `found` and `cleared`: the accuracies among them."""

    erroneous: int
    correct: int
    found: float | None
    cleared: float | None
    f1: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstErrorShift:
    """Over chains with a human error: how many have the first error placed too early, exactly, too late, nowhere (`missed`), or
    uncertain. `mean`: mean shift in steps over placed errors; late is positive. Random rulings give expected numbers."""

    early: Annotated[float, Column("early", None)]
    exact: Annotated[float, Column("exact", None)]
    late: Annotated[float, Column("late", None)]
    missed: Annotated[float, Column("missed", None)]
    uncertain: Annotated[float, Column("uncertain", None)]
    mean: Annotated[float | None, Column("mean shift", sign="+")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RightAnswers:
    """`chains` with a correct final answer. `wrong_process`: those with a human error. `found`: those of them in which the
    ruling finds an error, `found_exactly`: at the same step."""

    chains: int
    wrong_process: int
    found: float
    found_exactly: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstErrorScores:
    """`by_subset` is in the order of the data. `mean`: the mean F1 over subsets, as in the ProcessBench paper."""

    total: F1
    by_subset: dict[str, F1]
    mean: Interval | None
    shift: FirstErrorShift
    right_answers: RightAnswers
    uncertain: float


def first_errors(
    pairs: Sequence[ChainPair], subsets: Sequence[str | None], ruling: Ruling, resamples: int
) -> FirstErrorScores:
    """`subsets`: one per pair. Pairs whose human ratings leave the first error open are left out."""
    cases = _cases(pairs, subsets, ruling)
    names, rows = _rows(cases)
    return FirstErrorScores(
        total=_f1(rows.sum(axis=1), resamples),
        by_subset={name: _f1(rows[:, index], resamples) for index, name in enumerate(names)},
        mean=_mean_f1(rows[:, :-1], resamples) if len(names) > 1 else None,
        shift=_shift(cases),
        right_answers=_right_answers(cases),
        uncertain=sum(errors.get(None, 0.0) for _, _, errors in cases),
    )


def mean_f1(
    pairs: Sequence[ChainPair],
    subsets: Sequence[str | None],
    ruling: Ruling,
    resamples: int,
    among: Collection[str],
) -> Interval:
    """The mean F1 over the subsets in `among`. Not defined without any, or if the F1 of one of them is not."""
    names, rows = _rows([case for case in _cases(pairs, subsets, ruling) if case[1] in among])
    return _mean_f1(rows[:, :-1], resamples) if names else Interval()


def f1(sums: Floats) -> Floats:
    """(..., 4) sums of erroneous, exact, correct and cleared chains -> (...). NaN without erroneous or correct chains."""
    found = share(sums[..., _EXACT], sums[..., _ERRONEOUS])
    cleared = share(sums[..., _CLEARED], sums[..., _CORRECT])
    both = found + cleared
    return np.divide(2 * found * cleared, both, out=np.asarray(both * 0.0), where=both != 0)


def _of_labels(name: str, labels: Sequence[tuple[int | None, ...]], neutral: Neutral) -> Ruling:
    meaning = {**_LABELS, 2: NEUTRAL[neutral]}
    return _of_steps(name, [tuple(meaning[label] for label in chain) for chain in labels])


def _until(place: int | None, steps: int) -> tuple[bool | None, ...]:
    """The verdicts on steps that a first error implies: 0 for none, else a step counted from 1."""
    return (None,) * steps if place is None else goods_until(place - 1 if place else NO_ERROR, steps)


def _of_steps(name: str, goods: Sequence[tuple[bool | None, ...]], threshold: float | None = None) -> Ruling:
    errors = tuple({first_error(chain): 1.0} for chain in goods)
    return Ruling(name=name, threshold=threshold, errors=errors, goods=tuple(goods))


def _even(answers: Sequence[int]) -> dict[int | None, float]:
    return {answer: 1 / len(answers) for answer in answers}


def _if_wrong(chain: ModelChain, errors: Mapping[int | None, float]) -> Mapping[int | None, float]:
    if chain.outcome is None:
        return {None: 1.0}
    return {NO_ERROR: 1.0} if chain.outcome else errors


def _cases(pairs: Sequence[ChainPair], subsets: Sequence[str | None], ruling: Ruling) -> list[_Case]:
    cases = zip(pairs, subsets, ruling.errors, strict=True)
    return [case for case in cases if case[0].human.first_error is not None]


def _rows(cases: Sequence[_Case]) -> tuple[list[str], Floats]:
    """The subsets in their order, and for each case its cells: (cases, subsets and one for no subset, 4), see `f1`."""
    names = list(dict.fromkeys(subset for _, subset, _ in cases if subset is not None))
    positions: dict[str | None, int] = {None: len(names), **{name: index for index, name in enumerate(names)}}
    rows = np.zeros((len(cases), len(names) + 1, 4))
    for row, (pair, subset, errors) in zip(rows, cases, strict=True):
        truth = pair.human.first_error
        hit = errors.get(truth, 0.0)
        row[positions[subset]] = [0.0, 0.0, 1.0, hit] if truth == NO_ERROR else [1.0, hit, 0.0, 0.0]
    return names, rows


def _f1(rows: Floats, resamples: int) -> F1:
    rows = rows[rows[:, _ERRONEOUS] + rows[:, _CORRECT] > 0]
    sums = rows.sum(axis=0)
    erroneous, correct = int(sums[_ERRONEOUS]), int(sums[_CORRECT])
    return F1(
        erroneous=erroneous,
        correct=correct,
        found=float(sums[_EXACT]) / erroneous if erroneous else None,
        cleared=float(sums[_CLEARED]) / correct if correct else None,
        f1=bootstrap(rows, f1, resamples=resamples),
    )


def _mean_f1(rows: Floats, resamples: int) -> Interval:
    n_subsets = rows.shape[1]
    return bootstrap(
        rows.reshape(len(rows), -1),
        lambda sums: f1(sums.reshape(*sums.shape[:-1], n_subsets, 4)).mean(axis=-1),
        resamples=resamples,
    )


def _shift(cases: Sequence[_Case]) -> FirstErrorShift:
    found = dict.fromkeys(("early", "exact", "late", "missed", "uncertain"), 0.0)
    moved = 0.0
    for pair, _, errors in cases:
        truth = pair.human.first_error
        if truth is None or truth == NO_ERROR:
            continue
        for error, weight in errors.items():
            if error is None or error == NO_ERROR:
                found["uncertain" if error is None else "missed"] += weight
            else:
                found["early" if error < truth else "late" if error > truth else "exact"] += weight
                moved += weight * (error - truth)
    put = found["early"] + found["exact"] + found["late"]
    return FirstErrorShift(**found, mean=moved / put if put else None)


def _right_answers(cases: Sequence[_Case]) -> RightAnswers:
    right = [(pair.human.first_error, errors) for pair, _, errors in cases if pair.labelled.outcome]
    wrong = [(truth, errors) for truth, errors in right if truth != NO_ERROR]
    return RightAnswers(
        chains=len(right),
        wrong_process=len(wrong),
        found=sum(1.0 - errors.get(NO_ERROR, 0.0) - errors.get(None, 0.0) for _, errors in wrong),
        found_exactly=sum(errors.get(truth, 0.0) for truth, errors in wrong),
    )
