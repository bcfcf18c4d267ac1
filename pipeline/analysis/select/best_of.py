"""How often a choice among n candidates is right, n of them drawn at random without replacement. Pure and exact.

`count` is how many candidates there are; n is at least 1 and at most that.
"""

from collections.abc import Sequence
from itertools import groupby
from math import comb


def best_of(scores: Sequence[float | None], right: Sequence[bool], n: int) -> float:
    """P(the best-scored one of n is right), its expectation over all subsets of size n.

    Equal scores share their chances; no score is below every score. The best is one of the b candidates that share a score
    with a better ones before them where none of these is drawn and one of those is: C(count - a, n) - C(count - a - b, n) of
    the C(count, n) subsets, and any of the b then is the one as often as the others.
    """
    ranked = sorted(zip(map(_rank, scores), right, strict=True), reverse=True)
    count, before, expected = len(ranked), 0, 0.0
    for _, equal in groupby(ranked, key=lambda candidate: candidate[0]):
        among = [is_right for _, is_right in equal]
        subsets = comb(count - before, n) - comb(count - before - len(among), n)
        expected += subsets / comb(count, n) * sum(among) / len(among)
        before += len(among)
    return expected


def any_right(n_right: int, count: int, n: int) -> float:
    """P(one of n is right), which no choice exceeds: pass@n as Chen et al. 2021, equation 1, estimate it."""
    return 1 - comb(count - n_right, n) / comb(count, n)


def _rank(score: float | None) -> float:
    return float("-inf") if score is None else score
