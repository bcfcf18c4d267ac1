"""The checkers by name: the built-in ones, and plug-ins of installed distributions. A new built-in checker needs one line here.

A plug-in implements `Grader`. An adapter turns it into the `Checker` that the rest of the pipeline uses.
"""

from time import perf_counter
from typing import Any

from pipeline import __version__
from pipeline.config.choices import TimeoutIs
from pipeline.config.label import GraderConfig
from pipeline.config.recorded_settings import complete_settings
from pipeline.core.records import Grade, Verdict
from pipeline.core.registry import Registry
from pipeline.graders.base import MAX_ANSWER_KEPT, Checker, Grader
from pipeline.graders.decided import DecidedChecker

GRADERS: Registry[type[Checker] | type[Grader]] = Registry(
    "graders",
    noun="grader",
    setting="grader.kind",
    ours={
        "math": "pipeline.graders.math.pool:MathChecker pipeline.graders.settings:MathConfig",
        "code": "pipeline.graders.code.checker:CodeChecker pipeline.graders.settings:CodeConfig",
        "facts": "pipeline.graders.facts.checker:FactsChecker pipeline.graders.settings:FactsConfig",
    },
    needs=("Config", "grade", "parses", "ending_for", "ends_by_default"),
    answers="pipeline.graders.base:ANSWERS",
)


REVISION = 2
"""Rises when a built-in checker decides otherwise than before, so that `regrade` and `label` know a run of an earlier one."""


def grader_version() -> str:
    """The version of the grader, as the log records it for each rollout."""
    return f"stepvalue-{__version__}-{REVISION}"


def checker_for(config: GraderConfig) -> Checker:
    """A new checker. The caller must close it.

    Raises StepvalueError if the machine cannot do what the settings demand, and UsageError if no checker has that name.
    """
    found: Any = GRADERS.load(config.kind)
    config = complete_settings(config, GRADERS)
    made = GRADERS.create(config.kind, config)
    checker: Checker = made if hasattr(found, "quick") else _Adapted(made)
    return DecidedChecker(checker) if config.timeout_is is TimeoutIs.wrong else checker


def grader_type(config: GraderConfig) -> Any:
    """The class of the checker that the settings name. Its class attributes describe it."""
    return GRADERS.load(config.kind)


class _Adapted(Checker):
    """Adapts a `Grader` to `Checker`. Its only grade without a call of `Grader.grade` is NO_ANSWER."""

    def __init__(self, grader: Grader) -> None:
        self._grader = grader

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        return self._grader.extract([text], complete=complete)[0]

    def quick(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade | None:
        return None

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        return Grade(verdict=Verdict.NO_ANSWER, answer="", ms=0.0) if answer is None else None

    def grade(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade:
        answer = self.final_answer(text, complete=complete)
        return self.quick_answer(golds, answer) or self.grade_answer(golds, answer or "")

    def grade_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        began = perf_counter()
        verdict = Verdict(self._grader.grade([golds], [answer])[0])
        return Grade(verdict=verdict, answer=answer[:MAX_ANSWER_KEPT], ms=1000 * (perf_counter() - began))

    def parses(self, gold: str) -> bool:
        return bool(self._grader.parses([gold])[0])

    def close(self) -> None:
        self._grader.close()
