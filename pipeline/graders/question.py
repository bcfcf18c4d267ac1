"""Converts completions, chains, golds and predictions to questions for a checker. Pure.

A gold or prediction may be a text, a number, the numpy equivalent of either, or None. Several golds may come in a list.
Not covered: other types. A prediction of another type is `no_answer`, and a gold of another type is `unparseable`.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeGuard

from pipeline.core.records import UNGRADED, Finish, Grade, Verdict
from pipeline.data.problems import plain_number
from pipeline.graders.base import Checker

NO_COMPLETION = Grade(verdict=Verdict.CRASHED, answer="", ms=0.0)
"""The grade of a request that the engine failed or aborted. It is ungraded, like an answer that crashes the checker."""


def grade_at_once(checker: Checker, golds: tuple[str, ...], text: str, finish: Finish) -> Grade | None:
    """The grade of a completion with its prefix, or None if the checker has to ask a child process."""
    if finish in (Finish.ENGINE_FAILED, Finish.ABORT):
        return NO_COMPLETION
    return checker.quick(golds, text, complete=finish is Finish.STOP)


def grade_in_time(checker: Checker, golds: tuple[str, ...], text: str, finish: Finish) -> Grade:
    """The grade of a completion for which `grade_at_once` returned None. Waits for a child process."""
    return checker.grade(golds, text, complete=finish is Finish.STOP)


def outcome_of(grade: Grade) -> bool | None:
    """Whether the final answer of a chain is correct, or None if it cannot be graded."""
    return verdict_outcome(grade.verdict)


def verdict_outcome(verdict: Verdict) -> bool | None:
    """`outcome_of` for a verdict alone."""
    return None if verdict in UNGRADED else verdict is Verdict.CORRECT


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Does `text` match any of `golds`? `golds` is empty if the gold was unusable.

    `extracts` is true if the text is a whole output that states its answer, false if the text is the bare answer.
    """

    golds: tuple[str, ...]
    text: str | None
    extracts: bool


def question(gold: object, prediction: object, *, extracts: bool) -> Question:
    """The question for a gold (or several in a list, tuple, array or set) and a prediction."""
    return Question(golds=golds_of(gold), text=_text(prediction), extracts=extracts)


def golds_of(gold: object) -> tuple[str, ...]:
    """The distinct known answers. Empty if the gold, or one of several, is blank or neither a text nor a number."""
    if isinstance(gold, str):
        return (gold.strip(),) if gold.strip() else ()
    given = _native(gold)
    if isinstance(given, str | bytes | bytearray | memoryview) or not isinstance(given, Sequence | Set):
        given = (given,)
    golds = [_gold(entry) for entry in given]
    return tuple(dict.fromkeys(golds)) if all(golds) else ()


def at_once(checker: Checker, asked: Question) -> Grade | None:
    """The grade if it is known within microseconds, or None if a child process has to be asked."""
    if not asked.golds:
        return Grade(verdict=Verdict.UNPARSEABLE, answer="", ms=0.0)
    if asked.extracts and asked.text is not None:
        return checker.quick(asked.golds, asked.text)
    return checker.quick_answer(asked.golds, asked.text)


def in_time(checker: Checker, asked: Question) -> Grade:
    """The grade. Waits at most for the checker's deadline. Raises StepvalueError if its child process cannot be started."""
    grade = at_once(checker, asked)
    if grade is not None:
        return grade
    text = asked.text or ""
    return checker.grade(asked.golds, text) if asked.extracts else checker.grade_answer(asked.golds, text)


def _gold(entry: object) -> str:
    """One known answer as text. Empty if it is unusable."""
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
    # bool is a subclass of int in Python, but it is never an answer.
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _native(value: object) -> object:
    """Convert scalars and arrays of numpy and torch to plain Python values."""
    if isinstance(value, str):
        return value
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) else value
