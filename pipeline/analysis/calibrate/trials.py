"""Prefixes with a score and rollouts of their own, as columns: what calibrations are fitted to. Pure.

Every prefix counts once, however many rollouts it has. The mean of `value` over prefixes is then unbiased for their mean V,
also where an estimator gave more rollouts to some prefixes because of their outcomes. Weights by rollouts would not be.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.core.statistics import CONFIDENCE, Floats, Interval, Ints, mean, wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """One entry per distinct prefix. `scores`: from 0 to 1. `values`: an unbiased estimate of V for each, such as correct /
    graded of a fixed number of rollouts, `rollouts` (at least 1). `steps`: the number of steps, from 1. `problems`: numbers
    of the problems, see `folds_of`."""

    scores: Floats
    values: Floats
    rollouts: Ints
    steps: Ints
    problems: Ints

    def __len__(self) -> int:
        return len(self.scores)

    def part(self, chosen: NDArray[np.bool_] | Ints) -> "Trials":
        """The prefixes for which `chosen` is true, or with these indices. Their problems are numbered from 0 again, in the same
        order."""
        return Trials(
            scores=self.scores[chosen],
            values=self.values[chosen],
            rollouts=self.rollouts[chosen],
            steps=self.steps[chosen],
            problems=np.unique(self.problems[chosen], return_inverse=True)[1],
        )

    @property
    def n_problems(self) -> int:
        return len(np.unique(self.problems))


def mean_value(trials: Trials, apart: Floats | None = None) -> Interval:
    """The mean value, or the mean of `apart`, which is the values less something known. Its interval is the jackknife's over
    problems. It is not narrower than Wilson's for all rollouts together, because values that are all 0 do not prove that V is
    0. 0 to 1 about a single problem."""
    numbers = trials.values if apart is None else apart
    found = mean(trials.problems, numbers)
    assert found.value is not None
    center, n_rollouts = float(trials.values.mean()), int(trials.rollouts.sum())
    least = wilson(round(center * n_rollouts), n_rollouts, CONFIDENCE)
    if found.low is None or found.high is None:
        return Interval(value=found.value, low=found.value - center, high=found.value - center + 1)
    low = min(found.low, found.value - max(0.0, center - least[0]))
    return Interval(value=found.value, low=low, high=max(found.high, found.value + max(0.0, least[1] - center)))


def folds_of(problems: Ints, folds: int) -> Ints:
    """The fold of each prefix: problem 0 is in fold 0, problem 1 in fold 1 and so on. A problem is in one fold, with all its
    chains; whoever numbers the problems by their hash makes folds that do not depend on the order of files."""
    return problems % folds
