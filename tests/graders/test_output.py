"""Outputs are compared by the rules of programming judges."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graders.code.child_process import memory_file
from pipeline.graders.code.output import PIECE_CHARS, pieces, same_output, same_value
from pipeline.graders.code.wire import text_pieces

TOLERANCE = 1e-6
lines = st.lists(st.text(alphabet="ab1 .-", max_size=8), max_size=5)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ("3\n", "3", True),
        ("1 2 \r\n3\n\n", "1 2\n3", True),
        ("1 2", "1  2", True),
        ("0.5", "0.50000001", True),
        ("0.5", ".5", True),
        ("1e3", "1000", True),
        ("x 0.5", "x 0.50", False),
        ("0.5", "0.51", False),
        ("5", "5.0", False),
        ("5", "05", False),
        ("10000000", "10000001", False),
        ("  *\n***", " *\n***", False),
        ("a b", "a  b", False),
        ("1\n2", "1 2", False),
        ("1\n2", "1\n2\n3", False),
        ("Yes", "YES", False),
        ("", "\n\n", True),
        ("1.0", "nan", False),
    ],
)
def test_outputs(wanted: str, found: str, same: bool) -> None:
    assert same_output(wanted, found, tolerance=TOLERANCE) is same


def test_without_tolerance_decimals_are_exact_numbers() -> None:
    assert same_output("0.50", "0.5", tolerance=0.0)
    assert not same_output("0.5", "0.50000001", tolerance=0.0)


@given(lines)
def test_line_ends_and_blanks_at_them_never_matter(content: list[str]) -> None:
    wanted = "\n".join(content)
    assert same_output(wanted, "".join(f"{line} \t\r\n" for line in content) + "\n", tolerance=TOLERANCE)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_two_outputs_are_compared(one: str, other: str) -> None:
    assert same_output(one, other, tolerance=0.0) in (True, False)
    assert same_output(one, one, tolerance=0.0)


def as_defined(text: str) -> list[str]:
    """The lines that count, found in the whole text at once."""
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n").split("\n")


@given(st.text(alphabet="a \r\n\x0b\x1c\x85\u2028", max_size=12), st.text(alphabet="a \r\n\x85", max_size=12))
def test_pieces_of_any_length_make_the_same_lines(one: str, other: str) -> None:
    same = as_defined(one) == as_defined(other)
    for length in (1, 2, 3, 100):
        cut = [one[start : start + length] for start in range(0, len(one), length)]
        assert same_output(cut, [other], tolerance=0.0) is same
        assert same_output(pieces(other), cut, tolerance=0.0) is same


@pytest.mark.parametrize("count", [2 * PIECE_CHARS, PIECE_CHARS // 3])
def test_numbers_of_a_long_line_are_compared_one_by_one(count: int) -> None:
    line, other = "1.50 " * count, "1.5\u2003\x1f " * count
    assert same_output(pieces(line), pieces(other), tolerance=TOLERANCE)
    assert not same_output(pieces(line), pieces(f"{other}2"), tolerance=TOLERANCE)
    assert not same_output(pieces(line), pieces(f"{other[:-6]}1.6"), tolerance=TOLERANCE)


@pytest.mark.parametrize("text", ["", "\ud800" * 99_999, "a\ud83d\ude00\r\n" * 50_000, "\u20ac" * 99_999])
def test_a_file_in_pieces_is_its_text(text: str) -> None:
    with memory_file([text.encode("utf-8", "surrogatepass")]) as descriptor:
        found = list(text_pieces(descriptor, errors="surrogatepass"))
    assert "".join(found) == text
    assert max(map(len, found)) <= PIECE_CHARS


@given(st.binary(max_size=20))
def test_bytes_that_are_no_text_are_replaced(data: bytes) -> None:
    with memory_file([data]) as descriptor:
        assert "".join(text_pieces(descriptor)) == data.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ([1, 2], (1, 2), True),
        ([3], 3, True),
        ([3, 4], 3, False),
        ({"1": [2]}, {1: (2,)}, True),
        (0.5, 0.5000001, True),
        (0.5, 10**400, False),
        (1, 1.0, True),
        (1, 2, False),
        ("a", ["a"], False),
        (None, None, True),
        ([], None, False),
        ([1], object(), False),
    ],
)
def test_values(wanted: object, found: object, same: bool) -> None:
    assert same_value(wanted, found, tolerance=TOLERANCE) is same


@given(values)
def test_a_value_is_itself_behind_json(value: Any) -> None:
    assert same_value(json.loads(json.dumps(value)), value, tolerance=0.0)
