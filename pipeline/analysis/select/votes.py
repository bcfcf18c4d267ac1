"""How often a vote among n candidates is right, n of them drawn at random without replacement. Pure: randomness is handed in.

Arrays: `groups` (C,) has the number of every candidate's answer, -1 for none; `subsets` (S, C) says which candidates vote.
"""

from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

MAX_SUBSETS = 500
"""So many are drawn where there are more; the share of right votes of one problem then has an sd of 0.022 at most."""
ROUNDING = 1e-9
"""Sums of scores that differ by less are equal."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def subsets_of(count: int, n: int, rng: np.random.Generator) -> Flags:
    """All subsets of n out of `count` candidates, or `MAX_SUBSETS` random ones if those are fewer."""
    if comb(count, n) <= MAX_SUBSETS:
        members = np.array(list(combinations(range(count), n)), dtype=np.int64)
    else:
        members = rng.random((MAX_SUBSETS, count)).argpartition(n - 1, axis=1)[:, :n]
    chosen = np.zeros((len(members), count), dtype=np.bool_)
    np.put_along_axis(chosen, members, True, axis=1)
    return chosen


def vote(groups: Ints, right: Flags, weights: Floats, subsets: Flags) -> float:
    """P(the vote is right): the answer with the largest sum of weights wins, and one of those who gave it stands for it.

    Answers with equal sums share their chances. Who states no answer has no vote; where nobody states one, the vote is wrong.
    """
    said = groups >= 0
    if not said.any():
        return 0.0
    ballots = subsets[:, said].astype(np.float64)
    names, answer = np.unique(groups[said], return_inverse=True)
    gave = np.eye(len(names))[answer]
    voters = ballots @ gave
    right_voters = ballots @ (gave * right[said, None])
    sums = np.where(voters > 0, ballots @ (gave * weights[said, None]), -np.inf)
    won = (sums >= sums.max(axis=1, keepdims=True) - ROUNDING) & (voters > 0)
    share = np.where(won, right_voters / np.maximum(voters, 1), 0.0).sum(axis=1) / np.maximum(won.sum(axis=1), 1)
    return float(share.mean())
