"""What is right, known from arithmetic alone. Pure."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from tests.tiny.arithmetic import Exercise


def right_so_far(steps: Sequence[str], exercise: Exercise) -> list[bool]:
    """Of each step, whether it and all before it are those of the right chain."""
    given = zip(steps, [*exercise.steps, *[None] * len(steps)], strict=False)
    flags = np.cumprod([step == wanted for step, wanted in given])
    return [bool(flag) for flag in flags]


def auc(scores: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """The probability that a right one has a higher score than a wrong one, ties counting half (Hanley and McNeil 1982)."""
    is_right = np.asarray(right, dtype=bool)
    n_right, n_wrong = int(is_right.sum()), int((~is_right).sum())
    ranks = rankdata(np.asarray(scores, dtype=float))
    return float((ranks[is_right].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong))
