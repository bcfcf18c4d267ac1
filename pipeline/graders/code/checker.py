"""The checker of code problems: a gold is a test suite, an answer is a program, and the verdict is whether it passes.

All tests pass: CORRECT. A test that fails, an exception, an exit before the tests have passed, or more memory, processor
time, output, threads or files than the limits: INCORRECT, since those are the program's doing. The wall deadline without
the processor time used (asleep, blocked, or the machine is busy): TIMEOUT. Killed from elsewhere: CRASHED. No program in the
text: NO_ANSWER. Too large: OVER_LIMIT. A suite that cannot be read: UNPARSEABLE.

Covered: nothing of a program or a suite runs in this process. A program never shares a process with its tests or with what
is expected of it (`runs`, `wire`), so it cannot read or replace them, or say that it passed; `sandbox` says what it
cannot reach. Usable from any thread; `grader.processes` runs at once, each with a child that is killed when it is late.
Not covered: what a program may decide in its own process. An object of its own class equals another object of its own as its
`__eq__` says, and is true as its `__bool__` says, so a test that asserts no more than that can be met by such an object.
Programs get the standard library alone, and see the arguments they are called with.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from pipeline.core.ids import content_id
from pipeline.core.records import Grade, Verdict
from pipeline.graders.base import MAX_ANSWER_KEPT, of_any
from pipeline.graders.code.output import same_output
from pipeline.graders.code.program import MAX_PROGRAM_CHARS, program_in
from pipeline.graders.code.slot import Slot, memory_file, read_memory_file
from pipeline.graders.code.suite import (
    Assertions,
    Calls,
    OversizedSuiteError,
    Streams,
    UnreadableSuiteError,
    read_suite,
)
from pipeline.graders.code.wire import ProgramReport, ProgramTask, Statement, TaskKind
from pipeline.graders.process_pool import PooledChecker, VerdictCache
from pipeline.graders.settings import CodeConfig

SUITES_KEPT = 16
_SIGKILL = -9
# May be the machine's doing, so the next such program is run again.
_PASSING = frozenset({Verdict.TIMEOUT, Verdict.CRASHED})


class CodeChecker(PooledChecker[Slot]):
    """Grades programs. Raises StepvalueError at once where programs cannot be confined as `grader.sandbox` demands."""

    Config = CodeConfig
    no_ending = "takes the last program of a whole text"

    def __init__(self, config: CodeConfig) -> None:
        super().__init__([Slot(config) for _ in range(config.processes)])
        self._config = config
        self._cache: VerdictCache[str] = VerdictCache()
        self._suite = lru_cache(SUITES_KEPT)(read_suite)
        self._golds_id = lru_cache(SUITES_KEPT)(lambda golds: content_id(*golds))
        self._children[0].start()

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The program that a text states. Of a text that was cut short (`complete` false) only a fenced one that is closed."""
        return program_in(text, complete=complete)

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        """The grade of `grade_answer` where no program has to be run for it."""
        if answer is None or not answer.strip():
            return Grade(verdict=Verdict.NO_ANSWER, answer="", ms=0.0)
        if len(answer) > MAX_PROGRAM_CHARS:
            return Grade(verdict=Verdict.OVER_LIMIT, answer=answer[:MAX_ANSWER_KEPT], ms=0.0)
        return self._cache.get(self._key(golds, answer))

    def grade_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        """The verdict on a bare program: correct if it passes any of the suites.

        Waits at most `grader.suite_seconds` per gold, plus one deadline.
        """
        known = self.quick_answer(golds, answer)
        if known is not None:
            return known
        began = time.perf_counter()
        verdicts = set()
        for gold in golds:
            verdicts.add(self._verdict(gold, answer))
            if Verdict.CORRECT in verdicts:
                break
        final = of_any(verdicts)
        grade = Grade(verdict=final, answer=answer[:MAX_ANSWER_KEPT], ms=(time.perf_counter() - began) * 1000)
        if final not in _PASSING:
            self._cache.keep(self._key(golds, answer), grade)
        return grade

    def parses(self, gold: str) -> bool:
        """Whether `gold` is a suite with a test in it, within the limits. Source is parsed in a child, and never run."""
        try:
            suite = self._suite(gold)
        except (UnreadableSuiteError, OversizedSuiteError):
            return False
        if not isinstance(suite, Assertions):
            return True
        with self._child() as slot, _content(_tests(suite, 0.0)) as tests, memory_file() as statement:
            slot.run(self._task(TaskKind.TESTS), [tests, statement])
            return _stated(statement) is Statement.PASSED

    def _key(self, golds: tuple[str, ...], answer: str) -> str:
        return content_id(self._golds_id(golds), answer)

    def _verdict(self, gold: str, program: str) -> Verdict:
        try:
            suite = self._suite(gold)
        except UnreadableSuiteError:
            return Verdict.UNPARSEABLE
        except OversizedSuiteError:
            return Verdict.OVER_LIMIT
        with self._child() as slot:
            return (
                self._streamed(slot, suite, program)
                if isinstance(suite, Streams)
                else self._called(slot, suite, program)
            )

    def _streamed(self, slot: Slot, suite: Streams, program: str) -> Verdict:
        """The verdict of tests on standard input and output: a run for each, up to the first that is not passed."""
        tolerance, deadline = self._config.relative_tolerance, time.monotonic() + self._config.suite_seconds
        with _content({"program": program}) as content:
            for test in suite.tests:
                if time.monotonic() >= deadline:
                    return Verdict.TIMEOUT
                with memory_file(test.given.encode("utf-8", "surrogatepass")) as given, memory_file() as output:
                    report = slot.run(self._task(TaskKind.SCRIPT), [content, given, output])
                    fault = _fault(report)
                    if fault is not None:
                        return fault
                    if not same_output(test.wanted, read_memory_file(output), tolerance=tolerance):
                        return Verdict.INCORRECT
        return Verdict.CORRECT

    def _called(self, slot: Slot, suite: Assertions | Calls, program: str) -> Verdict:
        """The verdict of tests that call the program's functions: one run, in two processes."""
        with (
            _content({"program": program, "prelude": suite.prelude}) as content,
            _content(_tests(suite, self._config.relative_tolerance)) as tests,
            memory_file() as statement,
        ):
            report = slot.run(self._task(TaskKind.SUITE), [content, tests, statement])
            stated = _stated(statement)
        if stated is Statement.PASSED:
            return Verdict.CORRECT
        if stated is Statement.UNREADABLE:
            return Verdict.UNPARSEABLE
        fault = _fault(report, serves=True)
        if fault is not None:
            return fault
        return Verdict.INCORRECT if stated is Statement.FAILED else Verdict.CRASHED

    def _task(self, kind: TaskKind) -> ProgramTask:
        config = self._config
        return ProgramTask(
            kind=kind,
            cpu_seconds=config.cpu_seconds,
            wall_seconds=config.deadline_seconds,
            memory_bytes=config.memory_mib << 20,
        )


