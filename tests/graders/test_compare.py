"""Kinds of answers (a list, a pair, an interval, a set), and what is equal to what."""

import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import Verdict
from pipeline.graders.base import Checker
from pipeline.graders.math.compare import is_plain, of_all, quick_verdict, same_answer
from pipeline.graders.math.exact import exact_value
from pipeline.graders.math.forms import FormKind, interval_of, read_form, split_label
from pipeline.graders.math.limits import MAX_INTEGER_DIGITS, same_long_integer
from pipeline.graders.math.normal import normal_form
from tests.deadlines import bounded

REWRITES: list[Callable[[int], str]] = [
    lambda n: f"{n:,}",
    lambda n: f"{n}.",
    lambda n: f"{n}.00",
    lambda n: f"${n}$",
    lambda n: f"\\${n:,}",
    lambda n: f"{n} dollars",
    lambda n: f"{n}\\text{{ cm}}",
    lambda n: f"{n}^\\circ",
    lambda n: f"{n}\\%",
    lambda n: f"x = {n}",
    lambda n: f"\\frac{{{3 * n}}}{{3}}",
    lambda n: f"{2 * n}/2",
    lambda n: f"\\left{{{n}\\right}}".replace("\\left", "").replace("\\right", ""),
    lambda n: f"{n:,}".replace(",", "{,}"),
    lambda n: f"{n:,}".replace(",", ",\\!"),
    lambda n: f"{n} \\times 10^{{0}}",
    lambda n: f"\\text{{{n}}}",
    lambda n: "".join(chr(ord(mark) + 0xFEE0) if mark.isdigit() else "−" for mark in str(n)),
]
NUMBERS = st.integers(-(10**15), 10**15)


@given(NUMBERS, st.sampled_from(REWRITES), st.sampled_from(REWRITES))
def test_a_number_equals_itself_in_every_spelling(
    number: int, left: Callable[[int], str], right: Callable[[int], str]
) -> None:
    # Two known units are not the same unit, even at the same number, and none of them is a percentage.
    values = [exact for exact in map(exact_value, map(normal_form, (left(number), right(number)))) if exact]
    if len({exact.unit or ("%" if exact.percent else None) for exact in values} - {None}) > 1:
        return
    assert quick_verdict(left(number), right(number)) is Verdict.CORRECT


@given(NUMBERS, NUMBERS, st.sampled_from(REWRITES[:8]), st.sampled_from(REWRITES[:6]))
def test_different_numbers_never_match(a: int, b: int, left: Callable[[int], str], right: Callable[[int], str]) -> None:
    assert a == b or quick_verdict(left(a), right(b)) is not Verdict.CORRECT


@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6))
def test_fractions_are_compared_exactly(a: Fraction, b: Fraction) -> None:
    left, right = (f"\\frac{{{value.numerator}}}{{{value.denominator}}}" for value in (a, b))
    assert quick_verdict(left, right) is (Verdict.CORRECT if a == b else Verdict.INCORRECT)


PIECES = st.sampled_from(
    [
        "5",
        "1,000",
        ".",
        "/",
        "%",
        "$",
        "\\frac",
        "{",
        "}",
        "x",
        " cm",
        "no",
        "(B)",
        "-",
        "^",
        "\\text{",
        "=",
        ":",
        "_",
        "½",
    ]
)
ANSWERS = st.one_of(st.text(max_size=20), st.lists(PIECES, max_size=8).map("".join))


@given(ANSWERS, ANSWERS)
def test_correct_is_symmetric(left: str, right: str) -> None:
    assert (quick_verdict(left, right) is Verdict.CORRECT) <= (quick_verdict(right, left) in (Verdict.CORRECT, None))


@given(ANSWERS)
def test_an_answer_equals_itself(answer: str) -> None:
    form = normal_form(answer)
    assert form.isprintable()
    assert not form or quick_verdict(answer, answer) is Verdict.CORRECT


@pytest.mark.parametrize(
    "answer", ["1e999999999", "10^{999999999}", "1" * 100_000, "0." + "1" * 100_000, "1/" + "3" * 5000]
)
def test_huge_numbers_are_never_computed(answer: str) -> None:
    assert quick_verdict("5", answer) is not Verdict.CORRECT


def test_a_tolerance_is_for_decimals_and_only_when_asked_for() -> None:
    assert quick_verdict("3.14159", "3.1416") is Verdict.INCORRECT
    assert quick_verdict("3.14159", "3.1416", relative_tolerance=1e-4) is Verdict.CORRECT
    assert quick_verdict("1000000", "1000001", relative_tolerance=1e-4) is Verdict.INCORRECT


@pytest.mark.parametrize(
    "gold",
    ["5", "\\frac12", "no solution", "B", "12 cm", "4343_6", "3:30", "50\\%", "x+1", "(1,2)", "\\{1,\\sqrt2\\}", "x<3"],
)
def test_plain_golds_need_no_child(gold: str) -> None:
    assert is_plain(gold)


