"""What a search's confidence is worth: the accuracy of its choices where only the most confident ones are used. Pure.

Searches are sorted by confidence; one without a confidence comes last. The accuracy at a coverage of c is that of the share c
with the most confidence. Searches with equal confidence are used in random order: the accuracy is the mean over all orders.
Intervals are of the bootstrap over problems; each resample has its own order. Searches for which no accuracy is claimed do not
count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.analysis.searches.records import means_of, share_over, with_ends
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


def coverage(searches: pl.DataFrame, seed: int, coverages: Sequence[float] = COVERAGES) -> Coverage:
    """Accuracy against coverage of the searches of a `SearchRun`. No points where no confidence is stated, or accuracy is
    claimed for no search."""
    claimed = searches.filter(pl.col("right").is_not_null())
    return Coverage(
        searches=claimed.height,
        points=tuple(_points(claimed, seed, coverages)) if claimed["confidence"].count() else (),
        trust=_trust(searches, seed) if searches["trusted"].count() else None,
    )


def _points(claimed: pl.DataFrame, seed: int, coverages: Sequence[float]) -> list[CoveragePoint]:
    claimed = claimed.sort("confidence", descending=True, nulls_last=True, maintain_order=True)
    ranked = claimed["confidence"].fill_null(-np.inf).to_numpy()
    right = claimed["right"].cast(pl.Float64).to_numpy()
    _, problems = np.unique(claimed["problem_id"].to_numpy().astype(np.str_), return_inverse=True)
    blocks = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    shares = np.array(coverages)
    values = _accuracies(np.ones((1, len(ranked))), right, blocks, shares)[0]
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


def _trust(searches: pl.DataFrame, seed: int) -> Trust:
    trusted, right = pl.col("trusted").fill_null(value=False), pl.col("right").cast(pl.Float64)
    means = means_of(searches, trusted, pl.when(trusted).then(right), pl.when(~trusted).then(right))
    share, accuracy, others = (share_over(column, seed) for column in means.T)
    counts = searches.select(
        searches=pl.len(),
        trusted=trusted.sum(),
        claimed=(trusted & right.is_not_null()).sum(),
        highest=pl.col("confidence").max(),
    )
    return Trust(**counts.row(0, named=True), share=share, accuracy=accuracy, accuracy_of_others=others)
