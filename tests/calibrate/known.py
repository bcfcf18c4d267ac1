"""Scores and rollouts from a known law: E(V | score) is a given curve, and rollouts are binomial. So the truth of a calibration
is known.

A prefix has a score s and a value V that is Beta distributed with mean `curve(s)` and precision KAPPA. Scores and values of one
problem are correlated by a normal copula, as those of real problems are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtr
from scipy.stats import beta

from pipeline.analysis.calibrate.prefixes import Trials
from pipeline.analysis.comparison import bins_of
from pipeline.core.statistics import Floats, Ints

KAPPA = 4.0
SHARED = 0.3
"""Share of the variance of the copula that prefixes of a problem have in common."""
SHAPE = (1.5, 0.7)
"""Of the Beta distribution of scores: most are high, as those of reward models are."""
Curve = Callable[[Floats], Floats]


def honest(scores: Floats) -> Floats:
    return scores


def overconfident(scores: Floats) -> Floats:
    """Scores are too high everywhere, with an ECE of 0.15."""
    return scores**2


def shifted(scores: Floats) -> Floats:
    """As of a weaker policy: half as sure, and one logit lower, with an ECE of 0.27."""
    return np.asarray(expit(logit(np.clip(scores, 1e-6, 1 - 1e-6)) / 2 - 1))


def bent(scores: Floats) -> Floats:
    """No smooth curve with three parameters is near it. Its ECE is 0.42."""
    return np.asarray(np.interp(scores, [0, 0.5, 0.9, 1], [0, 0.05, 0.3, 0.8]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """`truth`: E(V | score) of each prefix. `v`: its own V."""

    trials: Trials
    truth: Floats
    v: Floats


def sample(
    curve: Curve,
    seed: int,
    *,
    problems: int = 300,
    chains: int = 2,
    steps: int = 4,
    rollouts: int = 8,
    by_step: dict[int, Curve] | None = None,
) -> Sample:
    """Chains with `steps` prefixes each. `by_step`: other curves for some steps, counted from 1."""
    rng = np.random.default_rng(seed)
    size = problems * chains * steps
    problem = np.repeat(np.arange(problems), chains * steps)
    step = np.tile(np.arange(1, steps + 1), problems * chains)

    def uniform() -> Floats:
        own, common = rng.normal(size=size), rng.normal(size=problems)[problem]
        return np.asarray(ndtr(np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own))

    scores = np.asarray(beta.ppf(uniform(), *SHAPE))
    truth = np.clip(curve(scores), 1e-3, 1 - 1e-3)
    for at, other in (by_step or {}).items():
        truth = np.where(step == at, np.clip(other(scores), 1e-3, 1 - 1e-3), truth)
    v = np.asarray(beta.ppf(uniform(), truth * KAPPA, (1 - truth) * KAPPA))
    return Sample(
        trials=Trials(
            scores=scores,
            values=rng.binomial(rollouts, v) / rollouts,
            rollouts=np.full(size, rollouts),
            steps=step,
            problems=problem,
        ),
        truth=truth,
        v=v,
    )


def true_ece(predicted: Floats, truth: Floats) -> float:
    """The ECE of predictions against E(V | score), which has no noise of rollouts."""
    return float(np.abs(np.bincount(bins_of(predicted, 10), weights=predicted - truth)).sum() / len(truth))


def first_steps(scores: Floats, values: Floats, problems: Ints, *, rollouts: int) -> Trials:
    """Prefixes of one step each."""
    ones = np.ones(len(scores), dtype=np.int64)
    return Trials(scores=scores, values=values, rollouts=rollouts * ones, steps=ones, problems=problems)


def squared_error(predicted: Floats, truth: Floats) -> float:
    return float(((predicted - truth) ** 2).mean())
