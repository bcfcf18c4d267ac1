"""What a pilot would measure, taken from the settings: where no policy is loaded."""

from collections.abc import Sequence

from pipeline.analysis.plan.pilot import UNKNOWN_SD
from pipeline.analysis.plan.simulated import Believed
from pipeline.config.label import LabelConfig
from pipeline.core.forecast import Range
from pipeline.engines.registry import policy_for
from pipeline.estimators.tree import Tree

OFF_BY = 2.0
"""Lengths and speeds that are assumed may be so many times larger or smaller."""
RATE_OFF_BY = 0.3
"""A success rate that is assumed may be so much higher or lower."""
SHARE_OF_BOUND = 0.5
"""Of what a device allows, what engines commonly reach."""


def believed(trees: Sequence[Tree], tokens: float, rate: float) -> dict[str, Believed]:
    """The same of all prefixes: nothing is known of any."""
    one = Believed(mean=rate, sd=UNKNOWN_SD, tokens=tokens)
    return {prefix: one for tree in trees for prefix in tree.prefix_ids}


def completion_tokens(config: LabelConfig) -> Range:
    most = config.sampling.max_tokens
    expected = float(min(most, config.plan.completion_tokens or max(1, most // 2)))
    return Range(low=expected / OFF_BY, expected=expected, high=min(float(most), expected * OFF_BY))


def success_rate(config: LabelConfig) -> Range:
    rate = config.plan.success_rate
    return Range(low=max(0.0, rate - RATE_OFF_BY), expected=rate, high=min(1.0, rate + RATE_OFF_BY))


def tokens_per_second(config: LabelConfig, context: float) -> Range | None:
    """Of one worker; from the roofline where the settings name its device and the model's sizes can be had."""
    told = config.plan.tokens_per_second or _share_of_bound(config, context)
    return None if told is None else Range(low=told / OFF_BY, expected=told, high=told * OFF_BY)


def _share_of_bound(config: LabelConfig, context: float) -> float | None:
    bound = policy_for(config.policy).planned_speed(context)
    return None if bound is None else SHARE_OF_BOUND * bound