def _fault(report: ProgramReport | None, *, serves: bool = False) -> Verdict | None:
    """What went wrong with the program of a run, None where it ended well; one that `serves` is ended from outside."""
    if report is None or not report.began:
        return Verdict.CRASHED
    if report.exhausted:
        return Verdict.INCORRECT
    if report.late:
        return Verdict.TIMEOUT
    if report.status == _SIGKILL:
        # A program cannot send this signal, not even to itself.
        return Verdict.CRASHED
    ended_well = report.status == 0 or (serves and report.status is None)
    return None if ended_well else Verdict.INCORRECT


def _tests(suite: Assertions | Calls, tolerance: float) -> dict[str, Any]:
    if isinstance(suite, Assertions):
        return {"source": suite.source, "entry_point": suite.entry_point}
    calls = [[test.arguments, test.wanted] for test in suite.tests]
    return {"function": suite.function, "calls": calls, "tolerance": tolerance}


@contextmanager
def _content(value: dict[str, Any]) -> Iterator[int]:
    with memory_file(json.dumps(value).encode()) as descriptor:
        yield descriptor


def _stated(descriptor: int) -> Statement | None:
    """What the process with the tests has stated, None where it ended before or wrote something else."""
    try:
        return Statement(read_memory_file(descriptor))
    except ValueError:
        return None
