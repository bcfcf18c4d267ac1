"""The intervals have their nominal coverage, by exact enumeration, and the published values."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from scipy.stats import beta, binom

from pipeline.estimators.intervals import clopper_pearson, jeffreys
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
