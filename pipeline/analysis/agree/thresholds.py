"""The threshold on step scores with the highest F1 on given chains. Pure.

A step is good if its score is above the threshold, and the first step that is not is the error. So F1 changes only where
the threshold passes a score that decides a chain; between two such scores it is constant. All these ranges are compared,
not a grid.

Ranges beside each other with the same F1 are one. If several ranges have the highest F1, the widest is taken, and the lowest of
equally wide ones: a threshold in its middle depends least on these chains. The number of the others is reported.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.agree.human import NO_ERROR
from pipeline.analysis.agree.rulings import f1
from pipeline.core.statistics import Floats

_SAME = 1e-12
"""F1 values that differ by less are equal: they are ratios of counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestThreshold:
    """`threshold` is the middle of the range from `low` (included) to `high` (not included), in which F1 has its highest value
    `f1`. `others`: other ranges with the same F1."""

    threshold: float
    f1: float
    low: float
    high: float
    others: int


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
    counts = np.stack(
        [np.full(len(edges), float(erroneous)), exact, np.full(len(edges), float(correct)), good], axis=-1
    )
    reached = f1(counts)
    best = float(reached.max())
    ranges = _ranges(reached >= best - _SAME, [*edges.tolist(), 1.0])
    low, high = max(ranges, key=lambda span: span[1] - span[0])
    middle = (low + high) / 2
    return BestThreshold(
        threshold=middle if middle < high else low, f1=best, low=low, high=high, others=len(ranges) - 1
    )


def _at_most(values: Sequence[float], edges: Floats) -> Floats:
    """How many of the values are at most each edge."""
    return np.searchsorted(np.sort(np.asarray(values, dtype=np.float64)), edges, side="right").astype(np.float64)


def _ranges(best: Sequence[bool] | np.typing.NDArray[np.bool_], edges: Sequence[float]) -> list[tuple[float, float]]:
    """The ranges between edges that are the best, neighbours joined."""
    ranges: list[tuple[float, float]] = []
    for at, is_best in enumerate(best):
        if is_best and ranges and ranges[-1][1] == edges[at]:
            ranges[-1] = (ranges[-1][0], edges[at + 1])
        elif is_best:
            ranges.append((edges[at], edges[at + 1]))
    return ranges
