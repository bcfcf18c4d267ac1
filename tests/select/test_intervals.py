"""Bootstrap intervals, checked against theory."""

import numpy as np
import pytest

from pipeline.core.statistics import Interval, bootstrap


def test_an_interval_is_as_wide_as_the_normal_law_has_it() -> None:
    hits = np.zeros((400, 1))
    hits[:120] = 1.0
    (estimate,) = bootstrap(hits, seed=1)
    sd = (0.3 * 0.7 / 400) ** 0.5
    assert estimate.value == pytest.approx(0.3)
    # A quantile out of 2,000 resamples is off by 0.06 sd.
    assert estimate.low == pytest.approx(0.3 - 1.96 * sd, abs=0.3 * sd)
    assert estimate.high == pytest.approx(0.3 + 1.96 * sd, abs=0.3 * sd)


def test_columns_are_resampled_alike_so_differences_are_paired() -> None:
    one = np.random.default_rng(2).random(100)
    columns = np.stack([one, one - 0.25, one - (one - 0.25)], axis=1)
    first, second, difference = bootstrap(columns, seed=5)
    assert first.low is not None
    assert second.low == pytest.approx(first.low - 0.25)
    assert (difference.low, difference.high) == pytest.approx((0.25, 0.25))


def test_a_seed_gives_its_interval_again() -> None:
    values = np.random.default_rng(0).random((50, 2))
    assert bootstrap(values, seed=7) == bootstrap(values, seed=7)
    assert bootstrap(values, seed=7) != bootstrap(values, seed=8)


def test_one_problem_reports_no_interval() -> None:
    assert bootstrap(np.array([[0.5]]), seed=0) == [Interval(value=0.5, low=None, high=None)]
