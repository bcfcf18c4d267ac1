"""What distinguishes a right labelling of a tiny policy's chains from a wrong one, without the model."""

from dataclasses import replace

import numpy as np
import pytest

from tests.tiny.compared import Floats, Printed, Truth, implausible, truth
from tests.tiny.policy import POLICIES
from tests.tiny.simulated import simulated

SEEDS = range(5)


@pytest.fixture(scope="module", params=list(POLICIES.values()), ids=list(POLICIES))
def known(request: pytest.FixtureRequest) -> Truth:
    return truth(request.param)


@pytest.fixture(scope="module")
def right(known: Truth) -> list[Printed]:
    return [simulated(known, seed) for seed in SEEDS]


def backwards(values: Floats, known: Truth) -> Floats:
    """Every chain's values from its end to its beginning."""
    return np.concatenate([values[known.chain == chain][::-1] for chain in range(len(known.ids))])


def test_outcomes_drawn_from_the_truth_are_plausible(right: list[Printed], known: Truth) -> None:
    assert [implausible(found, known) for found in right] == [[] for _ in SEEDS]


@pytest.mark.parametrize("shift", [0.1, -0.1])
def test_values_that_are_shifted_are_not(right: list[Printed], known: Truth, shift: float) -> None:
    assert all(implausible(replace(found, mean=found.mean + shift), known) for found in right)


def test_values_in_the_wrong_order_are_not(right: list[Printed], known: Truth) -> None:
    assert all(implausible(replace(found, mean=backwards(found.mean, known)), known) for found in right)
    assert all(implausible(replace(found, mean=np.roll(found.mean, 1)), known) for found in right)


def test_rollouts_that_are_judged_right_too_often_are_not(right: list[Printed], known: Truth) -> None:
    """One wrong answer in five, while values are as before."""
    rng = np.random.default_rng(3)
    for found in right:
        wrongly = rng.binomial(found.graded - found.correct, 0.2)
        assert implausible(replace(found, correct=found.correct + wrongly), known)
