"""What a search's confidence is worth: the accuracy of its choices where only the most confident ones are used. Pure.

Searches are sorted by confidence; one without a confidence comes last. The accuracy at a coverage of c is that of the share c
with the most confidence. Searches with equal confidence are used in random order: the accuracy is the mean over all orders.
Intervals are of the bootstrap over problems; each resample has its own order. Searches for which no accuracy is claimed do not
count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.searches.estimates import problem_means, share_over, with_ends
from pipeline.analysis.searches.records import ProblemSearch
from pipeline.core.statistics import CONFIDENCE, RESAMPLES, Floats, Interval, Ints, interval

COVERAGES = (1.0, 0.8, 0.6, 0.4, 0.2)
_AT_A_TIME = 2**22
"""Numbers that the bootstrap holds at a time: 32 MiB."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveragePoint:
    """`accuracy` of the share `coverage` of the searches, the `used` ones with the most confidence. `least`: the confidence of
    the last of them; None if it has none."""

    coverage: float
    used: int
    accuracy: Interval
    least: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """`share` of all searches that reached `search.accept`, and their `accuracy`; `accuracy_of_others`. `claimed`: trusted
    searches for which accuracy is claimed. `highest`: the highest confidence of all; None where none is stated."""

    searches: int
    trusted: int
    claimed: int
    highest: float | None
    share: Interval
    accuracy: Interval
    accuracy_of_others: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """`searches`: those for which accuracy is claimed. `points`: none where no confidence is stated. `trust`: None where
    `search.accept` is not set."""

    searches: int
    points: tuple[CoveragePoint, ...]
    trust: Trust | None


def coverage(searches: Sequence[ProblemSearch], seed: int, coverages: Sequence[float] = COVERAGES) -> Coverage:
    """Accuracy against coverage. No points where no confidence is stated, or accuracy is claimed for no search."""
    claimed = [each for each in searches if each.right is not None]
    stated = any(each.confidence is not None for each in claimed)
    return Coverage(
        searches=len(claimed),
        points=tuple(_points(claimed, seed, coverages)) if stated else (),
        trust=_trust(searches, seed) if any(each.trusted is not None for each in searches) else None,
    )


def _points(claimed: Sequence[ProblemSearch], seed: int, coverages: Sequence[float]) -> list[CoveragePoint]:
    confidence = np.array([-np.inf if each.confidence is None else each.confidence for each in claimed])
    order = np.argsort(-confidence, kind="stable")
    ranked = confidence[order]
    right = np.array([each.right for each in claimed], dtype=np.float64)[order]
    _, problems = np.unique(np.array([each.problem_id for each in claimed], dtype=np.str_)[order], return_inverse=True)
    blocks = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    shares = np.array(coverages)
    values = _accuracies(np.ones((1, len(claimed))), right, blocks, shares)[0]
    resampled = _resampled(right, problems, blocks, shares, seed)
    tail = (1 - CONFIDENCE) / 2
    found = []
    for at, each in enumerate(coverages):
        used = max(1, int(np.ceil(each * len(ranked) - _ROUNDING)))
        least = float(ranked[used - 1])
        ends = np.quantile(resampled[:, at], [tail, 1 - tail])
        accuracy = interval(float(values[at]), float(ends[0]), float(ends[1]))
        found.append(
            CoveragePoint(
                coverage=each,
                used=used,
                accuracy=with_ends(accuracy, len(set(problems[:used].tolist()))),
                least=least if np.isfinite(least) else None,
            )
        )
    return found


def _accuracies(weights: Floats, right: Floats, blocks: Ints, shares: Floats) -> Floats:
    """The accuracy at each coverage: (samples, shares). `weights` (samples, searches): how often each search is in a sample,
    in the order of confidence. `blocks`: where searches with the next confidence begin."""
    sizes = np.add.reduceat(weights, blocks, axis=1)
    hits = np.add.reduceat(weights * right, blocks, axis=1)
    sizes_to, hits_to = np.cumsum(sizes, axis=1), np.cumsum(hits, axis=1)
    wanted = sizes_to[:, -1:] * shares
    found = np.empty(wanted.shape)
    for at in range(len(shares)):
        cut = (sizes_to >= wanted[:, at : at + 1] - _ROUNDING).argmax(axis=1)[:, None]
        size, hit, to, hit_to = (np.take_along_axis(of, cut, axis=1)[:, 0] for of in (sizes, hits, sizes_to, hits_to))
        # Of the last block only a part is used, as right as the whole block.
        used = wanted[:, at] - (to - size)
        found[:, at] = ((hit_to - hit) + used * hit / size) / wanted[:, at]
    return found


def _resampled(right: Floats, problems: Ints, blocks: Ints, shares: Floats, seed: int) -> Floats:
    n, rng = int(problems.max()) + 1, np.random.default_rng(seed)
    each = max(1, _AT_A_TIME // len(right))
    parts = [min(each, RESAMPLES - start) for start in range(0, RESAMPLES, each)]
    drawn = (rng.multinomial(n, np.full(n, 1 / n), size=size)[:, problems].astype(np.float64) for size in parts)
    return np.concatenate([_accuracies(weights, right, blocks, shares) for weights in drawn])


def _trust(searches: Sequence[ProblemSearch], seed: int) -> Trust:
    trusted = np.array([each.trusted is True for each in searches])
    right = np.array([np.nan if each.right is None else float(each.right) for each in searches])
    columns = [trusted.astype(np.float64), np.where(trusted, right, np.nan), np.where(trusted, np.nan, right)]
    means = problem_means([each.problem_id for each in searches], np.column_stack(columns))
    share, accuracy, others = (share_over(means[:, at], seed) for at in range(len(columns)))
    return Trust(
        searches=len(searches),
        trusted=int(trusted.sum()),
        claimed=int((trusted & ~np.isnan(right)).sum()),
        highest=max((each.confidence for each in searches if each.confidence is not None), default=None),
        share=share,
        accuracy=accuracy,
        accuracy_of_others=others,
    )
