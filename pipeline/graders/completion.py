"""Which question a completion or a chain puts to a checker, and what its grade means: the same when labelling and later."""

from pipeline.core.records import UNGRADED, Finish, Grade, Verdict
from pipeline.graders.base import Checker

NO_COMPLETION = Grade(verdict=Verdict.CRASHED, answer="", ms=0.0)
"""Of a request that no engine answers, or that was stopped: ungraded, like an answer that no checker survives."""


def grade_at_once(checker: Checker, golds: tuple[str, ...], text: str, finish: Finish) -> Grade | None:
    """The grade of a completion behind its stem, or None when the checker has to ask a child."""
    if finish in (Finish.ENGINE_FAILED, Finish.ABORT):
        return NO_COMPLETION
    return checker.quick(golds, text, complete=finish is Finish.STOP)


def grade_in_time(checker: Checker, golds: tuple[str, ...], text: str, finish: Finish) -> Grade:
    """The grade of a completion that `grade_at_once` had none for."""
    return checker.grade(golds, text, complete=finish is Finish.STOP)


def outcome_of(grade: Grade) -> bool | None:
    """Whether a chain's own answer is right, None where that cannot be graded."""
    return None if grade.verdict in UNGRADED else grade.verdict is Verdict.CORRECT
