"""What step scores claim of the first error of a chain."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.witnesses.scores import first_below, place_of_fall

scores = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(tuple)


@given(scores)
def test_a_fall_is_a_distribution_over_the_places(found: tuple[float, ...]) -> None:
    votes = place_of_fall(found).votes
    assert len(votes) == len(found) + 1
    assert all(vote >= 0 for vote in votes)
    assert math.fsum(votes) == pytest.approx(1.0)
    assert votes[-1] == min(found)


@given(scores, st.floats(0.01, 1))
def test_the_first_low_score_is_the_place_or_there_is_none(found: tuple[float, ...], threshold: float) -> None:
    votes = first_below(found, threshold).votes
    low = [at for at, score in enumerate(found) if score < threshold]
    assert votes.index(1.0) == (low[0] if low else len(found))
    assert sum(votes) == 1.0
