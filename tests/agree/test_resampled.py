"""Bootstrap intervals have the expected width, are reproducible, and are absent without variation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.statistics import Floats, Interval, Resampling, share


def rate(sums: Floats) -> Floats:
    return share(sums[..., 0], sums[..., 1])


def chains(hits: list[int]) -> Floats:
    return np.array([[hit, 1.0] for hit in hits]).reshape(-1, 2)


def test_an_interval_of_a_share_is_about_that_of_the_normal_law() -> None:
    found = Resampling(replicates=20_000, seed=1, confidence=0.95).estimate(chains([1] * 120 + [0] * 80), rate)
    reach = 1.96 * (0.6 * 0.4 / 200) ** 0.5
    assert found.value == 0.6
    assert found.low is not None
    assert found.high is not None
    assert abs(found.low - (0.6 - reach)) < 0.006
    assert abs(found.high - (0.6 + reach)) < 0.006


def test_whole_chains_are_drawn_not_their_steps() -> None:
    resampling = Resampling(replicates=20_000, seed=1, confidence=0.95)
    found = resampling.estimate(np.array([[10.0, 10.0]] * 10 + [[0.0, 10.0]] * 10), rate)
    assert found == resampling.estimate(chains([1] * 10 + [0] * 10), rate)


@given(st.lists(st.integers(0, 1), max_size=20), st.integers(0, 5))
def test_the_same_seed_gives_the_same_interval_around_the_value(hits: list[int], seed: int) -> None:
    resampling = Resampling(replicates=200, seed=seed, confidence=0.9)
    found = resampling.estimate(chains(hits), rate)
    assert found == resampling.estimate(chains(hits[::-1]), rate)
    if found.low is not None:
        assert found.high is not None
        assert 0 <= found.low < found.high <= 1
    elif hits:
        assert found.value == sum(hits) / len(hits)
    else:
        assert found == Interval(value=None, low=None, high=None)


@given(st.sampled_from([0, 1]), st.integers(1, 30))
def test_chains_that_all_say_the_same_have_no_interval(hit: int, count: int) -> None:
    found = Resampling(replicates=100, seed=0, confidence=0.95).estimate(chains([hit] * count), rate)
    assert found == Interval(value=hit, low=None, high=None)
