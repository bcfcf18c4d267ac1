"""Intervals cover the truth if prefixes of a problem are alike, and are missing if they are undefined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pipeline.core.statistics import Interval, jackknife, mean, ratio, sums_of

numbers = st.floats(-1, 1).map(lambda number: round(number, 6))


@given(st.lists(st.tuples(st.integers(0, 5), numbers), min_size=1, max_size=40))
def test_a_mean_is_the_mean_and_lies_in_its_interval(rows: list[tuple[int, float]]) -> None:
    problems = np.array([problem for problem, _ in rows])
    column = np.array([number for _, number in rows])
    found = mean(problems, column)
    assert found.value == pytest.approx(column.mean())
    if len(set(problems.tolist())) == 1:
        assert found.low is None
    else:
        assert found.low is not None
        assert found.high is not None
        assert found.low - 1e-12 <= column.mean() <= found.high + 1e-12


@given(hnp.arrays(np.float64, st.integers(2, 30), elements=numbers))
def test_with_a_prefix_per_problem_it_is_students_interval(column: np.ndarray) -> None:
    from scipy import stats

    found = mean(np.arange(len(column)), column)
    reach = stats.t.ppf(0.975, len(column) - 1) * column.std(ddof=1) / np.sqrt(len(column))
    assert found.high == pytest.approx(column.mean() + reach, abs=1e-9)
    assert found.low == pytest.approx(column.mean() - reach, abs=1e-9)


def test_intervals_hold_the_truth_where_prefixes_of_a_problem_are_alike() -> None:
    rng = np.random.default_rng(1)
    held = 0
    trials, n_problems, per_problem = 400, 40, 8
    problems = np.repeat(np.arange(n_problems), per_problem)
    for _ in range(trials):
        column = np.repeat(rng.normal(size=n_problems), per_problem) + 0.3 * rng.normal(size=len(problems))
        found = mean(problems, column)
        held += not found.has_value
    # 95 %, give or take three standard deviations. If prefixes were treated as independent, it would be half of that.
    assert 0.917 < held / trials < 0.983


def test_what_is_not_defined_has_no_figure() -> None:
    assert jackknife(np.zeros((0, 2)), ratio) == Interval()
    assert jackknife(np.array([[1.0, 0.0], [2.0, 0.0]]), ratio) == Interval()
    assert jackknife(np.array([[1.0, 2.0]]), ratio) == Interval(value=0.5)
    # Without the first problem there is nothing left: no interval.
    assert jackknife(np.array([[1.0, 2.0], [0.0, 0.0]]), ratio) == Interval(value=0.5)


def test_problems_without_rows_are_none() -> None:
    assert sums_of(np.array([0, 3, 3]), [np.array([1.0, 2.0, 3.0])]).tolist() == [[1.0], [5.0]]
