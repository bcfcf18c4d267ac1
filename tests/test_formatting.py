"""A status as text: one line of a log that holds what is known; and the pace of a run, computed from its course."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.formatting import (
    format_cost,
    format_count,
    format_number,
    format_range,
    format_unfinished,
    format_verdicts,
    printable,
    status_items,
    status_line,
)
from pipeline.core.progress import LEAST_SECONDS, RECENT_SECONDS, Load, Pace, SpeedSample, Status, Verdicts, pace

STEADY = Pace(recent=3_000.4, overall=2_900.0, seconds_left=60.0)


@pytest.mark.parametrize(
    ("status", "pace", "seconds", "line"),
    [
        (Status(stage="reading the input"), Pace(), 0.2, "reading the input 0:00:00"),
        (Status(stage="starting", units=3), Pace(), 61, "starting 0:01:01 | units 0 of 3 finished"),
        (
            Status(stage="starting", units=3, rollouts_before=1_200),
            Pace(),
            1,
            "starting 0:00:01 | units 0 of 3 finished | rollouts 0, 1,200 from earlier starts",
        ),
        (
            Status(stage="labelling", units=3, units_done=1, prefixes=40, prefixes_decided=9, rollouts=1500,
                   rollouts_expected=4500, rollouts_most=9000, tokens=90_000, load=Load(running=128, waiting=70, grading=2),
                   verdicts=Verdicts(correct=700, incorrect=790, no_answer=10, truncated=3), device_seconds=1800.0, workers=2),
            STEADY,
            30,
            "labelling 0:00:30 | units 1 of 3 finished | rollouts 1,500 of 4,500 expected so far, at most 9,000 | "
            "3,000 tokens/s, 2,900 since the start | money 1.50 for 0.50 device hours | left about 0:01:00",
        ),
        (
            Status(stage="searching", units=1, counted="problems", rollouts=2, tokens=9,
                   load=Load(running=3, scoring=1_200)),
            Pace(recent=3.0, overall=3.0),
            1,
            "searching 0:00:01 | units 0 of 1 finished | problems 2 | 3 tokens/s, 3 since the start",
        ),
    ],
)  # fmt: skip
def test_progress_is_one_line(status: Status, pace: Pace, seconds: float, line: str) -> None:
    assert status_line(status, pace, seconds, 3.0) == line


def test_a_panel_has_items_that_a_log_leaves_out() -> None:
    status = Status(
        stage="labelling", units=1, rollouts=12, tokens=9, share_of_bound=0.712, prefixes=40, prefixes_decided=9,
        load=Load(running=3, scoring=1_200), verdicts=Verdicts(ungraded=11, aborted=1),
    )  # fmt: skip
    items = dict(status_items(status, Pace(recent=3.0, overall=3.0), None))
    assert items["hardware"] == "71 % of the hardware's upper bound"
    assert items["requests"] == "3 running, 0 waiting, 1,200 waiting for the scorer"
    assert items["verdicts"] == "0.0 % correct, 0.0 % incorrect, 92 % ungraded, 8.3 % aborted"
    assert items["cut"] == "0.0 % of rollouts, by sampling.max_tokens"
    assert items["prefixes"] == "9 of 40 done, of the units begun"
    assert "prefixes" not in dict(status_items(replace(status, prefixes_decided=0), Pace(), None))


def test_time_left_follows_from_prefixes_where_rounds_add_rollouts() -> None:
    course = [point(at, 10 * at, 0)._replace(prefixes_decided=at) for at in (0, 100)]
    status = Status(stage="", rollouts_expected=1_010)
    assert pace(course, status).seconds_left == pytest.approx(1.0)
    assert pace(course, replace(status, prefixes=400)).seconds_left == pytest.approx(300.0)
    assert pace(course, replace(status, prefixes=400, rollouts_most=3_000)).seconds_left == pytest.approx(200.0)
    assert pace(course, replace(status, prefixes=400, rollouts_most=900)).seconds_left == 0.0


def test_without_a_price_there_is_no_money() -> None:
    assert "money" not in status_line(Status(stage="labelling", device_seconds=99.0), Pace(), 1, None)
    assert format_cost(1.0, 0.0) == "0.00 for 1.00 device hours"


@pytest.mark.parametrize(
    ("number", "digits", "shown"),
    [
        (0, 2, "0.00"), (0.00182, 2, "0.0018"), (0.5, 2, "0.50"), (0.999, 2, "1.00"), (-0.0123, 2, "-0.012"),
        (1234.567, 2, "1,234.57"), (0.00001, 2, "0.000010"), (1e-300, 2, "0.000000000"), (0.4, 0, "0"), (2345.0, 0, "2,345"),
    ],
)  # fmt: skip
def test_of_small_figures_the_first_digits_are_reported(number: float, digits: int, shown: str) -> None:
    assert format_number(number, digits) == shown


def test_a_small_cost_is_not_nothing() -> None:
    assert format_cost(0.0018, 1.5) == "0.0027 for 0.0018 device hours"


def test_a_range_whose_ends_are_one_is_one_figure() -> None:
    assert format_range(0.0012, 3.0, 2) == "0.0012 to 3.00"
    assert format_range(120, 120) == "120"


@pytest.mark.parametrize(
    ("count", "noun", "shown"),
    [
        (0, "unit", "0 units"), (1, "unit", "1 unit"), (1234, "unit", "1,234 units"),
        (1, "distinct prefix", "1 distinct prefix"), (2, "distinct prefix", "2 distinct prefixes"),
    ],
)  # fmt: skip
def test_a_noun_agrees_with_its_count(count: int, noun: str, shown: str) -> None:
    assert format_count(count, noun) == shown


def test_the_verb_agrees_with_the_unfinished_units() -> None:
    assert format_unfinished(1, 3) == "1 of 3 units is unfinished"
    assert format_unfinished(2, 3_000) == "2 of 3,000 units are unfinished"


_count = st.integers(0, 10**12)


@given(
    st.builds(
        Status,
        stage=st.text(),
        units=_count, units_done=_count, prefixes=_count, rollouts=_count, rollouts_before=_count, tokens=_count,
        verdicts=st.builds(Verdicts, correct=_count, incorrect=_count, no_answer=_count, truncated=_count),
        load=st.builds(Load, running=_count, waiting=_count, grading=_count),
    ),
    st.floats(0, 10**7),
)  # fmt: skip
def test_any_progress_is_a_line_that_a_terminal_can_show(status: Status, seconds: float) -> None:
    line = status_line(status, STEADY, seconds, 3.0)
    assert line.isprintable()
    assert len(line) < 420 + len(status.stage)


@given(st.text())
def test_printable_text_obeys_nothing(text: str) -> None:
    assert printable(text).isprintable()


@given(st.builds(Verdicts, correct=_count, incorrect=_count, ungraded=_count))
def test_shares_never_leave_out_correct_and_incorrect(verdicts: Verdicts) -> None:
    assert "correct" in format_verdicts(verdicts)
    assert "incorrect" in format_verdicts(verdicts)
    assert "no answer" not in format_verdicts(verdicts)


def point(seconds: float, rollouts: int, tokens: int) -> SpeedSample:
    return SpeedSample(seconds, 0, 0, rollouts, tokens, 0, 0, 0, 0, 0.0)


COURSE = [point(0, 0, 0), point(30, 0, 0), *(point(30 + at, 10 * at, 1000 * at) for at in range(1, 200))]


def test_a_steady_run_has_one_pace_from_its_first_rollout_on() -> None:
    found = pace(COURSE, Status(stage="", rollouts_expected=3000))
    assert (found.recent, found.overall) == (1000.0, 1000.0)
    assert found.seconds_left == pytest.approx(101.0)


def test_the_recent_pace_forgets_what_was_long_ago() -> None:
    slower = [*COURSE, point(229 + RECENT_SECONDS, 2000, 199_000 + 6000)]
    found = pace(slower, Status(stage=""))
    assert found.recent == pytest.approx(6000 / RECENT_SECONDS)
    assert found.overall is not None
    assert found.overall > 5 * 6000 / RECENT_SECONDS
    assert found.seconds_left is None


@pytest.mark.parametrize(
    "course",
    [[], [point(3, 0, 0)], [point(3, 5, 9)], [point(0, 0, 0), point(LEAST_SECONDS / 2, 5, 50)], [point(1, 0, 0)] * 3],
)
def test_what_has_hardly_begun_has_no_pace(course: list[SpeedSample]) -> None:
    assert pace(course, Status(stage="", rollouts_expected=100)) == Pace()


def test_no_rollouts_yet_leave_no_time_to_report() -> None:
    course = [point(0, 0, 0), point(50, 0, 0), point(90, 0, 0)]
    assert pace(course, Status(stage="", rollouts_expected=100)).seconds_left is None


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.integers(0, 10**9), st.integers(0, 10**12)), max_size=40),
    st.integers(0, 10**10),
    st.integers(0, 10**10),
)
def test_no_course_gives_a_negative_pace(points: list[tuple[float, int, int]], expected: int, most: int) -> None:
    """Counters decrease if a worker is lost before its last counters were read."""
    times = sorted(seconds for seconds, _, _ in points)
    found = pace(
        [point(at, rollouts, tokens) for at, (_, rollouts, tokens) in zip(times, points, strict=True)],
        Status(stage="", rollouts_expected=expected, rollouts_most=most),
    )
    assert all(value is None or value >= 0 for value in (found.recent, found.overall, found.seconds_left))
