"""Label rules: from values to 1 (good), 0 (bad), 2 (neutral) or None (uncertain).

`any`          1 when at least one rollout is correct: Math-Shepherd's hard estimate.
`threshold`    1 when the value > threshold.
`relative`     1 when the value > threshold x the value of the bare problem (EpicPRM uses half of the root value);
               uncertain where the bare problem was never solved, because then every step would count as progress.
`posterior`    1 when P(value > threshold) is at least `certainty`, 0 when P(value <= threshold) is at least `certainty`,
               else uncertain.
`three_class`  0 when the value <= threshold. Of the other steps, those that lose more than `neutral` relative to the step
               before are neutral (2): they lower the chance of success but do not end it.
`first_error`  0 for the step from which on the value probably stays at `threshold` or below (P >= 1/2) until the chain ends
               wrong; 1 for the steps before it, and for all steps of a right chain; uncertain after it. All steps are uncertain
               where the value was probably never above the threshold: the policy cannot do the problem, whatever the steps are.
`lasting_drop` 0 when the value fell at the step and never came back, else 1: see `lasting_drop`.
`consensus`    labels that need more than the values of one chain: see `consensus`. No estimator makes them.

The value is `StepValue.value`; `lasting_drop` uses all values of the chain, and `any` the rollouts themselves, with every
estimator.

A step is uncertain under every rule where no prefix of its chain has a graded rollout: its value then rests on what is usual in
the run. A rollout anywhere in the chain is evidence on all of its values, and the posterior knows how much it says. On the
bench's chains of 32 steps, labels that need a rollout at the step or beside it find 66 % of the bad steps, and all labels 95 %,
with the same precision.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pipeline.config.choices import AfterError, LabelRule
from pipeline.config.consensus import describe_consensus, is_consensus
from pipeline.config.label import EstimatorConfig
from pipeline.config.recorded_settings import Settings, chosen_settings
from pipeline.core.errors import UsageError
from pipeline.core.records import Origin, StepValue
from pipeline.estimators.lasting_drop import SHARE, drop_labels
from pipeline.estimators.registry import ESTIMATORS

POSITIVE = 1
NEGATIVE = 0
NEUTRAL = 2

_PROBABLY = 0.5
ROUNDING = 1e-9
"""Tolerance for losses equal to `neutral`: 0.8 - 0.7 > 0.1 in floating point."""


def step_labels(root: StepValue, steps: Sequence[StepValue], config: EstimatorConfig) -> tuple[int | None, ...]:
    """One label per step, each by the rule alone. A step without the value that the rule needs is uncertain (None), and so are
    all but the last of a chain without rollouts, see the module."""
    values = (root, *steps)
    if config.rule is LabelRule.lasting_drop:
        labels = drop_labels(values, config.certainty)
    else:
        labels = [_label(root, before, step, config) for before, step in pairwise(values)]
    sampled = any(step.counts.graded for step in values)
    return tuple(
        label if sampled or step.origin is Origin.TERMINAL else None for label, step in zip(labels, steps, strict=True)
    )


def after_error(labels: Sequence[int | None], config: EstimatorConfig) -> tuple[int | None, ...]:
    """The labels with `after_error` applied to the steps after the first 0. PRM800K leaves such steps uncertain."""
    if NEGATIVE not in labels or config.after_error is AfterError.keep:
        return tuple(labels)
    n_kept = list(labels).index(NEGATIVE) + 1
    rest = None if config.after_error is AfterError.uncertain else NEGATIVE
    return (*labels[:n_kept], *[rest] * (len(labels) - n_kept))


def rule_name(config: EstimatorConfig) -> str:
    """The rule with its parameters, as in the column `label_rule`: `threshold>0.5`, `any,uncertain_after_error`."""
    rest = "" if config.after_error is AfterError.keep else f",{config.after_error.value}_after_error"
    match config.rule:
        case LabelRule.any:
            return f"any{rest}"
        case LabelRule.posterior:
            return f"posterior>{config.threshold:g}@{config.least_certainty:g}{rest}"
        case LabelRule.three_class:
            return f"three_class>{config.threshold:g}-{config.neutral:g}{rest}"
        case LabelRule.consensus:
            return f"consensus@{config.least_certainty:g}{rest}"
        case LabelRule.lasting_drop:
            sure = "" if config.certainty is None else f"@{config.certainty:g}"
            return f"lasting_drop>{SHARE:g}{sure}{rest}"
        case LabelRule.threshold | LabelRule.relative | LabelRule.first_error:
            return f"{config.rule.value}>{config.threshold:g}{rest}"


def describe_rule(config: EstimatorConfig) -> str:
    """The rule in words: which steps are good and which are bad."""
    threshold = f"{config.threshold:g}"
    match config.rule:
        case LabelRule.any:
            text = "a step is good if one of its rollouts is correct, else bad"
        case LabelRule.posterior:
            text = (
                f"a step is good if P(V_k > {threshold}) is at least {config.least_certainty:g}, bad if P(V_k <= {threshold}) "
                f"is at least {config.least_certainty:g}, else uncertain"
            )
        case LabelRule.three_class:
            text = (
                f"a step is bad if its value is {threshold} or less; another step is neutral if its value is more than "
                f"{config.neutral:g} below that of the step before, else good"
            )
        case LabelRule.threshold:
            text = f"a step is good if its value is above {threshold}, else bad"
        case LabelRule.first_error:
            text = (
                f"the step from which on the value probably stays at {threshold} or below is bad, steps before it are good, "
                "later ones uncertain; so are all steps of a chain whose value was probably never above it"
            )
        case LabelRule.lasting_drop:
            text = f"a step is bad if the value falls to {SHARE:g} of its best so far, or below, and stays there, else good"
            if config.certainty is not None:
                text += f"; labels with a probability below {config.certainty:g} are uncertain"
        case LabelRule.consensus:
            text = "Monte Carlo and other witnesses agree on the step"
        case LabelRule.relative:
            text = f"a step is good if its value is above {threshold} times the value of the bare problem, else bad"
    after = ""
    if config.after_error is not AfterError.keep:
        kind = "uncertain" if config.after_error is AfterError.uncertain else "bad"
        after = f"; every step after the first bad one is {kind}"
    return f"{config.rule.value}: {text}{after}"


def _label(root: StepValue, before: StepValue, step: StepValue, config: EstimatorConfig) -> int | None:
    value = step.value
    match config.rule:
        case LabelRule.any:
            return _any_right(step)
        case LabelRule.posterior:
            return _certain(step.p_above, config.least_certainty)
        case LabelRule.threshold:
            return None if value is None else int(value > config.threshold)
        case LabelRule.relative:
            if value is None or root.value is None or not _any_right(root):
                return None
            return int(value > config.threshold * root.value)
        case LabelRule.three_class:
            return _three_class(before.value, value, config)
        case LabelRule.first_error:
            return _first_error(root.p_lost, before.p_lost, step.p_lost)
        case LabelRule.lasting_drop | LabelRule.consensus:
            raise ValueError(f"a label by {config.rule.value} does not follow from the value of one step")


def _any_right(step: StepValue) -> int | None:
    if step.origin is Origin.TERMINAL:
        return int(step.value == 1)
    return int(step.counts.correct > 0) if step.counts.graded else None


def _certain(above: float | None, certainty: float) -> int | None:
    if above is None:
        return None
    if above >= certainty:
        return POSITIVE
    return NEGATIVE if 1 - above >= certainty else None


def _first_error(root: float | None, before: float | None, lost: float | None) -> int | None:
    """`p_lost` of the bare problem, of the prefix before the step, and of the one with it. It never decreases along a chain."""
    if root is None or before is None or lost is None or root >= _PROBABLY:
        return None
    if lost < _PROBABLY:
        return POSITIVE
    return NEGATIVE if before < _PROBABLY else None


def _three_class(before: float | None, value: float | None, config: EstimatorConfig) -> int | None:
    if value is None:
        return None
    if value <= config.threshold:
        return NEGATIVE
    if before is None:
        return None
    return NEUTRAL if before - value > config.neutral + ROUNDING else POSITIVE


def p_outcome(outcome: bool | None, values: Sequence[StepValue], miss_rate: float = 0.0) -> float | None:
    """The probability of a chain's own outcome, given everything but that outcome. `values`: its K + 1 values. None without an
    outcome, without a graded rollout in the chain, or where nothing is known of the prefix before the last step.

    It is what the estimator says, or else the value of that prefix. A small one is a surprise: a right chain by luck, or a slip
    at the end.
    """
    if outcome is None or not any(value.counts.graded for value in values):
        return None
    before, end = values[-2:]
    if end.p_outcome is not None:
        return end.p_outcome
    if before.value is None:
        return None
    right = before.value * (1 - miss_rate)
    return right if outcome else 1 - right


def values_with_evidence(
    values: Sequence[float | None], origins: Sequence[str], graded: Sequence[int], root_graded: int
) -> list[float | None]:
    """The values of a chain's steps that can be trained on. Without a graded rollout anywhere in the chain, they rest on what
    is usual in the run, or on the prior of the estimator: then only the end of the chain has one, which is its outcome.

    `graded`: graded rollouts of each step's prefix. `root_graded`: those of the bare problem.
    """
    if root_graded or any(graded):
        return list(values)
    ends = [origin == Origin.TERMINAL.value for origin in origins]
    return [value if end else None for value, end in zip(values, ends, strict=True)]


def with_advantages(values: Sequence[StepValue]) -> list[StepValue]:
    """The values with advantages, for prefixes with independent posteriors: their variances add up."""
    return [values[0], *(_advantage(before, after) for before, after in pairwise(values))]


def _advantage(before: StepValue, after: StepValue) -> StepValue:
    if before.value is None or after.value is None or before.value_sd is None or after.value_sd is None:
        return after
    return replace(
        after, advantage=after.value - before.value, advantage_sd=math.hypot(before.value_sd, after.value_sd)
    )


def label_rule(settings: Settings) -> str:
    """The label rule in words. `settings`: those of the current labels."""
    if is_consensus(settings):
        return describe_consensus(settings)
    try:
        return describe_rule(chosen_settings(settings, EstimatorConfig, ESTIMATORS))
    except (ValueError, UsageError):
        # The run can be read without the plug-in that made its labels, and its other settings still name the rule.
        return str(settings.get("estimator.rule", "unknown"))
