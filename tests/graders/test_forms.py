"""Kinds of answers: what is a list, a pair, an interval, a set, and what is equal to what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import Verdict
from pipeline.graders.math.compare import quick_verdict, same_answer
from pipeline.graders.math.forms import FormKind, interval_of, read_form, split_label
from pipeline.graders.math.normal import normal_form

ITEMS = st.lists(st.integers(-99, 99), min_size=2, max_size=6, unique=True)
MARKS = (
    "1", "x", ",", ";", " and ", " or ", "(", ")", "[", "]", "\\{", "\\}", "{", "}", "=", "<", "\\le ", "\\cup ",
    "\\pm ", "\\in ", "-", "\\begin{pmatrix}", "\\end{pmatrix}", "&", "\\\\", "\\infty", "\\ne ", "\\approx ",
    "\\mid ", "1,000", "|", "yes",
)  # fmt: skip
SOUP = st.lists(st.sampled_from(MARKS), max_size=12).map("".join)


def kind(text: str) -> FormKind:
    return read_form(normal_form(text)).kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2", FormKind.LIST), ("1 and 2", FormKind.LIST), ("1,000", FormKind.EXPRESSION), ("1,000, 2,000", FormKind.LIST),
        ("\\pm 2", FormKind.LIST), ("(1,2)", FormKind.TUPLE), ("[1,2)", FormKind.TUPLE), ("(2,102)", FormKind.TUPLE),
        ("(9+1)", FormKind.EXPRESSION), ("\\{1,2\\}", FormKind.SET),
        ("\\{\\}", FormKind.SET), ("(0,1)\\cup[2,3]", FormKind.UNION), ("x<1 \\text{ or } x>3", FormKind.UNION),
        ("x=5", FormKind.RELATION), ("1<x\\le 2", FormKind.RELATION), ("\\mathbb{R}", FormKind.TUPLE),
        ("\\begin{pmatrix}1&2\\end{pmatrix}", FormKind.MATRIX),
        ("(1,2", FormKind.EXPRESSION), ("x\\in[1,2]", FormKind.TUPLE), ("\\sqrt{51}\\approx 7.1", FormKind.EXPRESSION),
    ],
)  # fmt: skip
def test_kinds(text: str, expected: FormKind) -> None:
    assert kind(text) is expected


@given(ITEMS)
def test_lists_and_sets_have_no_order_and_tuples_do(items: list[int]) -> None:
    texts = [str(item) for item in items]
    other = list(reversed(texts))
    assert quick_verdict(", ".join(texts), " and ".join(other)) is Verdict.CORRECT
    assert quick_verdict("\\{" + ",".join(texts) + "\\}", "\\{" + ", ".join(other) + "\\}") is Verdict.CORRECT
    assert quick_verdict(f"({','.join(texts)})", f"({', '.join(texts)})") is Verdict.CORRECT
    assert quick_verdict(f"({','.join(texts)})", f"({','.join(other)})") is Verdict.INCORRECT
    assert quick_verdict(f"({','.join(texts)})", "\\{" + ",".join(texts) + "\\}") is Verdict.INCORRECT
    assert quick_verdict(", ".join(texts), ", ".join(texts[1:])) is Verdict.INCORRECT


@given(st.sampled_from("(["), st.sampled_from(")]"), st.sampled_from("(["), st.sampled_from(")]"), st.integers(-9, 9))
def test_brackets_report_intervals_apart(opens: str, closes: str, opened: str, closed: str, low: int) -> None:
    wanted, given_ = f"{opens}{low},{low + 3}{closes}", f"\\left{opened} {low} , {low + 3} \\right{closed}"
    same = (opens, closes) == (opened, closed)
    assert quick_verdict(wanted, given_) is (Verdict.CORRECT if same else Verdict.INCORRECT)


@given(SOUP, SOUP)
def test_comparison_is_symmetric_and_never_raises(left: str, right: str) -> None:
    a, b = normal_form(left), normal_form(right)
    if a and b:
        assert (same_answer(a, b, 0.0) is True) == (same_answer(b, a, 0.0) is True)
        assert same_answer(a, a, 0.0) in (True, None)


def test_relations_as_intervals_and_labels() -> None:
    read = interval_of(read_form("2\\le x<5"))
    assert read is not None
    assert (read.marks, [item.text for item in read.items]) == (("[", ")"), ["2", "5"])
    assert interval_of(read_form("x+y<5")) is None
    assert split_label(read_form("AB=5")) == ("AB", "5")
    assert split_label(read_form("5=x")) == ("x", "5")
    assert split_label(read_form("2x=5")) is None
