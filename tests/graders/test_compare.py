from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import Verdict
from pipeline.graders.math.compare import is_plain, of_all, quick_verdict
from pipeline.graders.math.exact import exact_value
from pipeline.graders.math.normal import normal_form

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
