"""Intervals for a success probability from c successes in n independent trials."""

import math
from functools import lru_cache

from scipy.special import betainc, betaincc, betaincinv

from pipeline.config.choices import Interval
from pipeline.config.label import EstimatorConfig


def interval(correct: int, graded: int, config: EstimatorConfig) -> tuple[float, float]:
    """The interval of `config.interval` for rollouts whose number does not depend on their outcomes.

    `posterior` is Jeffreys' interval here, because only the prefix's own rollouts are used.
    """
    rule = clopper_pearson if config.interval is Interval.clopper_pearson else jeffreys
    return of_true_answers(rule(correct, graded, config.confidence), config)


def true_share(correct: float, config: EstimatorConfig) -> float:
    """An unbiased estimate of the share of right answers, from one of the share graded as correct. It may exceed 1."""
    return correct / (1 - config.miss_rate)


def of_true_answers(bounds: tuple[float, float], config: EstimatorConfig) -> tuple[float, float]:
    """The interval of V from one of V (1 - miss_rate), the probability of a rollout graded as correct."""
    low, high = (min(1.0, true_share(bound, config)) for bound in bounds)
    return low, high


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


def beta_moments(correct: int, graded: int, miss_rate: float = 0.0) -> tuple[float, float]:
    """Mean and standard deviation of V where V (1 - miss_rate), the probability of a rollout graded as correct, has the
    distribution Beta(c + 1/2, n - c + 1/2) up to 1 - miss_rate."""
    mean = (correct + 0.5) / (graded + 1)
    if not miss_rate:
        return mean, math.sqrt(mean * (1 - mean) / (graded + 2))
    most = 1 - miss_rate
    mass, first, second = (float(betainc(correct + 0.5 + k, graded - correct + 0.5, most)) for k in range(3))
    if mass == 0:
        return 1.0, 0.0
    square = mean * (correct + 1.5) / (graded + 2) * second / mass / most**2
    mean *= first / mass / most
    return mean, math.sqrt(max(0.0, square - mean**2))


@lru_cache(maxsize=65_536)
def above(correct: int, graded: int, threshold: float, miss_rate: float = 0.0) -> float:
    """P(V > threshold) under the distribution of `beta_moments`."""
    shape = correct + 0.5, graded - correct + 0.5
    if not miss_rate:
        return float(betaincc(*shape, threshold))
    mass, below = (float(betainc(*shape, share * (1 - miss_rate))) for share in (1.0, threshold))
    return 1 - below / mass if mass else 1.0
