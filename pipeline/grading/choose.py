"""The checker that the settings ask for."""

from collections.abc import Callable

from pipeline.config import GraderConfig, GraderKind
from pipeline.grading.base import Checker
from pipeline.grading.code.checker import CodeChecker
from pipeline.grading.pool import MathChecker

_CHECKERS: dict[GraderKind, Callable[[GraderConfig], Checker]] = {
    GraderKind.math: MathChecker,
    GraderKind.code: CodeChecker,
}


def checker_for(config: GraderConfig) -> Checker:
    """A new checker; its owner closes it. Raises StepvalueError where the machine cannot do what the settings demand."""
    return _CHECKERS[config.kind](config)
