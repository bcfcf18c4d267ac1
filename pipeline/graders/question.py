"""The questions that a checker is asked: by a completion or a chain of ours, by a gold and a prediction of whatever type. Pure.

Of the latter, texts, numbers, their numpy kin and None, as people and data sets hand them over, and several golds in a list.
Not covered: other types. As a prediction they are no answer, as a gold they are one that nothing can be compared with.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeGuard

from pipeline.core.records import UNGRADED, Finish, Grade, Verdict
from pipeline.data.problems import plain_number
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Is `text` right? Any of `golds` counts, and where there are none the gold was unusable.

    `extracts`: the text is a whole output that states its answer somewhere, else it is the answer.
    """

    golds: tuple[str, ...]
    text: str | None
    extracts: bool


def question(gold: object, prediction: object, *, extracts: bool) -> Question:
    """The question that a caller means by a gold (or several, in a list, tuple, array or set) and a prediction."""
    return Question(golds=golds_of(gold), text=_text(prediction), extracts=extracts)


def golds_of(gold: object) -> tuple[str, ...]:
    """The known answers without repetition; none where the gold, or one of several, is blank or not text or number."""
    if isinstance(gold, str):
        return (gold.strip(),) if gold.strip() else ()
    given = _native(gold)
    if isinstance(given, str | bytes | bytearray | memoryview) or not isinstance(given, Sequence | Set):
        given = (given,)
    golds = [_gold(entry) for entry in given]
    return tuple(dict.fromkeys(golds)) if all(golds) else ()


def at_once(checker: Checker, asked: Question) -> Grade | None:
    """The grade where it is known in microseconds, None where a child process has to be asked."""
    if not asked.golds:
        return Grade(verdict=Verdict.UNPARSEABLE, answer="", ms=0.0)
    if asked.extracts and asked.text is not None:
        return checker.quick(asked.golds, asked.text)
    return checker.quick_answer(asked.golds, asked.text)


def in_time(checker: Checker, asked: Question) -> Grade:
    """The grade, by the checker's deadline. Raises StepvalueError when its child processes cannot be started."""
    grade = at_once(checker, asked)
    if grade is not None:
        return grade
    text = asked.text or ""
    return checker.grade(asked.golds, text) if asked.extracts else checker.grade_answer(asked.golds, text)


def _gold(entry: object) -> str:
    """One known answer, empty where it is none."""
    entry = _native(entry)
    if _is_number(entry) and not Decimal(entry).is_finite():
        return ""
    return (_text(entry) or "").strip()


def _text(prediction: object) -> str | None:
    given = _native(prediction)
    if isinstance(given, str):
        return given
    return plain_number(given) if _is_number(given) else None


def _is_number(value: object) -> TypeGuard[int | float | Decimal]:
    # A truth value is an int to Python, and nobody's answer.
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _native(value: object) -> object:
    """Plain Python in place of numpy's and torch's scalars and arrays."""
    if isinstance(value, str):
        return value
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) else value
