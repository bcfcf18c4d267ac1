"""Turns a row of `labels` into training targets of its steps. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.config.choices import ValueColumn
from pipeline.core.errors import UsageError
from pipeline.core.records import GROWN
from pipeline.estimators.labels import NEGATIVE, NEUTRAL, POSITIVE, values_with_evidence
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces, are_left_out, target_places
from pipeline.train.settings import Loss, TrainConfig, TrainNeutral, TrainTarget

COLUMNS = (
    "chain_id",
    "problem_id",
    "problem",
    "steps",
    "outcome",
    "value",
    "unbiased_value",
    "n_rollouts",
    "origin",
    "label",
    "estimator",
    "p_outcome",
    "root_value",
    "root_n_rollouts",
    "left_out",
    "p_no_drop",
    "p_error_free",
    GROWN,
)
"""The columns of `labels` that are read."""
IGNORED = -100
"""The class of tokens without a label in tensors; the same as in torch."""
_NEUTRAL = {TrainNeutral.positive: POSITIVE, TrainNeutral.negative: NEGATIVE, TrainNeutral.uncertain: None}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTarget:
    """The target of one step: its class (1 good, 0 bad, None uncertain), and its value in [0, 1] or None."""

    label: int | None = None
    value: float | None = None


def step_targets(row: Mapping[str, Any], config: TrainConfig) -> list[StepTarget]:
    """One target per step of a row with `COLUMNS`.

    Raises UsageError for a step with label 2 if its class counts and neither `config.neutral` nor `config.threshold` sets it.
    """
    if config.target is TrainTarget.outcome:
        right = row["outcome"]
        last = StepTarget() if right is None else StepTarget(label=int(right), value=float(right))
        return [*[StepTarget()] * (len(row["steps"]) - 1), last]
    out = are_left_out(row["origin"], grown=bool(row.get(GROWN)))
    return [
        StepTarget() if left_out else StepTarget(label=_label(label, value, config), value=value)
        for label, value, left_out in zip(row["label"], _values(row, config), out, strict=True)
    ]


def places_of(row: Mapping[str, Any], targets: Sequence[StepTarget], config: TrainConfig) -> TargetPlaces:
    """The places of the targets that the loss uses, of the first steps of a row."""
    if config.target is TrainTarget.outcome or (config.loss is Loss.soft and config.soft is ValueColumn.p_error_free):
        return NO_PLACES
    hard = config.loss is Loss.hard
    used = [used_by(config.loss, target) for target in targets]
    return target_places(used, row["origin"], hard=hard, grown=bool(row.get(GROWN)))


def used_by(loss: Loss, target: StepTarget) -> float | None:
    """What the loss needs of a step: its label or its value; None where it has none."""
    return target.label if loss is Loss.hard else target.value


def _values(row: Mapping[str, Any], config: TrainConfig) -> list[float | None]:
    values: list[float | None] = row[config.soft.value]
    if config.soft is ValueColumn.p_error_free:
        return values
    return values_with_evidence(values, row["origin"], row["n_rollouts"], row["root_n_rollouts"] or 0)


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
