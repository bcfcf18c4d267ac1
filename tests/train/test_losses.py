"""The losses equal their formulas, and their gradients stay finite."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.train.data import target_tensors
from pipeline.train.losses import batch_loss, hard_cross_entropy, soft_cross_entropy
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
