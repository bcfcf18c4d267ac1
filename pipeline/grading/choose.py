"""The checker that the settings ask for."""

from pipeline.config import GraderConfig
from pipeline.grading.base import Checker
from pipeline.grading.pool import MathChecker


def checker_for(config: GraderConfig) -> Checker:
    """A new checker; its owner closes it."""
    return MathChecker(config)
