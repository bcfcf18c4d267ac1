"""A checker that decides what does not end (`grader.timeout_is=wrong`), around one that reports it.

An answer that is late, or that crashes its checker, is graded once more, patiently. If that happens again, it is incorrect,
unless the machine may be the cause (`Grade.by_machine`). Otherwise a policy could learn to choose verdicts that do not count.
"""

from dataclasses import replace

from pipeline.core.ids import content_id
from pipeline.core.records import Grade, Verdict
from pipeline.graders.base import Checker
from pipeline.graders.process_pool import VerdictCache

_WITHOUT_RESULT = frozenset({Verdict.TIMEOUT, Verdict.CRASHED})


class DecidedChecker(Checker):
    """Asks `checker`, which it closes. Usable from any thread."""

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
