"""The checkers by name: the built-in ones, and plug-ins of installed distributions. A new built-in checker needs one line here.

A plug-in implements `Grader`. An adapter turns it into the `Checker` that the rest of the pipeline uses.
"""

from dataclasses import replace
from time import perf_counter
from typing import Any

from pipeline import __version__
from pipeline.config.choices import TimeoutIs
from pipeline.config.label import GraderConfig
from pipeline.config.recorded_settings import complete_settings
from pipeline.core.ids import content_id
from pipeline.core.records import Grade, Verdict
from pipeline.core.registry import Registry
from pipeline.graders.base import MAX_ANSWER_KEPT, Checker, Grader
from pipeline.graders.process_pool import VerdictCache

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


_WITHOUT_RESULT = frozenset({Verdict.TIMEOUT, Verdict.CRASHED})
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


class DecidedChecker(Checker):
    """Decides what does not end (`grader.timeout_is=wrong`), around a checker that reports it, which it closes. Usable from any
    thread.

    An answer that is late, or that crashes its checker, is graded once more, patiently. If that happens again, it is incorrect,
    unless the machine may be the cause (`Grade.by_machine`). Otherwise a policy could learn to choose verdicts that do not
    count."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self._cache: VerdictCache[str] = VerdictCache()

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        return self.checker.final_answer(text, complete=complete)

    def stated_answer(self, text: str, *, complete: bool = True) -> str | None:
        return self.checker.stated_answer(text, complete=complete)

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        """The grade of a bare answer if it is known at once, also if it was decided before."""
        known = self.checker.quick_answer(golds, answer)
        return known if known is not None or answer is None else self._cache.get(content_id(*golds, answer))

    def grade_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        """The grade of a bare answer. Takes longer than with `checker` if it has to be asked twice."""
        known = self._cache.get(content_id(*golds, answer))
        if known is not None:
            return known
        first = self.checker.grade_answer(golds, answer)
        if first.verdict not in _WITHOUT_RESULT:
            return first
        again = self.checker.grade_patiently(golds, answer)
        grade = replace(again, ms=first.ms + again.ms)
        if again.verdict in _WITHOUT_RESULT and not again.by_machine:
            grade = replace(grade, verdict=Verdict.INCORRECT)
            self._cache.keep(content_id(*golds, answer), grade)
        return grade

    def parses(self, gold: str) -> bool:
        return self.checker.parses(gold)

    def close(self) -> None:
        self.checker.close()
