"""Intervals for a success probability from c successes in n independent trials."""

import math
from functools import lru_cache

from scipy.special import betaincc, betaincinv

from pipeline.config.choices import Interval
from pipeline.config.label import EstimatorConfig


def interval(correct: int, graded: int, config: EstimatorConfig) -> tuple[float, float]:
    """The interval of `config.interval` for rollouts whose number does not depend on their outcomes.

    `posterior` is Jeffreys' interval here, because only the prefix's own rollouts are used.
    """
    rule = clopper_pearson if config.interval is Interval.clopper_pearson else jeffreys
    return rule(correct, graded, config.confidence)


@lru_cache(maxsize=65_536)
def clopper_pearson(correct: int, graded: int, confidence: float) -> tuple[float, float]:
    """The exact interval of Clopper and Pearson (1934), whose coverage is at least `confidence` for every probability.

    `(0, 1)` without trials. Raises ValueError unless 0 <= correct <= graded.
    """
    _check(correct, graded)
    tail = (1 - confidence) / 2
    low = 0.0 if correct == 0 else float(betaincinv(correct, graded - correct + 1, tail))
    high = 1.0 if correct == graded else float(betaincinv(correct + 1, graded - correct, 1 - tail))
    return low, high


@lru_cache(maxsize=65_536)
def jeffreys(correct: int, graded: int, confidence: float) -> tuple[float, float]:
    """The equal-tailed Beta(c + 1/2, n - c + 1/2) interval, closed at 0 and 1 (Brown, Cai and DasGupta 2001, section 3.1).

    It is shorter than Clopper-Pearson. Its coverage is `confidence` on average over probabilities, not for each of them.
    """
    _check(correct, graded)
    tail = (1 - confidence) / 2
    low = 0.0 if correct == 0 else float(betaincinv(correct + 0.5, graded - correct + 0.5, tail))
    high = 1.0 if correct == graded else float(betaincinv(correct + 0.5, graded - correct + 0.5, 1 - tail))
    return low, high


def _check(correct: int, graded: int) -> None:
    if not 0 <= correct <= graded:
        raise ValueError(f"{correct} successes in {graded} trials")


def beta_moments(correct: int, graded: int) -> tuple[float, float]:
    """Mean and standard deviation of Beta(c + 1/2, n - c + 1/2)."""
    mean = (correct + 0.5) / (graded + 1)
    return mean, math.sqrt(mean * (1 - mean) / (graded + 2))


@lru_cache(maxsize=65_536)
def above(correct: int, graded: int, threshold: float) -> float:
    """P(V > threshold) under Beta(c + 1/2, n - c + 1/2)."""
    return float(betaincc(correct + 0.5, graded - correct + 0.5, threshold))
