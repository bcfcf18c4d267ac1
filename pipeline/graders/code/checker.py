"""The checker of code problems. A gold is a test suite, an answer is a program, and the verdict says whether it passes.

TIMEOUT: the wall time ran out before the processor time, or `grader.suite_seconds` did. CRASHED: the program or its tests were
killed from outside, the process of the tests died, or the machine hides whether the program keeps its limits. Of both,
`Grade.by_machine` says whether a busy machine, or one without memory, may be the cause. The README describes other verdicts.
Covered: no code of a program or a suite runs in this process. A program never shares a process with its tests or the expected
results (`runs`, `wire`), so it cannot read or replace them or claim that it passed. `sandbox` lists what it cannot access.
Usable from any thread, with `grader.processes` runs at once.
Not covered: decisions inside the program's own process. The `__eq__` and `__bool__` of its classes decide whether its objects
are equal to each other or true, so such an object can pass a test that asserts only that.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any

from pipeline.core.ids import content_id
from pipeline.core.records import Grade, Verdict
from pipeline.graders.base import MAX_ANSWER_KEPT, of_any
from pipeline.graders.code.child_process import ChildProcess, json_file, memory_file, read_note, size_of
from pipeline.graders.code.output import pieces, same_output
from pipeline.graders.code.program import MAX_PROGRAM_CHARS, program_in
from pipeline.graders.code.suite import (
    Assertions,
    Calls,
    OversizedSuiteError,
    Streams,
    UnreadableSuiteError,
    read_suite,
)
from pipeline.graders.code.wire import ProgramReport, ProgramTask, Statement, TaskKind, text_pieces
from pipeline.graders.process_pool import PooledChecker, VerdictCache
from pipeline.graders.settings import CodeConfig

SUITES_KEPT = 16
AT_ONCE_BYTES = 2**18
"""Longer outputs are compared in a confined process."""
COMPARISON_SECONDS = 120.0
COMPARISON_MEMORY_BYTES = 2**30
DEPRIVED_SHARE = 0.25
"""A late run from which others took the processor for less of its wall time is late by itself."""
PATIENCE = 4.0
"""How many times as long a patient grade may take where others take the processor."""
_SIGKILL = -9
# The machine may have caused these verdicts, so they are not cached.
_PASSING = frozenset({Verdict.TIMEOUT, Verdict.CRASHED})


_Run = tuple[ProgramTask, ProgramReport | None]
"""A task and its report. None: the child was lost."""


@dataclass(frozen=True, slots=True)
class _Try:
    """The runs for one suite, in order, and how patient they are."""

    patience: float
    runs: list[_Run] = field(default_factory=list)

    @property
    def own_seconds(self) -> float:
        """The wall time without the time for which others had the processor."""
        reports = [report for _, report in self.runs if report is not None]
        return sum(report.wall_seconds - (report.deprived_seconds or 0.0) for report in reports)

    def run(self, child: ChildProcess, task: ProgramTask, descriptors: Sequence[int]) -> ProgramReport | None:
        task = replace(task, patience=self.patience)
        report = child.run(task, descriptors)
        self.runs.append((task, report))
        return report


class CodeChecker(PooledChecker[ChildProcess]):
    """Grades programs. The constructor raises StepvalueError if the machine cannot provide `grader.sandbox`."""

    Config = CodeConfig
    no_ending = "takes the last program of a whole text"

    def __init__(self, config: CodeConfig) -> None:
        super().__init__([ChildProcess(config) for _ in range(config.processes)])
        self._config = config
        self._cache: VerdictCache[str] = VerdictCache()
        self._suite = lru_cache(SUITES_KEPT)(read_suite)
        self._golds_id = lru_cache(SUITES_KEPT)(lambda golds: content_id(*golds))
        self._children[0].start()

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        """The program in a text. If the text was cut short (`complete` is false), only a closed fenced block counts."""
        return program_in(text, complete=complete)

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        """The result of `grade_answer` if no program has to be run for it, else None."""
        if answer is None or not answer.strip():
            return Grade(verdict=Verdict.NO_ANSWER, answer="", ms=0.0)
        if len(answer) > MAX_PROGRAM_CHARS:
            return Grade(verdict=Verdict.OVER_LIMIT, answer=answer[:MAX_ANSWER_KEPT], ms=0.0)
        return self._cache.get(self._key(golds, answer))

    def grade_patiently(self, golds: tuple[str, ...], answer: str) -> Grade:
        """Like `grade_answer`. Time for which others have the processor does not count, up to `PATIENCE` times the waits."""
        return self.grade_answer(golds, answer, PATIENCE)

    def grade_answer(self, golds: tuple[str, ...], answer: str, patience: float = 1.0) -> Grade:
        """The grade of a bare program. It is correct if it passes any of the suites.

        Waits at most `grader.suite_seconds` per gold, plus one deadline. Both are longer with `patience`.
        """
        if known := self.quick_answer(golds, answer):
            return known
        began = time.perf_counter()
        verdicts: dict[Verdict, bool] = {}
        for gold in golds:
            attempt = _Try(patience)
            verdict = self._verdict(gold, answer, attempt)
            by_machine = _is_by_machine(verdict, attempt.runs, self._config.suite_seconds)
            verdicts[verdict] = verdicts.get(verdict, False) or by_machine
            if verdict is Verdict.CORRECT:
                break
        final = of_any(verdicts)
        grade = Grade(
            verdict=final,
            answer=answer[:MAX_ANSWER_KEPT],
            ms=(time.perf_counter() - began) * 1000,
            by_machine=verdicts.get(final, False),
        )
        if final not in _PASSING:
            self._cache.keep(self._key(golds, answer), grade)
        return grade

    def parses(self, gold: str) -> bool:
        """Whether `gold` is a suite within the limits that contains a test. Its source is parsed in a child, and never run."""
        try:
            suite = self._suite(gold)
        except (UnreadableSuiteError, OversizedSuiteError):
            return False
        if not isinstance(suite, Assertions):
            return True
        with self._child() as child, json_file(_tests(suite, 0.0)) as tests, memory_file() as statement:
            child.run(self._task(TaskKind.TESTS), [tests, statement])
            return _stated(statement) is Statement.PASSED

    def _key(self, golds: tuple[str, ...], answer: str) -> str:
        return content_id(self._golds_id(golds), answer)

    def _verdict(self, gold: str, program: str, attempt: _Try) -> Verdict:
        try:
            suite = self._suite(gold)
        except UnreadableSuiteError:
            return Verdict.UNPARSEABLE
        except OversizedSuiteError:
            return Verdict.OVER_LIMIT
        with self._child() as child:
            if isinstance(suite, Streams):
                return self._streamed(child, suite, program, attempt)
            return self._called(child, suite, program, attempt)

    def _streamed(self, child: ChildProcess, suite: Streams, program: str, attempt: _Try) -> Verdict:
        """The verdict of tests on standard input and output. Each test is one run. Stops at the first test that fails."""
        began, allowed = time.monotonic(), self._config.suite_seconds
        task = self._task(TaskKind.SCRIPT)
        with json_file({"program": program}) as content:
            for given_text, wanted in suite.tests:
                elapsed = time.monotonic() - began
                if elapsed >= allowed * attempt.patience or (elapsed >= allowed and attempt.own_seconds >= allowed):
                    return Verdict.TIMEOUT
                with memory_file(_encoded(given_text)) as given, memory_file() as output:
                    fault = _fault(attempt.run(child, task, [content, given, output]))
                    verdict = fault or self._compared(child, wanted, output, attempt)
                    if verdict is not Verdict.CORRECT:
                        return verdict
        return Verdict.CORRECT

    def _compared(self, child: ChildProcess, wanted: str, output: int, attempt: _Try) -> Verdict:
        tolerance = self._config.relative_tolerance
        if size_of(output) <= AT_ONCE_BYTES:
            same = len(wanted) <= AT_ONCE_BYTES and wanted.rstrip() == "".join(text_pieces(output)).rstrip()
            same = same or same_output(pieces(wanted), text_pieces(output), tolerance=tolerance)
            return Verdict.CORRECT if same else Verdict.INCORRECT
        head = json.dumps({"tolerance": tolerance}).encode() + b"\n"
        task = replace(
            self._task(TaskKind.OUTPUT), wall_seconds=COMPARISON_SECONDS, memory_bytes=COMPARISON_MEMORY_BYTES
        )
        with memory_file(chain((head,), _encoded(wanted))) as content, memory_file() as statement:
            report = attempt.run(child, task, [content, output, statement])
            stated = _stated(statement)
        if stated is None:
            return Verdict.TIMEOUT if report is not None and report.late else Verdict.CRASHED
        return Verdict.CORRECT if stated is Statement.PASSED else Verdict.INCORRECT

    def _called(self, child: ChildProcess, suite: Assertions | Calls, program: str, attempt: _Try) -> Verdict:
        """The verdict of tests that call the functions of the program, in one run of two processes."""
        with (
            json_file({"program": program, "prelude": suite.prelude}) as content,
            json_file(_tests(suite, self._config.relative_tolerance)) as tests,
            memory_file() as statement,
        ):
            report = attempt.run(child, self._task(TaskKind.SUITE), [content, tests, statement])
            stated = _stated(statement)
        if stated is Statement.PASSED:
            return Verdict.CORRECT
        if stated is Statement.UNREADABLE:
            return Verdict.UNPARSEABLE
        return _fault(report, serves=True) or (Verdict.INCORRECT if stated is Statement.FAILED else Verdict.CRASHED)

    def _task(self, kind: TaskKind) -> ProgramTask:
        config = self._config
        memory = config.memory_mib << 20
        return ProgramTask(
            kind=kind, cpu_seconds=config.cpu_seconds, wall_seconds=config.deadline_seconds, memory_bytes=memory
        )


def _fault(report: ProgramReport | None, *, serves: bool = False) -> Verdict | None:
    """The verdict on a run that went wrong, or None if the program ended well. If it `serves`, it may be ended from outside."""
    if report is None or not report.began:
        return Verdict.CRASHED
    if report.exhausted:
        return Verdict.INCORRECT
    if report.late:
        return Verdict.TIMEOUT
    if report.unseen or report.status == _SIGKILL:
        # Another process sent it: the filter of system calls keeps a program from sending this signal, even to itself.
        return Verdict.CRASHED
    ended_well = report.status == 0 or (serves and report.status is None)
    return None if ended_well else Verdict.INCORRECT


def _is_by_machine(verdict: Verdict, runs: Sequence[_Run], suite_seconds: float) -> bool:
    """Whether the machine may have caused a TIMEOUT or CRASHED.

    A run that others made late had less than its time to itself. A process that is killed from outside may be a victim of a
    machine without memory; no limit of its own kills it so.
    """
    last_task, last = runs[-1] if runs else (None, None)
    if verdict is Verdict.CRASHED:
        return last is None or not last.began or last.unseen or _SIGKILL in (last.status, last.last_status)
    if verdict is not Verdict.TIMEOUT:
        return False
    # Without a late run, all runs together took longer than a suite may take.
    if last_task is not None and (last is None or last.late):
        runs, suite_seconds = runs[-1:], last_task.wall_seconds
    reports = [report for _, report in runs if report is not None]
    deprived = [report.deprived_seconds for report in reports if report.deprived_seconds is not None]
    if not reports or len(deprived) < len(reports):
        return True
    wall = sum(report.wall_seconds for report in reports)
    return sum(deprived) >= DEPRIVED_SHARE * wall and wall - sum(deprived) < suite_seconds


def _tests(suite: Assertions | Calls, tolerance: float) -> dict[str, Any]:
    if isinstance(suite, Assertions):
        return {"source": suite.source, "entry_point": suite.entry_point}
    return {"function": suite.function, "calls": suite.tests, "tolerance": tolerance}


def _encoded(text: str) -> Iterable[bytes]:
    return (piece.encode("utf-8", "surrogatepass") for piece in pieces(text))


def _stated(descriptor: int) -> Statement | None:
    """What the process of the tests has stated. None if it ended before, or wrote something else."""
    try:
        return Statement(read_note(descriptor))
    except ValueError:
        return None
