"""What a step changes: V_k - V_(k-1), for those who train on progress rather than on value."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pipeline.records import StepValue


def with_advantages(values: Sequence[StepValue]) -> list[StepValue]:
    """The same with advantages, of prefixes whose posteriors are independent: their variances add up."""
    return [values[0], *(_advantage(before, after) for before, after in pairwise(values))]


def _advantage(before: StepValue, after: StepValue) -> StepValue:
    if None in (before.posterior_mean, after.posterior_mean):
        return after
    assert before.posterior_mean is not None and after.posterior_mean is not None
    assert before.posterior_sd is not None and after.posterior_sd is not None
    return replace(
        after,
        advantage=after.posterior_mean - before.posterior_mean,
        advantage_sd=math.hypot(before.posterior_sd, after.posterior_sd),
    )
