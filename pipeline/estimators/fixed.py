"""The fixed estimator: N rollouts for every prefix, value c/n over the graded ones (Math-Shepherd's soft estimate).

Unbiased for P(correct | prefix) as long as whether a rollout can be graded does not depend on whether it is right.
"""

from pipeline.config.label import EstimatorConfig
from pipeline.core.records import Counts, Origin, StepValue, Trials
from pipeline.estimators.intervals import interval
from pipeline.estimators.posteriors import above, beta_moments


def owed(trials: Trials, rollouts: int) -> int:
    """How many more rollouts a prefix needs."""
    return max(0, rollouts - len(trials.outcomes))


def measured(counts: Counts, config: EstimatorConfig) -> StepValue:
    """Value, interval and posterior of a sampled prefix.

    The posterior is Beta(c + 1/2, n - c + 1/2), from Jeffreys' prior and this prefix alone. With nothing graded there is
    no value: all estimates are None and the origin is `unmeasured`.
    """
    correct, graded = counts.correct, counts.graded
    if graded == 0:
        return unmeasured(counts)
    low, high = interval(correct, graded, config)
    mean, sd = beta_moments(correct, graded)
    return StepValue(
        value=correct / graded,
        value_rollouts=graded,
        low=low,
        high=high,
        posterior_mean=mean,
        posterior_sd=sd,
        above=above(correct, graded, config.threshold),
        origin=Origin.MEASURED,
        counts=counts,
    )


def unmeasured(counts: Counts) -> StepValue:
    """A prefix of which nothing is known."""
    return StepValue(
        value=None,
        value_rollouts=0,
        low=None,
        high=None,
        posterior_mean=None,
        posterior_sd=None,
        above=None,
        origin=Origin.UNMEASURED,
        counts=counts,
    )


def terminal(outcome: bool, threshold: float) -> StepValue:
    """The full chain: its value is its own outcome, known without a rollout."""
    value = float(outcome)
    return StepValue(
        value=value,
        value_rollouts=0,
        low=value,
        high=value,
        posterior_mean=value,
        posterior_sd=0.0,
        above=float(value > threshold),
        origin=Origin.TERMINAL,
        counts=Counts(),
    )
