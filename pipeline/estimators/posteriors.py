"""The posterior of one prefix from its own rollouts: Beta(c + 1/2, n - c + 1/2), from Jeffreys' prior.

By the likelihood principle it does not depend on why sampling stopped.
"""

import math
from functools import lru_cache

from scipy.special import betaincc


def beta_moments(correct: int, graded: int) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = (correct + 0.5) / (graded + 1)
    return mean, math.sqrt(mean * (1 - mean) / (graded + 2))


@lru_cache(maxsize=65_536)
def above(correct: int, graded: int, threshold: float) -> float:
    """P(V > threshold)."""
    return float(betaincc(correct + 0.5, graded - correct + 0.5, threshold))
