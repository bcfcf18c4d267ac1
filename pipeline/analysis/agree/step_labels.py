"""How well single steps are told apart, and what share of them people call good at each value.

Counted are the steps that people call good or bad. A first error says nothing of what is behind it, so that is left out.
A value is P(correct final answer), not P(good step): a curve away from the diagonal is no mistake of the sampling.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.analysis.agree.match import Pair
from pipeline.analysis.agree.rulings import Ruling
from pipeline.core.statistics import Estimated, Floats, Resampling, auc, share, wilson

_ROUNDING = 1e-9
"""A value so little below a bin's lower end is in it: 100 * 0.29 < 29 in floating point."""
_GOOD, _GOOD_RIGHT, _BAD, _BAD_RIGHT = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLabels:
    """`good` and `bad`: steps by people's word that are decided; `undecided` ones are in neither. `balanced` is the mean of the
    accuracies among good and among bad steps."""

    good: int
    bad: int
    undecided: int
    accuracy: Estimated
    balanced: Estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Steps with values from `low` up to `high`, the last bin's end included: how many, their mean value, and the share of
    them that people call good, with its Wilson interval."""

    low: float
    high: float
    steps: int
    mean_value: float
    good: float
    good_low: float
    good_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """`bins` that hold steps. `ece`: the mean distance between value and share of good steps, bins weighed by their steps
    (Naeini et al. 2015). `sampled_auc` leaves out last steps whose value is the chain's own outcome."""

    steps: int
    unvalued: int
    bins: tuple[Bin, ...]
    ece: float | None
    auc: Estimated
    sampled_auc: Estimated


def step_labels(pairs: Sequence[Pair], ruling: Ruling, resampling: Resampling) -> StepLabels | None:
    """None for a ruling that says nothing of single steps."""
    if ruling.goods is None:
        return None
    rows = np.zeros((len(pairs), 4))
    undecided = 0
    for row, pair, goods in zip(rows, pairs, ruling.goods, strict=True):
        for truth, good in zip(pair.human.goods, goods, strict=True):
            if truth is None:
                continue
            if good is None:
                undecided += 1
            else:
                row[_GOOD if truth else _BAD] += 1
                row[_GOOD_RIGHT if truth else _BAD_RIGHT] += good == truth
    sums = rows.sum(axis=0)
    return StepLabels(
        good=int(sums[_GOOD]),
        bad=int(sums[_BAD]),
        undecided=undecided,
        accuracy=resampling.estimate(rows, _accuracy),
        balanced=resampling.estimate(rows, _balanced),
    )


def reliability(pairs: Sequence[Pair], n_bins: int, confidence: float) -> Reliability:
    """The curve over bins of equal width, and how well values rank bad steps below good ones."""
    judged = [
        (index, value, good, pair.labelled.terminal and step == len(pair.labelled.values) - 1)
        for index, pair in enumerate(pairs)
        for step, (value, good) in enumerate(zip(pair.labelled.values, pair.human.goods, strict=True))
        if good is not None
    ]
    valued = [case for case in judged if case[1] is not None]
    chains = np.array([index for index, _, _, _ in valued], dtype=np.int64)
    values = np.array([value for _, value, _, _ in valued], dtype=np.float64)
    goods = np.array([good for _, _, good, _ in valued], dtype=np.bool_)
    sampled = np.array([not terminal for _, _, _, terminal in valued], dtype=np.bool_)
    where = np.minimum((values * n_bins + _ROUNDING).astype(np.int64), n_bins - 1)
    bins = tuple(
        _bin(place, n_bins, values[where == place], goods[where == place], confidence)
        for place in np.unique(where).tolist()
    )
    apart = sum(found.steps * abs(found.mean_value - found.good) for found in bins)
    return Reliability(
        steps=len(valued),
        unvalued=len(judged) - len(valued),
        bins=bins,
        ece=apart / len(valued) if valued else None,
        auc=auc(values, goods, chains, confidence),
        sampled_auc=auc(values[sampled], goods[sampled], chains[sampled], confidence),
    )


def _bin(place: int, n_bins: int, values: Floats, goods: NDArray[np.bool_], confidence: float) -> Bin:
    good_low, good_high = wilson(int(goods.sum()), len(goods), confidence)
    return Bin(
        low=place / n_bins,
        high=(place + 1) / n_bins,
        steps=len(values),
        mean_value=float(values.mean()),
        good=float(goods.mean()),
        good_low=good_low,
        good_high=good_high,
    )


def _accuracy(sums: Floats) -> Floats:
    return share(sums[..., _GOOD_RIGHT] + sums[..., _BAD_RIGHT], sums[..., _GOOD] + sums[..., _BAD])


def _balanced(sums: Floats) -> Floats:
    return (share(sums[..., _GOOD_RIGHT], sums[..., _GOOD]) + share(sums[..., _BAD_RIGHT], sums[..., _BAD])) / 2
