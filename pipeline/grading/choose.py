"""The checker that the settings ask for."""

from collections.abc import Callable

from pipeline import __version__
from pipeline.choices import GraderKind
from pipeline.config import GraderConfig
from pipeline.grading.base import Checker
from pipeline.grading.code.checker import CodeChecker
from pipeline.grading.pool import MathChecker

_CHECKERS: dict[GraderKind, Callable[[GraderConfig], Checker]] = {
    GraderKind.math: MathChecker,
    GraderKind.code: CodeChecker,
}


def grader_version() -> str:
    """What graded a rollout, as it stands in the log."""
    return f"stepvalue-{__version__}"


def checker_for(config: GraderConfig) -> Checker:
    """A new checker; its owner closes it. Raises StepvalueError where the machine cannot do what the settings demand."""
    return _CHECKERS[config.kind](config)
