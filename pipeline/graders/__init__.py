"""Is this answer right? `grade(gold, prediction)` says so. `base` says what a checker promises, `registry` picks one.

Mathematics, in reading order: limits, closing, extract; normal, exact, ratio, reader, expression, forms, structure, phrases,
compare; then algebra, child and pool. Everything here treats model output as hostile: text is never evaluated, the fast path is
pure, and computer algebra runs in child processes that can be killed. Programs have a checker of their own in `code`.
"""

from typing import TYPE_CHECKING, Any

from pipeline.core.records import Grade, Verdict

if TYPE_CHECKING:
    from pipeline.graders.shared import grade

__all__ = ["Grade", "Verdict", "grade"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the child processes import this package too, and their start would be a quarter slower.
    if name != "grade":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pipeline.graders.shared import grade

    return grade
