"""How well probabilities of good steps fit held-out labels. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

GOOD_ABOVE = 0.5
"""P(good) of a step that is taken for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """On held-out problems; None where there was nothing to measure it on. `loss`: per step, as trained, over the `steps` that
    have what it is about. `auc` and `accuracy`: of the `good` steps against the `bad` ones, others having no label. `brier`:
    mean square of P(good) less the step's value."""

    steps: int
    good: int
    bad: int
    loss: float | None
    auc: float | None
    accuracy: float | None
    brier: float | None


def auc(scores: Sequence[float], labels: Sequence[int | None]) -> float | None:
    """The probability that a good step (1) has a higher score than a bad one (0), ties half: the Mann-Whitney statistic. None
    unless there are both; steps of which the label is None do not count."""
    kept = [(score, label) for score, label in zip(scores, labels, strict=True) if label is not None]
    good = np.array([label == 1 for _, label in kept], dtype=bool)
    n_good, n_bad = int(good.sum()), int((~good).sum())
    if not n_good or not n_bad:
        return None
    ranks = rankdata([score for score, _ in kept])
    return float((ranks[good].sum() - n_good * (n_good + 1) / 2) / (n_good * n_bad))


def accuracy(scores: Sequence[float], labels: Sequence[int | None]) -> float | None:
    """The share of labelled steps that lie on the right side of `GOOD_ABOVE`."""
    right = [
        (score > GOOD_ABOVE) == (label == 1) for score, label in zip(scores, labels, strict=True) if label is not None
    ]
    return sum(right) / len(right) if right else None


def brier(scores: Sequence[float], values: Sequence[float | None]) -> float | None:
    """The mean square of score - value over steps that have one (Brier 1950, of a known probability)."""
    squares = [(score - value) ** 2 for score, value in zip(scores, values, strict=True) if value is not None]
    return sum(squares) / len(squares) if squares else None
