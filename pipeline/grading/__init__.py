"""Is this answer right? `grade(gold, prediction)` says so.

Reading order: limits, extract, normal, exact, compare, then child and pool, then question and what is asked through it.

Everything here treats model output as hostile: text is never evaluated, the fast path is linear in the text and pure,
and all symbolic work happens in child processes that can be killed.
"""

from typing import TYPE_CHECKING, Any

from pipeline.records import Grade, Verdict

if TYPE_CHECKING:
    from pipeline.grading.shared import grade

__all__ = ["Grade", "Verdict", "grade"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the child processes import this package too, and their start would be a quarter slower.
    if name != "grade":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pipeline.grading.shared import grade

    return grade
