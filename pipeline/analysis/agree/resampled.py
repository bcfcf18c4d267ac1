"""Percentile intervals by the bootstrap over chains (Efron 1979): steps of one chain are not independent, chains are."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_NO_WIDTH = 1e-12
"""Resamples that differ by less say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """A figure with its interval; all None where it is not defined, as an accuracy of no chains.

    There is no interval where resampled chains cannot tell one: of a single chain, or where all say the same, as of an F1 of 0.
    """

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """`replicates` samples of all chains with replacement, drawn with `seed`; the interval holds the middle `confidence`."""

    replicates: int
    seed: int
    confidence: float

    def estimate(self, chains: Floats, statistic: Callable[[Floats], Floats]) -> Estimated:
        """`chains`: a row per chain. `statistic` of sums of rows, (..., columns) -> (...), NaN where it is not defined.

        Chains with equal rows are drawn together, so that time grows with the number of distinct rows.
        """
        if not len(chains):
            return Estimated(value=None, low=None, high=None)
        value = float(statistic(chains.sum(axis=0)))
        rows, counts = np.unique(chains, axis=0, return_counts=True)
        draws = np.random.default_rng(self.seed).multinomial(len(chains), counts / len(chains), size=self.replicates)
        replicates = statistic(draws @ rows)
        return self._between(value, replicates[~np.isnan(replicates)])

    def _between(self, value: float, replicates: Floats) -> Estimated:
        if np.isnan(value):
            return Estimated(value=None, low=None, high=None)
        if not len(replicates):
            return Estimated(value=value, low=None, high=None)
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(replicates, [tail, 1 - tail])
        return interval(value, float(low), float(high))


def interval(value: float, low: float, high: float) -> Estimated:
    """A figure between two ends; without an interval where they are one."""
    if high - low < _NO_WIDTH:
        return Estimated(value=value, low=None, high=None)
    return Estimated(value=value, low=low, high=high)


def share(part: Floats, whole: Floats) -> Floats:
    """part / whole, NaN where the whole is 0."""
    shares: Floats = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) != 0)
    return shares
