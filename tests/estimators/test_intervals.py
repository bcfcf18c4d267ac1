"""Intervals have their coverage and the published values; so have those under a stopping rule, whose values are unbiased."""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import mp
from scipy.stats import beta, binom

from pipeline.estimators.intervals import clopper_pearson, jeffreys
from pipeline.estimators.paths import stopping_interval, unbiased_value
from tests import strategies as our

BOTH = st.sampled_from([clopper_pearson, jeffreys])
CONFIDENCE = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])
Rule = Callable[[int, int, float], tuple[float, float]]
GRID = np.linspace(0, 1, 401)


def coverage(rule: Rule, n: int, confidence: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """P(the interval contains p) for every p of the grid: the sum over all outcomes c whose interval contains p."""
    total = np.zeros_like(GRID)
    for c in range(n + 1):
        low, high = rule(c, n, confidence)
        total += binom.pmf(c, n, GRID) * ((low <= GRID) & (high >= GRID))
    return total


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_clopper_pearson_covers_every_probability(confidence: float) -> None:
    for n in range(1, 31):
        assert coverage(clopper_pearson, n, confidence).min() >= confidence - 1e-12


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_jeffreys_covers_on_average_and_is_shorter(confidence: float) -> None:
    for n in range(5, 31):
        assert abs(coverage(jeffreys, n, confidence).mean() - confidence) < 0.03
        for c in range(1, n):
            (low, high), (wide_low, wide_high) = jeffreys(c, n, confidence), clopper_pearson(c, n, confidence)
            assert wide_low < low < high < wide_high


@pytest.mark.parametrize(
    ("c", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.3085),  # 1 - 0.025^(1/10)
        (10, 10, 0.6915, 1.0),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (81, 263, 0.2527, 0.3676),  # Newcombe 1998, table I
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_clopper_pearson_as_published(c: int, n: int, low: float, high: float) -> None:
    assert clopper_pearson(c, n, 0.95) == pytest.approx((low, high), abs=5.1e-5)


@pytest.mark.parametrize(("c", "n"), [(0, 7), (1, 7), (3, 7), (6, 12), (5, 30), (99, 100), (200, 200)])
def test_jeffreys_bounds_cut_off_half_the_error_each(c: int, n: int) -> None:
    """Checked by integrating the density itself, x^(c - 1/2) (1 - x)^(n - c - 1/2) / B, at 30 digits."""
    low, high = jeffreys(c, n, 0.95)
    a, b = c + mp.mpf(1) / 2, n - c + mp.mpf(1) / 2
    if c:
        assert float(mp.betainc(a, b, 0, low, regularized=True)) == pytest.approx(0.025, rel=1e-9)
    if c < n:
        assert float(mp.betainc(a, b, high, 1, regularized=True)) == pytest.approx(0.025, rel=1e-9)


@given(our.counts, CONFIDENCE)
def test_jeffreys_bounds_are_beta_quantiles_closed_at_the_ends(counts: tuple[int, int], confidence: float) -> None:
    c, n = counts
    low, high = jeffreys(c, n, confidence)
    posterior = beta(c + 0.5, n - c + 0.5)
    assert low == pytest.approx(posterior.ppf((1 - confidence) / 2) if c else 0.0, abs=1e-9)
    assert high == pytest.approx(posterior.ppf((1 + confidence) / 2) if c < n else 1.0, abs=1e-9)


@given(our.counts, CONFIDENCE)
def test_clopper_pearson_leaves_half_the_error_on_each_side(counts: tuple[int, int], confidence: float) -> None:
    c, n = counts
    low, high = clopper_pearson(c, n, confidence)
    if c:
        assert binom.sf(c - 1, n, low) == pytest.approx((1 - confidence) / 2, rel=1e-6)
    if c < n:
        assert binom.cdf(c, n, high) == pytest.approx((1 - confidence) / 2, rel=1e-6)


@given(BOTH, our.counts, CONFIDENCE)
def test_an_interval_holds_its_estimate_and_mirrors(rule: Rule, counts: tuple[int, int], confidence: float) -> None:
    c, n = counts
    low, high = rule(c, n, confidence)
    assert 0 <= low <= c / n <= high <= 1
    assert low < high
    assert rule(n - c, n, confidence) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(BOTH, st.integers(1, 60), CONFIDENCE)
def test_bounds_rise_with_every_success(rule: Rule, n: int, confidence: float) -> None:
    for (low, high), (next_low, next_high) in pairwise(rule(c, n, confidence) for c in range(n + 1)):
        assert low < next_low
        assert high < next_high


@given(BOTH, our.counts)
def test_more_confidence_is_wider_and_more_trials_are_narrower(rule: Rule, counts: tuple[int, int]) -> None:
    c, n = counts
    bounds = [rule(c, n, confidence) for confidence in (0.5, 0.8, 0.95, 0.99)]
    assert all(next_low <= low and high <= next_high for (low, high), (next_low, next_high) in pairwise(bounds))
    low, high = rule(c, n, 0.95)
    more_low, more_high = rule(4 * c, 4 * n, 0.95)
    assert more_high - more_low < high - low


@pytest.mark.parametrize("rule", [clopper_pearson, jeffreys])
def test_without_trials_everything_is_possible(rule: Rule) -> None:
    assert rule(0, 0, 0.95) == (0.0, 1.0)


@pytest.mark.parametrize("rule", [clopper_pearson, jeffreys])
@pytest.mark.parametrize(("c", "n"), [(-1, 3), (4, 3), (1, 0), (0, -1)])
def test_impossible_counts_are_refused(rule: Rule, c: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"{c} successes in {n} trials"):
        rule(c, n, 0.95)


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
