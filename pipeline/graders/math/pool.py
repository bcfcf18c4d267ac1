"""`MathChecker`, the checker of mathematical answers: it turns any text into a `Grade`.

Covered: an answer that stalls, crashes or exhausts computer algebra ends its child process, never the caller. The caller waits
at most the deadline per gold, measured from when a ready child gets the task. Usable from any thread.
Not covered: errors of the algebra itself. A verdict other than CORRECT and INCORRECT says why there is none.
"""

import json
import re
import sys
import time

from pipeline.config.choices import UnreadableIs
from pipeline.core.errors import StepvalueError
from pipeline.core.records import Grade, Verdict
from pipeline.graders.base import MAX_ANSWER_KEPT, of_any
from pipeline.graders.line_process import LineChild
from pipeline.graders.math import compare, extract, limits
from pipeline.graders.math.choices import split_parts
from pipeline.graders.math.normal import normal_form
from pipeline.graders.process_pool import PooledChecker, VerdictCache
from pipeline.graders.settings import MathConfig

TASKS_PER_CHILD = 5_000
_MODULE = "pipeline.graders.math.child"

_UNREAD = frozenset({Verdict.UNPARSEABLE, Verdict.OVER_LIMIT})
NO_ANSWER = Grade(verdict=Verdict.NO_ANSWER, answer="", ms=0.0)


class _Child(LineChild):
    """A process of `pipeline.graders.math.child`."""

    def __init__(self, config: MathConfig) -> None:
        self._config = config
        arguments = [str(config.memory_mib), str(config.deadline_seconds), str(config.relative_tolerance)]
        not_started = StepvalueError(
            f"the process of the answer checker does not start; run `{sys.executable} -m {_MODULE}"
            f" {' '.join(arguments)}` to see why (grader.memory_mib={config.memory_mib} may be too small)"
        )
        super().__init__(_MODULE, arguments, TASKS_PER_CHILD, not_started)

    def verdict(self, task: dict[str, str]) -> Verdict:
        """The child's verdict on one task. TIMEOUT if it is late, CRASHED if it ends without a reply, again and again.

        Raises StepvalueError if no child can be started.
        """
        try:
            reply = self.ask(json.dumps(task).encode, self._config.deadline_seconds)
        except TimeoutError:
            return Verdict.TIMEOUT
        return Verdict(json.loads(reply)["verdict"]) if reply else Verdict.CRASHED


def _bare(answer: str) -> str:
    """An answer without wrappers such as `\\boxed{}`, `$` and quotes. An answer over `MAX_CHARS` is returned unchanged."""
    answer = answer.strip()
    if answer.isalnum() or len(answer) > limits.MAX_CHARS:
        return answer
    return (extract.final_answer(answer) if "\\boxed" in answer else None) or extract.unwrap(answer)


