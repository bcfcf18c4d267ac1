"""The threshold with the highest F1 is the best of all, ties are reported, and bootstrap intervals have their width."""

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.agree.judged import BestThreshold, best_threshold
from pipeline.analysis.comparison import bootstrap
from pipeline.core.statistics import Floats, Interval, share

Case = tuple[list[float], int]

GRID = [step / 16 for step in range(17)]
"""Few values, so that ties are common."""


def case(scores: st.SearchStrategy[float]) -> st.SearchStrategy[Case]:
    return st.lists(scores, min_size=1, max_size=5).flatmap(
        lambda drawn: st.tuples(st.just(drawn), st.integers(-1, len(drawn) - 1))
    )


CASES = st.lists(case(st.sampled_from(GRID)), min_size=1, max_size=8)


def naive_f1(chains: Sequence[Case], threshold: float) -> float | None:
    """F1 as its definition says it, chain by chain."""
    hits: dict[bool, list[bool]] = {True: [], False: []}
    for scores, truth in chains:
        error = next((at for at, score in enumerate(scores) if score <= threshold), -1)
        hits[truth != -1].append(error == truth)
    if not hits[True] or not hits[False]:
        return None
    found, cleared = (sum(each) / len(each) for each in hits.values())
    return 2 * found * cleared / (found + cleared) if found + cleared else 0.0


def best(chains: Sequence[Case]) -> BestThreshold:
    found = best_threshold(chains)
    assert found is not None
    return found


@given(CASES)
def test_no_threshold_has_a_higher_f1(chains: list[Case]) -> None:
    found = best_threshold(chains)
    errors = [truth for _, truth in chains]
    if -1 not in errors or errors.count(-1) == len(errors):
        assert found is None
        return
    assert found is not None
    everywhere = [(step + half) / 16 for step in range(16) for half in (0, 0.5)]
    assert found.f1 == max(naive_f1(chains, threshold) or 0.0 for threshold in everywhere)
    assert naive_f1(chains, found.threshold) == found.f1
    assert 0 <= found.low <= found.threshold < found.high <= 1


@given(CASES)
def test_all_of_the_range_and_nothing_beside_it_has_that_f1(chains: list[Case]) -> None:
    found = best_threshold(chains)
    if found is None:
        return
    for threshold in (found.low, math.nextafter(found.high, 0)):
        assert math.isclose(naive_f1(chains, threshold) or 0.0, found.f1, abs_tol=1e-12)
    for beside in (math.nextafter(found.low, -1), found.high):
        if 0 <= beside < 1:
            assert (naive_f1(chains, beside) or 0.0) < found.f1 - 1e-12


@given(CASES)
def test_ranges_that_tie_are_counted_and_the_widest_is_taken(chains: list[Case]) -> None:
    found = best_threshold(chains)
    if found is None:
        return
    reached = [math.isclose(naive_f1(chains, step / 16) or 0.0, found.f1, abs_tol=1e-12) for step in range(16)]
    runs = [len(run) for run in "".join("x" if is_best else " " for is_best in reached).split()]
    assert found.others == len(runs) - 1
    assert (found.high - found.low) * 16 == max(runs)


def test_a_threshold_between_two_scores_is_in_their_middle() -> None:
    found = best([([0.9, 0.2], 1), ([0.8, 0.7], -1)])
    assert (found.low, found.high, found.f1, found.others) == (0.2, 0.7, 1.0, 0)
    assert math.isclose(found.threshold, 0.45)


def test_neighbouring_numbers_have_a_threshold_between_them() -> None:
    low = 0.5
    high = float(np.nextafter(low, 1))
    found = best([([low], 0), ([high], -1)])
    assert (found.f1, found.threshold) == (1.0, low)


def test_without_errors_or_with_errors_alone_there_is_no_best_threshold() -> None:
    assert best_threshold([([0.5], -1)]) is None
    assert best_threshold([([0.5], 0)]) is None
    assert best_threshold([]) is None


def rate(sums: Floats) -> Floats:
    return share(sums[..., 0], sums[..., 1])


def chains(hits: list[int]) -> Floats:
    return np.array([[hit, 1.0] for hit in hits]).reshape(-1, 2)


def test_an_interval_of_a_share_is_about_that_of_the_normal_law() -> None:
    found = bootstrap(chains([1] * 120 + [0] * 80), rate, seed=1, resamples=20_000)
    reach = 1.96 * (0.6 * 0.4 / 200) ** 0.5
    assert found.value == 0.6
    assert found.low is not None
    assert found.high is not None
    assert abs(found.low - (0.6 - reach)) < 0.006
    assert abs(found.high - (0.6 + reach)) < 0.006


def test_whole_chains_are_drawn_not_their_steps() -> None:
    found = bootstrap(np.array([[10.0, 10.0]] * 10 + [[0.0, 10.0]] * 10), rate, seed=1)
    assert found == bootstrap(chains([1] * 10 + [0] * 10), rate, seed=1)


@given(st.lists(st.integers(0, 1), max_size=20), st.integers(0, 5))
def test_the_same_seed_gives_the_same_interval_around_the_value(hits: list[int], seed: int) -> None:
    found = bootstrap(chains(hits), rate, seed=seed, resamples=200)
    assert found == bootstrap(chains(hits[::-1]), rate, seed=seed, resamples=200)
    if found.low is not None:
        assert found.high is not None
        assert 0 <= found.low < found.high <= 1
    elif hits:
        assert found.value == sum(hits) / len(hits)
    else:
        assert found == Interval(value=None, low=None, high=None)


@given(st.sampled_from([0, 1]), st.integers(1, 30))
def test_chains_that_all_say_the_same_have_no_interval(hit: int, count: int) -> None:
    found = bootstrap(chains([hit] * count), rate, resamples=100)
    assert found == Interval(value=hit, low=None, high=None)
