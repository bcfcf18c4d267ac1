"""Distributions over the steps of a chain: by position relative to its length, and by habit. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.core.statistics import Floats

BINS = 5
"""Equal parts of a chain, from its first to its last step, in which errors are equally likely."""


@lru_cache(maxsize=1024)
def densities(steps: int) -> Floats:
    """(K, BINS): the probability of each step, given the part of the chain. A step that two parts share has a share of both."""
    ends = np.arange(steps + 1) / steps
    edges = np.arange(BINS + 1) / BINS
    low, high = np.maximum(ends[:-1, None], edges[:-1]), np.minimum(ends[1:, None], edges[1:])
    return np.asarray(np.maximum(high - low, 0.0) * BINS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """Which steps a witness names if it names one for no reason: `first` and `last` are the probabilities of the first and the
    last step, besides that all steps are equally likely."""

    first: float = 0.0
    last: float = 0.0

    def over(self, steps: int) -> Floats:
        """The probability of each step, (K,)."""
        found = np.full(steps, (1 - self.first - self.last) / steps)
        found[0] += self.first
        found[-1] += self.last
        return found


EVEN = Habit()
_ROUNDS = 50
_PRIOR = (0.5, 0.5, 5.0)
"""Pseudo-counts, in named steps, of the first step, the last one and any."""


def habit_of(steps: Sequence[int], named: Sequence[Floats]) -> Habit:
    """The habit that explains best which steps a witness names. For chains of each number of steps, `named` has how often it
    names each step, (K,).

    It names the right steps too, and those are not habit. But right steps are spread over a chain, and a habit that is fitted
    to all that it names is the distribution of its guesses if it does nothing but guess.
    """
    shares = np.array(_PRIOR) / sum(_PRIOR)
    for _ in range(_ROUNDS):
        expected = np.array(_PRIOR)
        for length, counts in zip(steps, named, strict=True):
            own = Habit(first=float(shares[0]), last=float(shares[1])).over(length)
            expected[0] += counts[0] * shares[0] / own[0]
            expected[1] += counts[-1] * shares[1] / own[-1]
            expected[2] += float((counts * shares[2] / length / own).sum())
        shares = expected / expected.sum()
    return Habit(first=float(shares[0]), last=float(shares[1]))
