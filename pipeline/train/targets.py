"""Turns a row of `labels` into training targets of its steps. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.config.choices import ValueColumn
from pipeline.core.errors import UsageError
from pipeline.core.records import Origin
from pipeline.estimators.labels import NEGATIVE, NEUTRAL, POSITIVE, values_with_evidence
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces, target_places
from pipeline.train.settings import Loss, TrainConfig, TrainNeutral, TrainTarget, Weight

COLUMNS = (
    "chain_id",
    "problem_id",
    "problem",
    "steps",
    "outcome",
    "value",
    "unbiased_value",
    "value_sd",
    "n_correct",
    "n_rollouts",
    "origin",
    "label",
    "estimator",
    "p_outcome",
    "root_value",
    "root_n_rollouts",
    "left_out",
    "p_error_free",
)
"""The columns of `labels` that are read."""
IGNORED = -100
"""The class of tokens without a label in tensors; the same as in torch."""
_NEUTRAL = {TrainNeutral.positive: POSITIVE, TrainNeutral.negative: NEGATIVE, TrainNeutral.uncertain: None}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTarget:
    """The target of one step: its class (1 good, 0 bad, None uncertain), its value in [0, 1] or None, its correct and graded
    rollouts, and its weight. A step whose value is its chain's own outcome has one rollout, that outcome."""

    label: int | None = None
    value: float | None = None
    correct: int = 0
    rollouts: int = 0
    weight: float = 1.0


def step_targets(row: Mapping[str, Any], config: TrainConfig) -> list[StepTarget]:
    """One target per step of a row with `COLUMNS`.

    Raises UsageError for a step with label 2 if its class counts and neither `config.neutral` nor `config.threshold` sets it.
    """
    if config.target is TrainTarget.outcome:
        last = StepTarget() if row["outcome"] is None else _terminal(row["outcome"])
        return [*[StepTarget()] * (len(row["steps"]) - 1), last]
    values = _values(row, config)
    return [_step_target(row, index, value, config) for index, value in enumerate(values)]


def places_of(row: Mapping[str, Any], targets: Sequence[StepTarget], config: TrainConfig) -> TargetPlaces:
    """The places of the targets that the loss uses, of the first steps of a row."""
    if config.target is TrainTarget.outcome or (config.loss is Loss.soft and config.soft is ValueColumn.p_error_free):
        return NO_PLACES
    hard = config.loss is Loss.hard
    used = [_used(config.loss, target) if counts_for(config.loss, target) else None for target in targets]
    return target_places(used, row["origin"], hard=hard)


def _used(loss: Loss, target: StepTarget) -> object:
    match loss:
        case Loss.hard:
            return target.label
        case Loss.soft:
            return target.value
        case Loss.beta_binomial:
            return target.correct, target.rollouts


def counts_for(loss: Loss, target: StepTarget) -> bool:
    """Whether a step has a positive weight and the target that the loss needs: a label, a value or rollouts."""
    if target.weight <= 0:
        return False
    match loss:
        case Loss.hard:
            return target.label is not None
        case Loss.soft:
            return target.value is not None
        case Loss.beta_binomial:
            return target.rollouts > 0


def _values(row: Mapping[str, Any], config: TrainConfig) -> list[float | None]:
    values: list[float | None] = row[config.soft.value]
    if config.soft is ValueColumn.p_error_free:
        return values
    return values_with_evidence(values, row["origin"], row["n_rollouts"], row["root_n_rollouts"] or 0)


def _terminal(outcome: bool) -> StepTarget:
    return StepTarget(label=int(outcome), value=float(outcome), correct=int(outcome), rollouts=1)


def _step_target(row: Mapping[str, Any], index: int, value: float | None, config: TrainConfig) -> StepTarget:
    label = _label(row["label"][index], value, config)
    terminal = row["origin"][index] == Origin.TERMINAL.value
    return StepTarget(
        label=label,
        value=value,
        correct=int(row["outcome"]) if terminal else row["n_correct"][index],
        rollouts=1 if terminal else row["n_rollouts"][index],
        weight=_weight(row["value_sd"][index], config),
    )


def _label(label: int | None, value: float | None, config: TrainConfig) -> int | None:
    if config.threshold is not None:
        return None if value is None else int(value > config.threshold)
    if label != NEUTRAL:
        return label
    if config.neutral is None and config.loss is Loss.hard:
        raise UsageError(
            "the run has neutral steps (label 2), but the model has only the classes good and bad: choose neutral="
            + ", neutral=".join(choice.value for choice in TrainNeutral)
        )
    return None if config.neutral is None else _NEUTRAL[config.neutral]


def _weight(sd: float | None, config: TrainConfig) -> float:
    if config.weight is Weight.none or sd is None:
        return 1.0
    return min(1.0, max(0.0, 1.0 - 4.0 * sd**2))
