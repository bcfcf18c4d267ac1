"""The earlier name of the answer checker: `from pipeline.grading import grade` means `from pipeline.graders import grade`."""

from typing import TYPE_CHECKING, Any

from pipeline import graders
from pipeline.core.records import Grade, Verdict

if TYPE_CHECKING:
    from pipeline.graders import grade

__all__ = ["Grade", "Verdict", "grade"]


def __getattr__(name: str) -> Any:
    return getattr(graders, name)
