"""The pace of a run: computed from its course alone, never negative, and equal to the overall pace if the speed is constant."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.progress import LEAST_SECONDS, RECENT_SECONDS, Pace, pace


class Point(NamedTuple):
    seconds: float
    rollouts: int
    tokens: int


STEADY = [Point(0, 0, 0), Point(30, 0, 0), *(Point(30 + at, 10 * at, 1000 * at) for at in range(1, 200))]


def test_a_steady_run_has_one_pace_from_its_first_rollout_on() -> None:
    found = pace(STEADY, rollouts_expected=3000)
    assert (found.recent, found.overall) == (1000.0, 1000.0)
    assert found.seconds_left == pytest.approx(101.0)


def test_the_recent_pace_forgets_what_was_long_ago() -> None:
    slower = [*STEADY, Point(229 + RECENT_SECONDS, 2000, 199_000 + 6000)]
    found = pace(slower, 0)
    assert found.recent == pytest.approx(6000 / RECENT_SECONDS)
    assert found.overall is not None
    assert found.overall > 5 * 6000 / RECENT_SECONDS
    assert found.seconds_left is None


@pytest.mark.parametrize(
    "course",
    [[], [Point(3, 0, 0)], [Point(3, 5, 9)], [Point(0, 0, 0), Point(LEAST_SECONDS / 2, 5, 50)], [Point(1, 0, 0)] * 3],
)
def test_what_has_hardly_begun_has_no_pace(course: list[Point]) -> None:
    assert pace(course, 100) == Pace()


def test_no_rollouts_yet_leave_no_time_to_report() -> None:
    assert pace([Point(0, 0, 0), Point(50, 0, 0), Point(90, 0, 0)], 100).seconds_left is None


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.integers(0, 10**9), st.integers(0, 10**12)), max_size=40),
    st.integers(0, 10**10),
)
def test_no_course_gives_a_negative_pace(points: list[tuple[float, int, int]], expected: int) -> None:
    """Counters decrease if a worker is lost before its last counters were read."""
    times = sorted(seconds for seconds, _, _ in points)
    found = pace(
        [Point(at, rollouts, tokens) for at, (_, rollouts, tokens) in zip(times, points, strict=True)], expected
    )
    assert all(value is None or value >= 0 for value in (found.recent, found.overall, found.seconds_left))
