"""What a pilot would measure, taken from the settings: where no policy is loaded."""

from collections.abc import Sequence

from pipeline.analysis.plan.pilot import UNKNOWN_SD
from pipeline.analysis.plan.simulated import Believed
from pipeline.config.label import LabelConfig
from pipeline.core.forecast import Range
from pipeline.engines.defaults import defaults_for
from pipeline.engines.hardware.roofline import decode_bound
from pipeline.engines.model_config import planned_architecture
from pipeline.engines.running_on import planned_hardware
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
    policy = config.policy
    architecture = planned_architecture(policy)
    hardware = architecture and planned_hardware(architecture, policy.tensor_parallel or 1, policy.device)
    if not hardware or hardware.architecture is None or hardware.device is None:
        return None
    batch = policy.max_num_seqs or defaults_for(hardware.device.name).max_num_seqs
    bound = decode_bound(hardware.architecture, hardware.device, batch=batch, context=context, devices=hardware.devices)
    return SHARE_OF_BOUND * bound
