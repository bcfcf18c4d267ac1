"""The checker that the settings ask for."""

from collections.abc import Callable

from pipeline import __version__
from pipeline.config.choices import GraderKind
from pipeline.config.label import GraderConfig
from pipeline.graders.base import Checker
from pipeline.graders.code.checker import CodeChecker
from pipeline.graders.math.pool import MathChecker

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
