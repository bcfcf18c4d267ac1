"""Integers of thousands of digits are compared as texts, in bare answers and in whole outputs."""

import random

import pytest

from pipeline.core.records import Verdict
from pipeline.graders.base import Checker
from pipeline.graders.math.limits import MAX_INTEGER_DIGITS, same_long_integer
from tests.deadlines import bounded

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
