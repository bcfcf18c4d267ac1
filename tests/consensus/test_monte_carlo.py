"""Monte Carlo's places of the first error follow from the values, and it is silent where the policy is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.consensus.monte_carlo import monte_carlo_claim, place_of_fall, place_of_loss

shares = st.floats(0, 1)
paths = st.lists(shares, min_size=2, max_size=12)


@given(paths)
def test_losses_are_the_changes_of_what_is_lost(found: list[float]) -> None:
    lost = sorted(found)
    places = place_of_loss(lost[0], lost[1:])
    if places is None:
        assert lost[0] >= 1 - 1e-9
        return
    assert len(places) == len(lost)
    assert min(places) >= 0
    assert sum(places) == pytest.approx(1 - lost[0])
    assert np.cumsum(places[:-1]) == pytest.approx(np.array(lost[1:]) - lost[0])


@given(paths)
def test_falls_of_independent_values_are_a_product(above: list[float]) -> None:
    places = place_of_fall(above[0], above[1:])
    if places is None:
        assert above[0] <= 1e-9
        return
    expected = [float(np.prod(above[: step + 1])) * (1 - above[step + 1]) for step in range(len(above) - 1)]
    assert places == pytest.approx((*expected, float(np.prod(above))))
    assert sum(places) == pytest.approx(above[0])


def test_where_the_policy_is_lost_from_the_start_monte_carlo_is_silent() -> None:
    assert place_of_loss(1.0, [1.0, 1.0]) is None
    assert place_of_fall(0.0, [0.0, 0.0]) is None
    nearly = place_of_loss(0.9, [1.0, 1.0])
    assert nearly is not None
    assert sum(nearly) == pytest.approx(0.1)


def test_a_right_chain_is_not_cleared_by_its_outcome() -> None:
    """Its end is never lost, so what is lost says nothing of its steps; what fell on the way does."""
    above, lost = [1.0, 0.9, 0.05, 1.0], [0.0, 0.0, 0.0, 0.0]
    found = monte_carlo_claim(True, above, lost)
    assert found == place_of_fall(above[0], above[1:])
    assert found is not None
    assert found[1] > 0.8


def test_a_wrong_chain_is_judged_by_what_is_known_jointly() -> None:
    above, lost = [1.0, 0.9, 0.05, 0.0], [0.0, 0.1, 0.95, 1.0]
    assert monte_carlo_claim(False, above, lost) == place_of_loss(lost[0], lost[1:])
    assert monte_carlo_claim(False, above, None) == place_of_fall(above[0], above[1:])
    assert monte_carlo_claim(False, above, [None] * 4) == place_of_fall(above[0], above[1:])
    assert monte_carlo_claim(False, [1.0, None, 0.05, 0.0]) is None


@pytest.mark.parametrize("bad", [[0.5, 1.5], [float("nan"), 0.5], [0.5, -0.1]])
def test_what_is_no_probability_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        place_of_loss(bad[0], bad[1:])
    with pytest.raises(ValueError, match="from 0 to 1"):
        place_of_fall(bad[0], bad[1:])