class MathChecker(PooledChecker[_Child]):
    """Grades mathematical answers. It has up to `config.processes` children, each started when an answer needs algebra."""

    Config = MathConfig

    @classmethod
    def ending_for(cls, config: MathConfig) -> extract.AnswerSeen:
        return extract.AnswerSeen(pattern=re.compile(config.answer_pattern) if config.answer_pattern else None)

    @classmethod
    def ends_by_default(cls, config: MathConfig) -> bool:
        return config.answer_pattern is None

    def __init__(self, config: MathConfig) -> None:
        super().__init__([_Child(config) for _ in range(config.processes)])
        self._config = config
        self._pattern = re.compile(config.answer_pattern) if config.answer_pattern else None
        self._cache: VerdictCache[tuple[tuple[str, ...], str]] = VerdictCache()

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a text states, according to the settings of this checker.

        In a text that was cut short (`complete` is false) only an explicit statement counts, never `grader.fallback`. More text
        must follow the statement, because "the answer is 12" may be the beginning of "the answer is 125".
        """
        return extract.final_answer(text, pattern=self._pattern, fallback=self._config.fallback, complete=complete)

    def stated_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The answer that a text marks as final. Ignores `grader.fallback`."""
        return extract.final_answer(text, pattern=self._pattern, complete=complete)

    def grade_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        """The grade of a bare answer. Waits at most the deadline per gold."""
        return self.quick_answer(golds, answer) or self._slow_answer(golds, answer)

    def parses(self, gold: str) -> bool:
        """Whether answers can be compared with `gold`: a number, words, a letter, or LaTeX that can be parsed completely."""
        if limits.is_long_integer(gold):
            return True
        parts = split_parts(extract.unwrap(gold))
        if parts is not None:
            return all(self.parses(part) for _, part in parts)
        if not compare.gold_form(gold) or limits.exceeded_limit(gold):
            return False
        return compare.is_plain(gold) or self._ask({"parse": gold}) is Verdict.CORRECT

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        """The result of `grade_answer` if it takes only microseconds, or None if a child must decide."""
        if answer is None:
            return NO_ANSWER
        if len(golds) == 1 and not self._config.relative_tolerance and len(answer) <= limits.MAX_DIGITS:
            # Faster than a look-up in the cache.
            began = time.perf_counter()
            plain = compare.verdict_by_spelling(golds[0], answer)
            if plain is not None:
                return Grade(verdict=plain, answer=answer, ms=(time.perf_counter() - began) * 1000)
        answer = _bare(answer)
        if not answer:
            return NO_ANSWER
        key = (golds, answer)
        known = self._cache.get(key)
        if known is not None:
            return known
        began = time.perf_counter()
        verdict = self._quick_verdict(golds, answer)
        if verdict in _UNREAD and self._config.unreadable_is is UnreadableIs.wrong:
            # A child may have to say whether the golds can be read.
            return None
        return None if verdict is None else self._remember(key, verdict, began)

    def _quick_verdict(self, golds: tuple[str, ...], answer: str) -> Verdict | None:
        if len(answer) > limits.MAX_DIGITS:
            long = [limits.same_long_integer(gold, answer) for gold in golds]
            if True in long or None not in long:
                return Verdict.CORRECT if True in long else Verdict.INCORRECT
        if limits.exceeded_limit(answer):
            return Verdict.OVER_LIMIT
        tolerance = self._config.relative_tolerance
        verdicts = {compare.quick_verdict(gold, answer, relative_tolerance=tolerance) for gold in golds}
        if None not in verdicts or Verdict.CORRECT in verdicts:
            return of_any(verdicts)
        return None if normal_form(answer) else Verdict.NO_ANSWER

    def _slow_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        answer = _bare(answer)
        began = time.perf_counter()
        tolerance = self._config.relative_tolerance
        verdicts: set[Verdict | None] = {Verdict.OVER_LIMIT} if limits.exceeded_limit(answer) else set()
        for gold in golds if not verdicts else ():
            verdict = compare.quick_verdict(gold, answer, relative_tolerance=tolerance)
            if verdict is None:
                over = limits.exceeded_limit(gold)
                verdict = Verdict.OVER_LIMIT if over else self._ask({"gold": gold, "answer": answer})
            verdicts.add(verdict)
            if verdict is Verdict.CORRECT:
                break
        decided, wrong = of_any(verdicts), self._config.unreadable_is is UnreadableIs.wrong
        if decided in _UNREAD and wrong and all(self.parses(gold) for gold in golds):
            decided = Verdict.INCORRECT
        return self._remember((golds, answer), decided, began)

    def _ask(self, task: dict[str, str]) -> Verdict:
        with self._child() as child:
            return child.verdict(task)

    def _remember(self, key: tuple[tuple[str, ...], str], verdict: Verdict, began: float) -> Grade:
        grade = Grade(verdict=verdict, answer=key[1][:MAX_ANSWER_KEPT], ms=(time.perf_counter() - began) * 1000)
        # The machine may have caused a crash, so the answer is graded again the next time. Long answers would fill the memory.
        if verdict is not Verdict.CRASHED and len(key[1]) <= MAX_ANSWER_KEPT:
            self._cache.keep(key, grade)
        return grade
