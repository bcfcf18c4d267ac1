"""The checkers by name: ours, and those of installed distributions. A new one of ours is a line here."""

from typing import Any

from pipeline import __version__
from pipeline.config.label import GraderConfig
from pipeline.config.recorded import complete
from pipeline.core.doors import Door
from pipeline.graders.adapter import GraderChecker
from pipeline.graders.base import Checker, Grader

GRADERS: Door[type[Checker] | type[Grader]] = Door(
    "graders",
    noun="grader",
    setting="grader.kind",
    ours={
        "math": "pipeline.graders.math.pool:MathChecker pipeline.graders.math.settings:MathConfig",
        "code": "pipeline.graders.code.checker:CodeChecker pipeline.graders.code.settings:CodeConfig",
    },
    needs=("Config", "grade", "parses"),
)


def grader_version() -> str:
    """What graded a rollout, as it stands in the log."""
    return f"stepvalue-{__version__}"


def checker_for(config: GraderConfig) -> Checker:
    """A new checker; its owner closes it. Raises StepvalueError where the machine cannot do what the settings demand, and
    UsageError where there is none of that name here."""
    found: Any = GRADERS.load(config.kind)
    made = GRADERS.guarded(config.kind, found(complete(config, GRADERS)))
    checker: Checker = made if hasattr(found, "quick") else GraderChecker(made)
    return checker


def grader_type(config: GraderConfig) -> Any:
    """The class of the checker that settings are for, for what it says of itself."""
    return GRADERS.load(config.kind)
