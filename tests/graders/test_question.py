"""Every gold and prediction becomes a text or is reported as unusable; what the grade of a completion means."""

from collections import UserList
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import UNGRADED, Finish, Grade, Verdict
from pipeline.data.problems import plain_number
from pipeline.graders.math.pool import MathChecker
from pipeline.graders.question import NO_COMPLETION, golds_of, grade_at_once, grade_in_time, outcome_of, question
from tests.settings import grader_settings


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (-7.0, "-7"),
        (0.5, "0.5"),
        (1e-7, "0.0000001"),
        (1e16, "10000000000000000"),
        (-0.0, "0"),
        (100, "100"),
        (Decimal("2.50"), "2.5"),
        (Decimal("1e999999999"), "1e+999999999"),
        (float("inf"), "infinity"),
    ],
)
def test_numbers_are_written_plainly(value: int | float | Decimal, text: str) -> None:
    assert plain_number(value) == text


def test_a_number_too_long_for_str_is_written_all_the_same() -> None:
    assert plain_number(10**5000) == "1" + "0" * 5000


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.decimals(-(10**30), 10**30))
def test_a_plain_number_is_the_same_number(value: int | float | Decimal) -> None:
    if Decimal(value).is_finite():
        plain = plain_number(value)
        assert "e" not in plain
        assert type(value)(plain) == value


@pytest.mark.parametrize(
    ("gold", "golds"),
    [
        ("5", ("5",)),
        (" 5\n", ("5",)),
        (5.0, ("5",)),
        (["5", 6, "5"], ("5", "6")),
        (("x", "y"), ("x", "y")),
        (UserList(["a"]), ("a",)),
        ({"only"}, ("only",)),
        (np.array(["5", "6"], dtype=object), ("5", "6")),
        (np.array([5, 6]), ("5", "6")),
        (np.float64(0.5), ("0.5",)),
        (np.str_("pi"), ("pi",)),
    ],
)
def test_golds(gold: Any, golds: tuple[str, ...]) -> None:
    assert golds_of(gold) == golds


NO_GOLDS: list[Any] = [
    None,
    "",
    " \n",
    [],
    (),
    [[]],
    [["5"]],
    {"a": 1},
    [{"a": 1}],
    True,
    ["5", None],
    ["5", ""],
    ["5", False],
]
ODD: list[Any] = [b"5", object(), 1j, {}, ["5"], True, None]


@pytest.mark.parametrize(
    "gold", [*NO_GOLDS, b"5", float("nan"), [float("inf")], object(), 1j], ids=lambda gold: str(type(gold))
)
def test_what_is_no_gold_yields_none(gold: Any) -> None:
    assert golds_of(gold) == ()


@pytest.mark.parametrize(
    ("prediction", "text"),
    [("so 5", "so 5"), ("", ""), (5, "5"), (np.int64(5), "5"), (5.5, "5.5"), (np.float32(2), "2")],
)
def test_texts_and_numbers_are_predictions(prediction: Any, text: str) -> None:
    assert question("1", prediction, extracts=False).text == text


@pytest.mark.parametrize("prediction", ODD, ids=lambda prediction: str(type(prediction)))
def test_other_types_are_no_answer(prediction: Any) -> None:
    assert question("1", prediction, extracts=True).text is None


def test_a_request_that_no_engine_answers_is_ungraded_whatever_its_text() -> None:
    with MathChecker(grader_settings()) as checker:
        grade = grade_at_once(checker, ("5",), "The answer is 5.", Finish.ENGINE_FAILED)
    assert grade is NO_COMPLETION
    assert grade.verdict in UNGRADED


@pytest.mark.parametrize("ask", [grade_at_once, grade_in_time])
def test_only_a_completion_that_stopped_itself_is_complete(ask: type) -> None:
    with MathChecker(grader_settings()) as checker:
        assert ask(checker, ("5",), "So it is 5", Finish.STOP).verdict is Verdict.CORRECT
        assert ask(checker, ("5",), "So it is 5", Finish.LENGTH).verdict is Verdict.NO_ANSWER


@pytest.mark.parametrize("verdict", Verdict)
def test_an_outcome_is_known_where_the_answer_was_graded(verdict: Verdict) -> None:
    expected = None if verdict in UNGRADED else verdict is Verdict.CORRECT
    assert outcome_of(Grade(verdict=verdict, answer="5", ms=0.0)) is expected
