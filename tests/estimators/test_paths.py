"""Unbiased values and interval coverage under a stopping rule, by enumeration of all sequences."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import comb

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline.estimators.intervals import clopper_pearson
from pipeline.estimators.paths import stopping_interval, unbiased_value

Point = tuple[int, int]
"""How many rounds were seen, and how many trials were right by then."""

rules = st.tuples(st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(any), st.integers(1, 5))
"""Graded trials in each round, and the successes to stop at; rounds without a grade are among them."""


def ends(rounds: Sequence[int]) -> tuple[int, ...]:
    return tuple(sum(rounds[: i + 1]) for i in range(len(rounds)))


def points(rounds: Sequence[int], successes: int) -> dict[Point, int]:
    """The number of sequences to each stopping point, ordered from high to low probability."""
    going, stopped = {0: 1}, Counter[Point]()
    for seen, size in enumerate(rounds, 1):
        grown = Counter[int]()
        for correct, ways in going.items():
            for more in range(size + 1):
                grown[correct + more] += ways * comb(size, more)
        going = {correct: ways for correct, ways in grown.items() if correct < successes and seen < len(rounds)}
        stopped.update({(seen, correct): ways for correct, ways in grown.items() if correct not in going})
    return dict(sorted(stopped.items(), key=lambda item: (item[0][1] >= successes, -item[0][0], item[0][1])))


def probability(rounds: Sequence[int], point: Point, ways: int, p: Fraction) -> Fraction:
    seen, correct = point
    return ways * p**correct * (1 - p) ** (sum(rounds[:seen]) - correct)


@given(rules)
def test_the_value_is_the_share_of_paths_that_begin_with_a_success(rule: tuple[list[int], int]) -> None:
    """Each path to a point is the start of equally many of the sequences of all trials, so these may be counted instead."""
    rounds, successes = rule
    assume(sum(rounds) <= 10)
    paths, beginning = Counter[Point](), Counter[Point]()
    for sequence in product((0, 1), repeat=sum(rounds)):
        right = [sum(sequence[:end]) for end in ends(rounds)]
        seen = next((i for i, so_far in enumerate(right, 1) if so_far >= successes), len(rounds))
        paths[seen, right[seen - 1]] += 1
        beginning[seen, right[seen - 1]] += sequence[0]
    for (seen, correct), ways in paths.items():
        value = unbiased_value(ends(rounds[:seen]), successes, correct)
        assert value == float(Fraction(beginning[seen, correct], ways))


@given(rules, st.sampled_from([0.8, 0.95]))
def test_bounds_cut_off_exactly_half_the_error_and_rise_in_the_order_of_points(
    rule: tuple[list[int], int], confidence: float
) -> None:
    rounds, successes = rule
    ordered = list(points(rounds, successes).items())
    tail = (1 - confidence) / 2
    intervals = []
    for place, ((seen, correct), _) in enumerate(ordered):
        low, high = stopping_interval(ends(rounds[:seen]), successes, correct, confidence)
        intervals.append((low, high))
        lower = sum(probability(rounds, point, ways, Fraction(high)) for point, ways in ordered[: place + 1])
        higher = sum(probability(rounds, point, ways, Fraction(low)) for point, ways in ordered[place:])
        assert float(higher) == pytest.approx(tail if place else 1, rel=1e-6)
        assert float(lower) == pytest.approx(tail if place < len(ordered) - 1 else 1, rel=1e-6)
    assert all(low < next_low and high < next_high for (low, high), (next_low, next_high) in pairwise(intervals))


@pytest.mark.parametrize("trial", [1, 2, 7, 99_999])
def test_a_first_success_at_the_nth_trial(trial: int) -> None:
    one_by_one = range(1, trial + 1)
    assert unbiased_value(one_by_one, 1, 1) == (1 if trial == 1 else 0)
    high = 1 - 0.025 ** (1 / (trial - 1)) if trial > 1 else 1
    assert stopping_interval(one_by_one, 1, 1, 0.95) == pytest.approx((1 - 0.975 ** (1 / trial), high), rel=1e-6)


@pytest.mark.parametrize("trials", [1, 8, 99_999])
def test_no_success_at_all(trials: int) -> None:
    one_by_one = range(1, trials + 1)
    assert unbiased_value(one_by_one, 3, 0) == 0
    assert stopping_interval(one_by_one, 3, 0, 0.95) == pytest.approx((0, 1 - 0.025 ** (1 / trials)), rel=1e-6)


@pytest.mark.parametrize(("boundaries", "correct"), [((8,), 5), ((1, 2, 3, 8), 2), ((2, 2), 2)])
def test_where_the_rule_did_not_bind_all_is_as_with_a_fixed_number(boundaries: tuple[int, ...], correct: int) -> None:
    n = boundaries[-1]
    assert unbiased_value(boundaries, 3, correct) == correct / n
    assert stopping_interval(boundaries, 3, correct, 0.9) == clopper_pearson(correct, n, 0.9)


@pytest.mark.parametrize(
    ("before", "graded", "correct"), [(99_998, 99_999, 1000), (98_999, 99_999, 1300), (98_999, 99_999, 1999)]
)
def test_a_thousand_successes_among_a_hundred_thousand_trials(before: int, graded: int, correct: int) -> None:
    """At this size the share of successes is near the value, and Clopper and Pearson's interval near the exact one."""
    assert unbiased_value((before, graded), 1000, correct) == pytest.approx(
        min(correct / graded, 999 / before), rel=0.01
    )
    low, high = stopping_interval((before, graded), 1000, correct, 0.95)
    assert low < unbiased_value((before, graded), 1000, correct) < high
    assert (low, high) == pytest.approx(clopper_pearson(1000, before, 0.95), rel=0.1)


@pytest.mark.parametrize(
    ("boundaries", "correct"), [((), 0), ((0,), 0), ((3,), 4), ((3,), -1), ((3, 4), 3), ((3, 3), 2), ((4, 3), 1)]
)
def test_a_point_at_which_no_sequence_stops_is_refused(boundaries: tuple[int, ...], correct: int) -> None:
    with pytest.raises(ValueError, match=f"stops at {correct} correct"):
        unbiased_value(boundaries, 2, correct)
    with pytest.raises(ValueError, match=f"stops at {correct} correct"):
        stopping_interval(boundaries, 2, correct, 0.95)
