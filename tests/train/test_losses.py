"""The losses equal their formulas, and their gradients stay finite."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from pipeline.train.data import target_tensors
from pipeline.train.losses import batch_loss, beta_binomial, hard_cross_entropy, soft_cross_entropy
from pipeline.train.settings import Loss
from pipeline.train.targets import StepTarget

logits = st.tuples(st.floats(-4, 6), st.floats(-4, 6))
counts = st.integers(0, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
FAR = 1e4


def tensor(*rows: tuple[float, float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64, requires_grad=True)


@given(logits, counts)
def test_the_beta_binomial_loss_is_its_probability(pair: tuple[float, float], counted: tuple[int, int]) -> None:
    bad, good = pair
    correct, rollouts = counted
    found = beta_binomial(tensor(pair), torch.tensor([correct]), torch.tensor([rollouts]))
    beta, alpha = torch.tensor([bad, good], dtype=torch.float64).exp().tolist()
    assert found.item() == pytest.approx(-betabinom.logpmf(correct, rollouts, alpha, beta), rel=1e-9, abs=1e-9)


@given(logits, st.booleans())
def test_of_one_rollout_it_is_the_hard_cross_entropy(pair: tuple[float, float], right: bool) -> None:
    found = beta_binomial(tensor(pair), torch.tensor([int(right)]), torch.tensor([1]))
    assert found.item() == pytest.approx(hard_cross_entropy(tensor(pair), torch.tensor([int(right)])).item(), abs=1e-9)


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
    targets = [StepTarget(label=right, value=right / 2, correct=6 * right, rollouts=6) for right in (0, 1)]
    total, weight = batch_loss(loss, far, target_tensors([*targets, StepTarget(value=None)]))
    assert weight == 2
    total.backward()
    assert torch.isfinite(far.grad).all()
    assert (far.grad.abs() <= 12).all()


def test_a_model_that_is_sure_of_the_rate_loses_less_on_many_rollouts_than_one_that_is_not() -> None:
    rate = torch.tensor([0.25, 0.75]).log()
    sure, unsure = (rate + 5)[None], rate[None]
    many, all_right = (torch.tensor([75]), torch.tensor([100])), (torch.tensor([100]), torch.tensor([100]))
    assert beta_binomial(sure, *many) < beta_binomial(unsure, *many)
    assert beta_binomial(sure, *all_right) > beta_binomial(unsure, *all_right)


@given(st.lists(st.tuples(logits, st.floats(0, 1), st.booleans()), min_size=1, max_size=5))
def test_steps_count_by_their_weights_and_those_without_a_label_not_at_all(
    steps: list[tuple[tuple[float, float], float, bool]],
) -> None:
    given_logits = tensor(*(pair for pair, _, _ in steps), (3.0, 3.0))
    targets = [StepTarget(label=int(right), weight=weight) for _, weight, right in steps]
    total, weights = batch_loss(Loss.hard, given_logits, target_tensors([*targets, StepTarget()]))
    wanted = sum(
        weight * hard_cross_entropy(tensor(pair), torch.tensor([int(right)])).item() for pair, weight, right in steps
    )
    assert total.item() == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    assert weights.item() == pytest.approx(sum(weight for _, weight, _ in steps), rel=1e-5)
