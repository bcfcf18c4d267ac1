"""Graders, which check answers. `grade(gold, prediction)` decides whether an answer is correct.

`base` defines the interface of a checker, and `registry` selects one by name. `math` checks mathematical answers. Its reading
order: limits, fallback_answer, extract; normal, exact, ratio, reader, expression, forms, structure, phrases, compare; algebra,
child, pool. `code` checks programs, and `facts` answers to factual questions. All model output is treated as hostile: the math
checker never evaluates text, its fast path is pure, and computer algebra and programs run in child processes that can be
killed.
"""

from typing import TYPE_CHECKING, Any

from pipeline.core.records import Grade, Verdict

if TYPE_CHECKING:
    from pipeline.graders.shared import grade

__all__ = ["Grade", "Verdict", "grade"]


def __getattr__(name: str) -> Any:
    # Imported on first use: the child processes import this package too, and an eager import slows their start by a quarter.
    if name != "grade":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pipeline.graders.shared import grade

    return grade
