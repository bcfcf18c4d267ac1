"""The fixed estimator: N rollouts for every prefix, value c/n over the graded ones (Math-Shepherd's soft estimate).

Unbiased for P(correct | prefix) as long as whether a rollout can be graded does not depend on whether it is right.
"""

import math

from pipeline.choices import Interval
from pipeline.config import EstimatorConfig
from pipeline.estimate.intervals import clopper_pearson, jeffreys
from pipeline.records import Counts, Origin, StepValue

_INTERVALS = {Interval.clopper_pearson: clopper_pearson, Interval.jeffreys: jeffreys}


def owed(issued: int, rollouts: int) -> int:
    """How many more rollouts a prefix needs after `issued` of them."""
    return max(0, rollouts - issued)


def measured(counts: Counts, config: EstimatorConfig) -> StepValue:
    """Value, interval and posterior of a sampled prefix.

    The posterior is Beta(c + 1/2, n - c + 1/2), from Jeffreys' prior and this prefix alone. With nothing graded there is
    no value: all estimates are None and the origin is `unmeasured`.
    """
    correct, graded = counts.correct, counts.graded
    if graded == 0:
        return StepValue(
            value=None,
            low=None,
            high=None,
            posterior_mean=None,
            posterior_sd=None,
            origin=Origin.UNMEASURED,
            counts=counts,
        )
    low, high = _INTERVALS[config.interval](correct, graded, config.confidence)
    mean = (correct + 0.5) / (graded + 1)
    return StepValue(
        value=correct / graded,
        low=low,
        high=high,
        posterior_mean=mean,
        posterior_sd=math.sqrt(mean * (1 - mean) / (graded + 2)),
        origin=Origin.MEASURED,
        counts=counts,
    )


def terminal(outcome: bool) -> StepValue:
    """The full chain: its value is its own outcome, known without a rollout."""
    value = float(outcome)
    return StepValue(
        value=value,
        low=value,
        high=value,
        posterior_mean=value,
        posterior_sd=0.0,
        origin=Origin.TERMINAL,
        counts=Counts(),
    )
