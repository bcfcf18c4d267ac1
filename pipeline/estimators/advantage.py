"""What a step changes: V_k - V_(k-1), for those who train on progress rather than on value."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pipeline.core.records import StepValue


def with_advantages(values: Sequence[StepValue]) -> list[StepValue]:
    """The same with advantages, of prefixes whose posteriors are independent: their variances add up."""
    return [values[0], *(_advantage(before, after) for before, after in pairwise(values))]


def _advantage(before: StepValue, after: StepValue) -> StepValue:
    means = before.posterior_mean, after.posterior_mean
    sds = before.posterior_sd, after.posterior_sd
    if means[0] is None or means[1] is None or sds[0] is None or sds[1] is None:
        return after
    return replace(after, advantage=means[1] - means[0], advantage_sd=math.hypot(sds[0], sds[1]))
