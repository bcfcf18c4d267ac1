"""Targets, losses with finite gradients, validation metrics, scores of chains, and their order."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import ValueColumn
from pipeline.core.errors import UsageError
from pipeline.estimators.target_places import NO_PLACES
from pipeline.scorers.chain_scores import chain_scores
from pipeline.scorers.heads import like_lengths
from pipeline.train.data import LengthBatchSampler, target_tensors
from pipeline.train.losses import batch_loss, hard_cross_entropy, soft_cross_entropy
from pipeline.train.result import accuracy, auc, brier
from pipeline.train.settings import Loss, TrainConfig, TrainNeutral, TrainTarget
from pipeline.train.targets import COLUMNS, StepTarget, places_of, step_targets, used_by

logits = st.tuples(st.floats(-4, 6), st.floats(-4, 6))
FAR = 1e4


def tensor(*rows: tuple[float, float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64, requires_grad=True)


@given(logits, st.booleans())
def test_of_a_value_of_0_or_1_the_soft_cross_entropy_is_the_hard_one(pair: tuple[float, float], right: bool) -> None:
    found = soft_cross_entropy(tensor(pair), torch.tensor([float(right)]))
    assert found.item() == pytest.approx(hard_cross_entropy(tensor(pair), torch.tensor([int(right)])).item(), abs=1e-9)


@given(logits, st.floats(0.01, 0.99))
def test_the_soft_cross_entropy_is_torchs_own_and_smallest_at_the_value(
    pair: tuple[float, float], value: float
) -> None:
    given_logits = tensor(pair)
    shares = torch.tensor([[1 - value, value]], dtype=torch.float64)
    found = soft_cross_entropy(given_logits, torch.tensor([value], dtype=torch.float64))
    assert found.item() == pytest.approx(torch.nn.functional.cross_entropy(given_logits, shares).item(), abs=1e-9)
    assert soft_cross_entropy(shares.log(), shares[:, 1]).item() <= found.item() + 1e-9


@given(st.sampled_from(list(Loss)), st.sampled_from([-FAR, -1.0, 0.0, FAR]), st.sampled_from([-FAR, 0.0, 2.0, FAR]))
def test_slopes_are_finite_however_far_the_logits(loss: Loss, bad: float, good: float) -> None:
    far = torch.tensor([[bad, good]] * 3, requires_grad=True)
    targets = [StepTarget(label=right, value=right / 2) for right in (0, 1)]
    total, count = batch_loss(loss, far, target_tensors([*targets, StepTarget(value=None)]))
    assert count == 2
    total.backward()
    assert torch.isfinite(far.grad).all()
    assert (far.grad.abs() <= 12).all()


@given(st.lists(st.tuples(logits, st.booleans()), min_size=1, max_size=5))
def test_steps_without_a_label_do_not_count(steps: list[tuple[tuple[float, float], bool]]) -> None:
    given_logits = tensor(*(pair for pair, _ in steps), (3.0, 3.0))
    targets = [StepTarget(label=int(right)) for _, right in steps]
    total, count = batch_loss(Loss.hard, given_logits, target_tensors([*targets, StepTarget()]))
    wanted = sum(hard_cross_entropy(tensor(pair), torch.tensor([int(right)])).item() for pair, right in steps)
    assert total.item() == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    assert count.item() == len(steps)


shares = st.floats(0, 1)
labelled = st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.sampled_from([0, 1, None])), max_size=12)
lengths = st.lists(st.integers(0, 300), max_size=60)


@given(labelled)
def test_auc_is_the_share_of_pairs_in_order(steps: list[tuple[float, int | None]]) -> None:
    pairs = [(good, bad) for good, one in steps if one == 1 for bad, other in steps if other == 0]
    found = auc([score for score, _ in steps], [label for _, label in steps])
    if pairs:
        assert found == pytest.approx(sum((good > bad) + (good == bad) / 2 for good, bad in pairs) / len(pairs))
    else:
        assert found is None


def test_accuracy_and_brier_count_what_is_known() -> None:
    assert accuracy([0.9, 0.2, 0.6, 0.4], [1, 0, 0, None]) == pytest.approx(2 / 3)
    assert accuracy([0.9], [None]) is None
    assert brier([0.5, 1.0, 0.3], [0.0, 1.0, None]) == pytest.approx(0.125)
    assert brier([0.5], [None]) is None


@given(st.lists(shares, min_size=1, max_size=9))
def test_a_chain_has_the_scores_of_its_steps(scores: list[float]) -> None:
    product, mean = math.prod(scores), sum(scores) / len(scores)
    wanted = {"score_last": scores[-1], "score_min": min(scores), "score_product": product, "score_mean": mean}
    assert chain_scores(scores) == pytest.approx(wanted)


@given(st.lists(shares, max_size=5))
def test_a_chain_with_an_unscored_step_or_none_has_no_score(scores: list[float]) -> None:
    assert set(chain_scores([*scores, None]).values()) == {None} == set(chain_scores([]).values())


@given(lengths, st.integers(1, 1_000))
def test_forward_passes_hold_every_chain_once_and_no_more_tokens_than_allowed(sizes: list[int], tokens: int) -> None:
    batches = list(like_lengths(sizes, tokens))
    assert sorted(index for batch in batches for index in batch) == [index for index, size in enumerate(sizes) if size]
    assert all(len(batch) == 1 or len(batch) * max(sizes[index] for index in batch) <= tokens for batch in batches)


@given(lengths, st.integers(1, 7), st.integers(0, 9))
def test_an_epoch_has_every_chain_once_in_an_order_of_its_own(sizes: list[int], batch: int, epoch: int) -> None:
    order = LengthBatchSampler(sizes, batch, seed=3)
    order.set_epoch(epoch)
    drawn = list(order)
    assert sorted(drawn) == list(range(len(order))) == list(range(len(sizes)))
    assert drawn == list(order)


def test_batches_hold_chains_of_like_length_and_epochs_differ() -> None:
    sizes = [number * 37 % 500 for number in range(400)]
    order = LengthBatchSampler(sizes, 8, seed=3)
    first = list(order)
    spreads = [max(part) - min(part) for part in ([sizes[i] for i in first[s : s + 8]] for s in range(0, 400, 8))]
    assert max(spreads) < 20
    order.set_epoch(1)
    assert list(order) != first != list(LengthBatchSampler(sizes, 8, seed=4))


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