@pytest.mark.parametrize("gold", ["", "x+", "\\sum_{k=1}^n k", "(1,", "\\frac{1}{2", "\\{\\}x", "f(2)"])
def test_other_golds_do(gold: str) -> None:
    assert not is_plain(gold)


def test_an_answer_of_parts_is_as_right_as_its_worst_part() -> None:
    assert of_all([Verdict.CORRECT, Verdict.CORRECT]) is Verdict.CORRECT
    assert of_all([Verdict.CORRECT, None, Verdict.INCORRECT]) is Verdict.INCORRECT
    assert of_all([Verdict.CORRECT, None]) is None
    assert of_all([]) is Verdict.INCORRECT


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


_CHANCE = random.Random(5)
LONG = "7" + "".join(_CHANCE.choices("0123456789", k=5_000))
SHORTER = LONG[:2_000]
GROUPED = f"{int(LONG[:3_000]):,}"
MIDDLE = f"{LONG[:2_500]}{(int(LONG[2_500]) + 1) % 10}{LONG[2_501:]}"
RIGHT = [
    (LONG, LONG),
    (LONG, f"+{LONG}"),
    (LONG, f"0{LONG}"),
    (LONG, f" {LONG} "),
    (f"${LONG}$", LONG),
    (f"-{LONG}", f"-{LONG}"),
    (LONG[:3_000], GROUPED),
    (SHORTER, SHORTER),
    (LONG[:201], LONG[:201]),
]
WRONG = [
    (LONG, MIDDLE),
    (LONG, f"-{LONG}"),
    (LONG, LONG[:-1]),
    (LONG, f"{LONG}0"),
    (LONG, LONG[1:]),
    (SHORTER, LONG),
    (LONG, SHORTER),
    (LONG, f"{LONG}.5"),
    (LONG, f"{LONG}, {LONG}"),
    (LONG, f"{LONG}/2"),
    (LONG, f"1/{LONG}"),
    (LONG, "7"),
    (LONG, f"{LONG}!"),
    (LONG, f"{LONG[:10]},{LONG[10:]}"),
    (LONG, f"{LONG}x"),
]
OUTPUTS = [
    "We multiply.\n\\boxed{{{}}}", "So it is $\\boxed{{{}}}$.", "\\boxed{{${}$}}", "The answer is {}.",
    "The answer is ${}$. I am sure.", "#### {}", "#### {}\n", "**Answer:** {}",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(RIGHT)))
def test_equal_long_integers_are_equal(checker: Checker, number: int) -> None:
    gold, answer = RIGHT[number]
    assert checker.parses(gold)
    assert checker.grade_answer((gold,), answer).verdict is Verdict.CORRECT


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_other_long_integers_are_not(checker: Checker, number: int) -> None:
    gold, answer = WRONG[number]
    assert checker.grade_answer((gold,), answer).verdict is not Verdict.CORRECT


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_that_states_a_long_integer(checker: Checker, output: str) -> None:
    assert checker.grade((LONG,), output.format(LONG)).verdict is Verdict.CORRECT
    for other in (MIDDLE, f"{LONG}1", LONG[:-1], SHORTER):
        assert checker.grade((LONG,), output.format(other)).verdict is not Verdict.CORRECT
    # The beginning of a long integer is never compared, wherever it is cut.
    for length in (400, 401, 1_900, 1_999, 2_000, 2_001, 4_000):
        assert checker.grade((LONG[:length],), output.format(LONG)).verdict is not Verdict.CORRECT
        assert checker.grade((LONG[-length:],), output.format(LONG)).verdict is not Verdict.CORRECT


@pytest.mark.parametrize("length", [201, 399, 400, 401, 511, 2_000, 4_000])
def test_an_unmarked_long_integer_is_not_cut(checker: Checker, length: int) -> None:
    for text in (f"So it is {LONG}", f"It is ${LONG}$", f"So it is **{LONG}**", f"{LONG} apples", f"{LONG} is it."):
        for gold in (LONG[:length], LONG[-length:]):
            assert checker.grade((gold,), text).verdict is not Verdict.CORRECT


def test_a_text_that_is_cut_is_no_integer(checker: Checker) -> None:
    words = f"{LONG} apples and many other words"
    for length in (1_998, 1_999, 2_000):
        for text in (words, f"\\boxed{{{words}}}", f"The answer is {words}.", f"#### {words}"):
            assert checker.grade((LONG[:length],), text).verdict is not Verdict.CORRECT


def test_there_is_a_limit(checker: Checker) -> None:
    long = "9" * (MAX_INTEGER_DIGITS + 1)
    assert not checker.parses(long)
    assert same_long_integer(long, long) is None
    assert same_long_integer("5", "5") is None
    assert checker.grade_answer((long,), f"{long}1").verdict is not Verdict.CORRECT


@pytest.mark.parametrize("piece", ["9", "1,", "-", "$", "9,999,", " "])
def test_it_takes_linear_time(checker: Checker, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    with bounded():
        for answer in (text, f"\\boxed{{{text}}}", f"The answer is {text}", f"#### {text}"):
            checker.grade((LONG,), answer)
