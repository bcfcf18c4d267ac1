"""The meaning of HTTP statuses, and the length of pauses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.openai.wire import ErrorKind, error_kind, pause, retry_after_seconds

NOON = 1_795_348_800.0  # Sun, 22 Nov 2026 12:00:00 GMT


@pytest.mark.parametrize(
    ("statuses", "kind"),
    [
        ((400, 413, 422), ErrorKind.REFUSED),
        ((429, 503), ErrorKind.BUSY),
        ((408, 409, 425, 500, 504, 599, 418, 204), ErrorKind.FAULT),
        ((401, 403, 404, 302, 307, 502), ErrorKind.GONE),
    ],
)
def test_what_a_status_means(statuses: tuple[int, ...], kind: ErrorKind) -> None:
    assert {error_kind(status) for status in statuses} == {kind}


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("7", 7),
        (" 0.5 ", 0.5),
        ("0", 0),
        ("100000", 120),
        ("inf", 120),
        ("Sun, 22 Nov 2026 12:00:09 GMT", 9),
        ("Sun, 22 Nov 2026 11:59:00 GMT", None),
        ("Sun, 22 Nov 99999999999 11:59:00 GMT", None),
        ("-1", None),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_how_long_a_server_asks_to_wait(asked: str, seconds: float | None) -> None:
    assert retry_after_seconds({"Retry-After": asked}, NOON) == seconds


@given(st.text())
def test_any_header_is_a_time_within_bounds_or_none(asked: str) -> None:
    seconds = retry_after_seconds({"Retry-After": asked}, NOON)
    assert seconds is None or 0 <= seconds <= 120


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_pauses_double_up_to_a_limit(failures: int, draw: float) -> None:
    longest = min(30.0, 0.5 * 2.0 ** min(failures - 1, 20))
    assert longest / 2 <= pause(failures, draw) <= longest
