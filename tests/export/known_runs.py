"""Runs whose values are known, for exports and training: right answers by luck among honest ones, and one without a verdict."""

from pathlib import Path
from unittest.mock import patch

from pipeline.core.records import Completion, Grade, Problem, Verdict
from pipeline.engines import oracle
from pipeline.runtime import labelling
from pipeline.runtime.async_grader import AsyncGrader
from tests.runtime.adaptive import settings, sums
from tests.runtime.in_process import label_in_process

PROBLEMS = 44
LOW, HIGH = 0.02, 0.97


def value_of(problem: str) -> float:
    """The true value of all prefixes of a problem, low for every second one. Each problem has a right chain and a wrong one."""
    return LOW if int(problem.split()[2]) % 2 else HIGH


def surprising(problem: str, outcome: bool) -> bool:
    """Whether a chain's outcome is against its values: a right answer by luck, or a slip at the end."""
    return outcome == (value_of(problem) == LOW)


def known_run(folder: Path) -> Path:
    """The run directory of a run with these values, half of whose chains are `surprising`."""

    def known(seed: int, spread: float, problem: Problem, prefix_id: str) -> float:
        return value_of(problem.text)

    with patch.object(oracle, "true_value", known):
        label_in_process(settings(folder, sums(PROBLEMS), "sampling.rollouts=12"))
    return folder / "run"


def ungraded_run(folder: Path, *overrides: str) -> Path:
    """The run directory of a run with three problems, in which the grader times out on every rollout."""

    class LateGrader(AsyncGrader):
        def at_once(self, problem: Problem, completion: Completion, stem: str) -> Grade | None:
            return Grade(verdict=Verdict.TIMEOUT, answer="", ms=1.0)

    with patch.object(labelling, "AsyncGrader", LateGrader):
        label_in_process(settings(folder, sums(3), *overrides))
    return folder / "run"
