"""The checkers by name: ours, and those of installed distributions. A new one of ours is a line here."""

from typing import Any

from pipeline import __version__
from pipeline.config.fields import as_type
from pipeline.config.label import GraderConfig
from pipeline.core.doors import Door, guarded
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
    plugin = GRADERS.plugin(config.kind)
    made = guarded(found(as_type(config, found.Config)), plugin, f"grader {config.kind}")
    checker: Checker = made if hasattr(found, "quick") else GraderChecker(made)
    return checker


def complete_settings(config: GraderConfig) -> GraderConfig:
    """The settings as those of the checker that they name, with its defaults for what the base does not know."""
    complete: GraderConfig = as_type(config, GRADERS.load(config.kind).Config)
    return complete


def grader_type(config: GraderConfig) -> Any:
    """The class of the checker that settings are for, for what it says of itself."""
    return GRADERS.load(config.kind)
