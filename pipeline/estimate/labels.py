"""Label rules: from values to 1 (keep), 0 (bad step) or None (undecided).

`any`        1 when at least one rollout was right: Math-Shepherd's hard estimate.
`threshold`  1 when value > threshold.
`relative`   1 when value > threshold x the value of the bare problem (EpicPRM labels with half of the root value);
             undecided where the bare problem was never solved, because then every step would count as progress.
"""

from collections.abc import Sequence

from pipeline.choices import LabelRule
from pipeline.config import EstimatorConfig
from pipeline.records import StepValue


def step_labels(root: StepValue, steps: Sequence[StepValue], config: EstimatorConfig) -> tuple[int | None, ...]:
    """One label per step; a step without a value is undecided."""
    return tuple(_label(root, step, config) for step in steps)


def _label(root: StepValue, step: StepValue, config: EstimatorConfig) -> int | None:
    if step.value is None:
        return None
    match config.rule:
        case LabelRule.any:
            return int(step.value > 0)
        case LabelRule.threshold:
            return int(step.value > config.threshold)
        case LabelRule.relative:
            if not root.value:
                return None
            return int(step.value > config.threshold * root.value)


def rule_name(config: EstimatorConfig) -> str:
    """The rule as it stands in the column `label_rule`, for example `threshold>0.5`."""
    if config.rule is LabelRule.any:
        return "any"
    return f"{config.rule.value}>{config.threshold:g}"
