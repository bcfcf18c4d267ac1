"""Votes of a known confusion: their probabilities, and how often two of them are equal."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from pipeline.judges.confusion import Confusion, correlated_votes

_shares = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))


@st.composite
def confusions(draw: st.DrawFn) -> Confusion:
    exact, early, late, none, alarm = draw(_shares)
    total = exact + early + late + none or 1.0
    return Confusion(exact=exact / total, early=early / total, late=late / total, false_alarm=alarm)


@given(confusions(), st.integers(1, 9), st.data())
def test_probabilities_are_a_distribution_with_the_confusions_shares(
    confusion: Confusion, steps: int, data: st.DataObject
) -> None:
    alarms = confusion.probabilities(steps, None)
    assert sum(alarms) == pytest.approx(1)
    assert alarms[:-1] == pytest.approx([confusion.false_alarm / steps] * steps)
    error = data.draw(st.integers(1, steps))
    found = confusion.probabilities(steps, error)
    assert len(found) == steps + 1
    assert min(found) >= 0
    assert sum(found) == pytest.approx(1)
    if 1 < error < steps:
        assert found[error - 1] == pytest.approx(confusion.exact, abs=1e-9)
        assert sum(found[: error - 1]) == pytest.approx(confusion.early, abs=1e-9)
        assert sum(found[error:steps]) == pytest.approx(confusion.late, abs=1e-9)


def test_what_cannot_be_goes_to_the_others_in_their_proportion() -> None:
    confusion = Confusion(exact=0.4, early=0.2, late=0.2, false_alarm=0.3)
    assert confusion.probabilities(3, 1) == pytest.approx((0.5, 0.125, 0.125, 0.25))
    assert confusion.probabilities(3, 3) == pytest.approx((0.125, 0.125, 0.5, 0.25))
    assert confusion.probabilities(1, 1) == pytest.approx((2 / 3, 1 / 3))
    assert Confusion(exact=0, early=1, late=0, false_alarm=0).probabilities(2, 1) == (1.0, 0.0, 0.0)
    assert confusion.probabilities(0, None) == (1.0,)


@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.6, 0.95])
def test_every_vote_has_the_probabilities_and_two_votes_the_correlation(correlation: float) -> None:
    probabilities = np.array([0.1, 0.0, 0.55, 0.35])
    draw, chains, votes = np.random.default_rng(7), 20_000, 4
    uniforms = draw.random((chains, votes, 2)).tolist()
    found = np.array([correlated_votes(probabilities.tolist(), correlation, each) for each in uniforms])
    possible = probabilities > 0
    for vote in range(votes):
        counts = np.bincount(found[:, vote], minlength=4)
        assert counts[~possible].sum() == 0
        assert chisquare(counts[possible], probabilities[possible] * chains).pvalue > 1e-3
    equal = correlation + (1 - correlation) * (probabilities**2).sum()
    for one, other in combinations(range(votes), 2):
        share = (found[:, one] == found[:, other]).mean()
        assert abs(share - equal) < 4 * np.sqrt(equal * (1 - equal) / chains) + 1e-9
    # The correlation of each position's indicator is that of the settings too.
    for position in np.flatnonzero(possible):
        says = found == position
        assert np.corrcoef(says[:, 0], says[:, 3])[0, 1] == pytest.approx(correlation, abs=0.04)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda each: sum(each) > 1e-6),
    st.floats(0, 0.999),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=8),
)
def test_more_votes_leave_the_first_ones_and_no_vote_is_impossible(
    weights: list[float], correlation: float, uniforms: list[tuple[float, float]]
) -> None:
    probabilities = [weight / sum(weights) for weight in weights]
    votes = correlated_votes(probabilities, correlation, uniforms)
    assert len(votes) == len(uniforms)
    assert all(probabilities[vote] > 0 for vote in votes)
    for count in range(len(uniforms)):
        assert correlated_votes(probabilities, correlation, uniforms[:count]) == votes[:count]
