"""How a completion is graded, and what its grade means for a chain."""

import pytest

from pipeline.core.records import UNGRADED, Finish, Grade, Verdict
from pipeline.graders.math.pool import MathChecker
from pipeline.graders.question import NO_COMPLETION, grade_at_once, grade_in_time, outcome_of
from tests.settings import grader_settings


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
