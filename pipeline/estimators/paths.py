"""A success probability from trials whose results decide when to stop: an unbiased value and an exact interval.

The stopping rule: trials come in rounds. The sequence ends after a round if `successes` trials were correct so far, or if the
round was the last one. Only the stopping point of a sequence counts: `boundaries`, the number of graded trials at the end of
each round so far, and the number of correct ones. Ungraded trials shift the boundaries. All results here are conditional on
the boundaries, and hold if the boundaries do not depend on which trials are correct.

Not covered: rules that use anything else, such as other prefixes, the duration of a trial, or which trial finished first.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import comb

import numpy as np
from scipy.special import bdtr, gammaln, xlog1py, xlogy

from pipeline.estimators.intervals import clopper_pearson

HALVINGS = 53
"""Halvings of the unit interval in the search for a bound: as fine as a float near 1."""


def unbiased_value(boundaries: Sequence[int], successes: int, correct: int) -> float:
    """The share of paths to the stopping point that begin with a success (Girshick, Mosteller and Savage 1946).

    Its mean over all sequences is the success probability. It may lie outside `stopping_interval`: a first success at the third
    trial has the value 0. Raises ValueError where nothing was graded, and for a point at which no sequence stops.
    """
    before, graded = _last_round(boundaries, successes, correct)
    return _share(before, graded, successes, correct)


def stopping_interval(
    boundaries: Sequence[int], successes: int, correct: int, confidence: float
) -> tuple[float, float]:
    """The exact equal-tailed interval, whose coverage is at least `confidence` for every probability.

    Stopping points are ordered from high to low probability: points that reached `successes` before the others, an earlier
    round before a later one, and in the same round more correct trials before fewer. Raises ValueError as `unbiased_value`.
    """
    before, graded = _last_round(boundaries, successes, correct)
    return _bounds(before, graded, successes, correct, confidence)


def _last_round(boundaries: Sequence[int], successes: int, correct: int) -> tuple[int, int]:
    """Graded trials before the last round and at its end. Earlier rounds do not matter, since successes never decrease."""
    before, graded = (0, 0, *boundaries)[-2:]
    fewest = max(0, correct - (graded - before))
    if not 0 <= before <= graded or graded == 0 or not 0 <= correct <= graded or fewest >= successes:
        raise ValueError(f"no sequence of rounds {tuple(boundaries)[-9:]} stops at {correct} correct, for {successes}")
    return before, graded


@lru_cache(maxsize=65_536)
def _share(before: int, graded: int, successes: int, correct: int) -> float:
    """The closed forms are c/n where the rule did not bind, and (r-1)/(n-1) where the last round is one trial.

    Otherwise it is a sum over the number of correct trials before the last round: at most `successes` terms, exact integers.
    """
    last = graded - before
    if correct < successes or before < successes:
        return correct / graded
    if last == 1:
        return (successes - 1) / before
    fewest, most = max(0, correct - last), successes - 1
    paths = comb(before, fewest) * comb(last, correct - fewest)
    total = total_right = 0
    for right in range(fewest, most + 1):
        total += paths
        total_right += right * paths
        paths = paths * (before - right) * (correct - right) // ((right + 1) * (last - correct + right + 1))
    return total_right / (before * total)


@lru_cache(maxsize=65_536)
def _bounds(before: int, graded: int, successes: int, correct: int, confidence: float) -> tuple[float, float]:
    """Clopper-Pearson bounds where the rule did not bind or a single trial ended it; otherwise a search for the bounds."""
    tail = (1 - confidence) / 2
    low, high = clopper_pearson(correct, graded, confidence)
    if correct < successes or before < successes:
        return low, high
    if correct > successes:
        low = _crossing(_not_above(before, graded, successes, correct - 1), 1 - tail)
    if correct - successes + 1 < graded - before:
        high = _crossing(_not_above(before, graded, successes, correct), tail)
    else:
        _, high = clopper_pearson(successes - 1, before, confidence)
    return low, high


def _not_above(before: int, graded: int, successes: int, correct: int) -> Callable[[float], float]:
    """p -> P(fewer than `successes` correct before the last round, and at most `correct` in total), which falls with p."""
    last = graded - before
    right = np.arange(min(successes - 1, correct, before) + 1)
    log_ways = gammaln(before + 1) - gammaln(right + 1) - gammaln(before - right + 1)
    still = np.minimum(correct - right, last)

    def probability(p: float) -> float:
        reached = np.exp(log_ways + xlogy(right, p) + xlog1py(before - right, -p))
        return float(reached @ bdtr(still, last, p))

    return probability


def _crossing(falling: Callable[[float], float], level: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if falling(middle) > level:
            low = middle
        else:
            high = middle
    return low
