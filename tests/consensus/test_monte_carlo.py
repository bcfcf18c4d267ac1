"""Monte Carlo's places of the first error follow from the values, and it is silent where the policy is lost."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.consensus.monte_carlo import monte_carlo_claim, place_of_change, place_of_fall, place_of_loss

shares = st.floats(0, 1)
inner = st.floats(0.01, 0.99)
paths = st.lists(shares, min_size=2, max_size=12)
outcomes = st.sampled_from([True, False, None])
_HIGH_AT_FIRST, _STAYS_LOW = 0.9, 0.95


@given(paths)
def test_losses_are_the_changes_of_what_is_lost(found: list[float]) -> None:
    lost = sorted(found)
    places = place_of_loss(lost)
    if places is None:
        assert lost[0] >= 1 - 1e-9
        return
    assert len(places) == len(lost)
    assert min(places) >= 0
    assert sum(places) == pytest.approx(1 - lost[0])
    assert np.cumsum(places[:-1]) == pytest.approx(np.array(lost[1:]) - lost[0])


@given(paths)
def test_a_fall_up_to_a_step_is_as_probable_as_the_most_probable_one(above: list[float]) -> None:
    places = place_of_fall(above)
    if places is None:
        assert above[0] <= 1e-9
        return
    fallen = np.maximum.accumulate(1 - np.array(above))
    assert np.cumsum(places[:-1]) == pytest.approx(fallen[1:] - fallen[0])
    assert sum(places) == pytest.approx(above[0])


@given(outcomes, st.lists(inner, min_size=2, max_size=7), inner)
def test_a_change_has_the_probability_of_all_paths_with_it(
    outcome: bool | None, above: list[float], prior: float
) -> None:
    """Every path of high and low values is counted by itself."""
    steps = len(above) - 1
    fall = min(1 / steps, 0.5)
    step = {(1, 1): 1 - fall, (1, 0): fall, (0, 1): 1 - _STAYS_LOW, (0, 0): _STAYS_LOW}
    ends = {True: (0.0, 1.0), False: (1.0, 0.0), None: ((1 - above[-1]) / (1 - prior), above[-1] / prior)}[outcome]
    weights = [((1 - p) / (1 - prior), p / prior) for p in above[:-1]] + [ends]
    expected = np.zeros(steps + 2)
    for path in product((0, 1), repeat=steps + 1):
        weight = _HIGH_AT_FIRST if path[0] else 1 - _HIGH_AT_FIRST
        weight *= math.prod(step[pair] for pair in pairwise(path))
        weight *= math.prod(state[high] for state, high in zip(weights, path, strict=True))
        highs, lows = ([at for at, high in enumerate(path) if high == wanted] for wanted in (1, 0))
        if outcome:
            place = steps + 1 if not path[0] else lows[0] - 1 if lows else steps
        else:
            place = steps + 1 if not highs else highs[-1] if highs[-1] < steps else steps
        expected[place] += weight
    expected /= expected.sum()
    found = place_of_change(outcome, above, prior)
    assert found == pytest.approx(expected[:-1].tolist(), abs=1e-9)


@given(outcomes, st.integers(1, 200), st.floats(0, 1))
def test_changes_of_long_chains_are_probabilities(outcome: bool | None, steps: int, share: float) -> None:
    found = place_of_change(outcome, [1.0] + [share] * steps, 0.8)
    assert found is not None
    assert min(found) >= 0
    assert 0.5 < sum(found) <= 1 + 1e-9


def test_where_the_policy_is_lost_from_the_start_monte_carlo_is_silent() -> None:
    assert place_of_loss([1.0, 1.0, 1.0]) is None
    assert place_of_fall([0.0, 0.0, 0.0]) is None
    assert place_of_change(False, [0.0, 0.0, 0.0], 0.5) is None
    assert place_of_change(False, [1.0, 1.0, 0.0], 1.0) is None
    nearly = place_of_loss([0.9, 1.0, 1.0])
    assert nearly is not None
    assert sum(nearly) == pytest.approx(0.1)


def test_a_right_chain_is_not_cleared_by_its_outcome() -> None:
    """Its end is never lost, so what is lost says nothing of its steps; what fell on the way does."""
    above, lost = [1.0, 0.9, 0.05, 1.0], [0.0, 0.0, 0.0, 0.0]
    found = monte_carlo_claim(True, above, lost)
    assert found == place_of_fall(above)
    assert found is not None
    assert found[1] > 0.8


def test_other_chains_are_judged_by_where_the_value_stays_low() -> None:
    above, lost = [1.0, 0.9, 0.05, 0.0], [0.0, 0.1, 0.95, 1.0]
    assert monte_carlo_claim(False, above, lost) == place_of_loss(lost)
    assert monte_carlo_claim(False, above, [None] * 4, 0.8) == place_of_change(False, above, 0.8)
    assert monte_carlo_claim(False, above, None, 0.8) == place_of_change(False, above, 0.8)
    assert monte_carlo_claim(False, [1.0, None, 0.05, 0.0]) is None


def test_a_low_value_from_which_a_wrong_chain_recovers_is_no_loss() -> None:
    found = monte_carlo_claim(False, [0.99, 0.3, 0.99, 0.98, 0.01, 0.0])
    assert found is not None
    assert found[3] > 0.9
    assert found[0] < 0.01


@pytest.mark.parametrize("bad", [[0.5, 1.5], [float("nan"), 0.5], [0.5, -0.1]])
def test_what_is_no_probability_is_refused(bad: list[float]) -> None:
    for place in (place_of_loss, place_of_fall, lambda above: place_of_change(None, above, 0.5)):
        with pytest.raises(ValueError, match="from 0 to 1"):
            place(bad)


def test_a_chain_without_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="without steps"):
        place_of_loss([0.5])
