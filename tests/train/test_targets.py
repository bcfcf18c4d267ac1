"""Rows of labels become classes, values and counts according to the settings."""

from typing import Any

import pytest

from pipeline.config.choices import ValueColumn
from pipeline.core.errors import UsageError
from pipeline.estimators.target_places import NO_PLACES
from pipeline.train.settings import Loss, TrainConfig, TrainNeutral, TrainTarget
from pipeline.train.targets import COLUMNS, StepTarget, places_of, step_targets, used_by

ROW: dict[str, Any] = {
    "chain_id": "c",
    "problem_id": "p",
    "problem": "What is 1 + 1?",
    "steps": ["a", "b", "c", "d"],
    "outcome": False,
    "value": [0.7, 0.1, 0.05, 0.0],
    "unbiased_value": [0.75, 0.0, None, 0.0],
    "n_rollouts": [8, 8, 0, 0],
    "origin": ["measured", "measured", "implied", "terminal"],
    "label": [1, 0, None, 0],
    "estimator": "fixed",
    "p_outcome": 0.95,
    "root_value": 0.6,
    "root_n_rollouts": 8,
    "left_out": None,
    "p_no_drop": [0.95, 0.7, 0.3, 0.0],
    "p_error_free": [0.9, 0.6, 0.2, 0.1],
    "grown": False,
}


def targets(row: dict[str, Any] | None = None, **settings: Any) -> list[StepTarget]:
    return step_targets({**ROW, **(row or {})}, TrainConfig(**settings))


def test_the_row_has_the_columns_that_are_read() -> None:
    assert tuple(ROW) == COLUMNS


def test_classes_are_the_runs_own_unless_a_threshold_decides() -> None:
    assert [target.label for target in targets()] == [1, 0, None, 0]
    assert [target.label for target in targets(threshold=0.8)] == [0, 0, 0, 0]
    assert [target.label for target in targets(threshold=0.08)] == [1, 1, 0, 0]
    assert [target.label for target in targets(threshold=0.0, soft=ValueColumn.unbiased_value)] == [1, 0, None, 0]


def test_values_are_best_estimates_unless_unbiased_ones_are_asked_for() -> None:
    for estimator in ("fixed", "pooled"):
        assert [target.value for target in targets({"estimator": estimator})] == ROW["value"]
    assert [target.value for target in targets(soft=ValueColumn.unbiased_value)] == ROW["unbiased_value"]


def test_the_probability_of_no_error_is_the_value_of_every_step_where_it_is_asked_for() -> None:
    assert [target.value for target in targets(soft=ValueColumn.p_no_drop)] == ROW["p_no_drop"]
    found = targets(soft=ValueColumn.p_error_free)
    assert [target.value for target in found] == ROW["p_error_free"]
    assert places_of(ROW, found, TrainConfig(soft=ValueColumn.p_error_free)) == NO_PLACES
    assert places_of(ROW, targets(), TrainConfig()) != NO_PLACES


def test_an_outcome_model_learns_the_last_step_alone() -> None:
    found = targets({"outcome": True}, target=TrainTarget.outcome)
    assert found == [StepTarget()] * 3 + [StepTarget(label=1, value=1.0)]
    assert targets({"outcome": None}, target=TrainTarget.outcome) == [StepTarget()] * 4


@pytest.mark.parametrize(
    ("neutral", "label"), [(TrainNeutral.positive, 1), (TrainNeutral.negative, 0), (TrainNeutral.uncertain, None)]
)
def test_what_becomes_of_neutral_steps_has_to_be_said(neutral: TrainNeutral, label: int | None) -> None:
    row = {"label": [2, 0, None, 0]}
    with pytest.raises(UsageError, match="neutral=positive, neutral=negative, neutral=uncertain"):
        targets(row, loss=Loss.hard)
    assert targets(row, neutral=neutral, loss=Loss.hard)[0].label == label
    assert targets(row)[0].label is None
    assert targets(row, threshold=0.5, loss=Loss.hard)[0].label == 1


@pytest.mark.parametrize("loss", [Loss.soft, Loss.hard])
def test_without_any_graded_rollout_only_the_outcome_is_known(loss: Loss) -> None:
    row = {"n_rollouts": [0] * 4, "root_n_rollouts": 0, "label": [None, None, None, 0]}
    found = targets(row, loss=loss)
    assert [target.value for target in found] == [None, None, None, 0.0]
    assert [used_by(loss, target) is not None for target in found] == [False, False, False, True]
    assert places_of({**ROW, **row}, found, TrainConfig(loss=loss))[:2] == (3, 0)
    assert [target.label for target in targets(row, threshold=0.01)] == [None, None, None, 0]
    by_the_problem_alone = targets(row | {"root_n_rollouts": 8}, loss=loss)
    assert [target.value for target in by_the_problem_alone] == ROW["value"]


@pytest.mark.parametrize(
    ("settings", "places"),
    [
        ({}, (3, 3, 0.85, 0, 0)),
        ({"loss": Loss.hard}, (3, 2, 1, 2, 1)),
        ({"target": TrainTarget.outcome}, (0, 0, 0, 0, 0)),
    ],
)
def test_places_are_those_of_targets_that_the_loss_uses(settings: dict[str, Any], places: tuple[int, ...]) -> None:
    config = TrainConfig(**settings)
    assert places_of(ROW, step_targets(ROW, config), config)[:5] == pytest.approx(places)
    assert places_of(ROW, step_targets(ROW, config)[:3], config).bad_at_ends == 0
