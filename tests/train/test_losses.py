"""The losses equal their formulas, with finite gradients; validation metrics, scores of chains, and their order."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import Aggregation
from pipeline.scorers.chain_scores import ChainScores, chain_scores
from pipeline.scorers.heads import like_lengths
from pipeline.train.data import LengthBatchSampler, target_tensors
from pipeline.train.losses import batch_loss, hard_cross_entropy, soft_cross_entropy
from pipeline.train.result import accuracy, auc, brier
from pipeline.train.settings import Loss
from pipeline.train.targets import StepTarget

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
    found = chain_scores(scores)
    assert (found.last, found.min) == (scores[-1], min(scores))
    assert found.product == pytest.approx(math.prod(scores))
    assert found.mean == pytest.approx(sum(scores) / len(scores))
    assert [found.score_by(how) for how in Aggregation] == [found.last, found.min, found.product, found.mean]


@given(st.lists(shares, max_size=5))
def test_a_chain_with_an_unscored_step_or_none_has_no_score(scores: list[float]) -> None:
    assert chain_scores([*scores, None]) == ChainScores() == chain_scores([])


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
