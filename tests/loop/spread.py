"""Means over seeds with standard errors and intervals, and what the spread of a figure comes from. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

Floats = npt.NDArray[np.float64]
CONFIDENCE = 0.95
RESAMPLES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean over seeds, the standard deviation of one seed, and the standard error of the mean (NaN for one seed)."""

    value: float
    sd: float
    error: float


def mean_of(values: Sequence[float]) -> Mean:
    found = np.array(values)
    sd = float(found.std(ddof=1)) if len(found) > 1 else float("nan")
    return Mean(value=float(found.mean()), sd=sd, error=sd / len(found) ** 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """With a confidence of `CONFIDENCE`."""

    low: float
    high: float


def of_seeds(values: Sequence[float]) -> Interval:
    """Of the mean over all seeds that there could be, by Student's t (NaN for one seed)."""
    mean = mean_of(values)
    wide = float(stdtrit(max(1, len(values) - 1), (1 + CONFIDENCE) / 2)) * mean.error
    return Interval(low=mean.value - wide, high=mean.value + wide)


def of_problems(by_problem: Floats, seed: int = 0) -> Interval:
    """Of the mean over all problems that there could be, for these seeds, by the bootstrap. `by_problem`, shape (seeds,
    problems): a problem is drawn for all seeds together."""
    means = by_problem.mean(axis=0)
    drawn = np.random.default_rng(seed).integers(len(means), size=(RESAMPLES, len(means)))
    low, high = np.quantile(means[drawn].mean(axis=1), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(low=float(low), high=float(high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Standard deviations of a figure of one run: by the training alone (initial weights of the head, order of chains, held-out
    problems), by the problems and chains to learn from, and by the problems to choose for with their candidates."""

    training: float
    learned_from: float
    chosen_for: float

    @property
    def total(self) -> float:
        return float(np.sqrt(self.training**2 + self.learned_from**2 + self.chosen_for**2))


def components(across: Sequence[float], within: Sequence[float], by_problem: Floats, problems: int) -> Components:
    """`across`: the figure of trainings on different chains with different seeds; `within`: of trainings on the same chains
    with different seeds; all on the same candidates. `by_problem`: the figure of each problem, shape (trainings, problems).
    `problems`: how many a run has. A negative estimate of a variance counts as 0."""
    training = float(np.var(within, ddof=1))
    learned_from = max(0.0, float(np.var(across, ddof=1)) - training)
    chosen_for = float(by_problem.mean(axis=0).var(ddof=1)) / problems
    return Components(training=training**0.5, learned_from=learned_from**0.5, chosen_for=chosen_for**0.5)
