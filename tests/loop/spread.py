"""Means over seeds with standard errors, and what the spread of a figure comes from. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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
