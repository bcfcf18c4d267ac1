"""Runs cells and tests in the sandbox of `graders.code`, and reads what its processes state. Nothing of a step runs here."""

import json
import signal
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.graders.code.child_process import ChildProcess, memory_file, read_note
from pipeline.graders.code.wire import ProgramReport, ProgramTask, TaskKind
from pipeline.graders.process_pool import ChildPool
from pipeline.graders.settings import CodeConfig as SandboxConfig
from pipeline.verifiers.code.stated import Case
from pipeline.verifiers.settings import CodeConfig

MEMORY_FOR_THE_SANDBOX = 512
"""MiB in which `ChildProcess` tries the sandbox out."""


class NoOutcome(Exception):
    """Why a run says nothing of a program, such as a limit that it has reached."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has stated, as plain values of unknown types: the process of a program may state anything."""

    stated: Mapping[str, Any]

    def text(self, name: str) -> str:
        value = self.stated.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        value = self.stated.get(name)
        return value if isinstance(value, int) else 0

    def texts(self, name: str) -> frozenset[str]:
        value = self.stated.get(name)
        return frozenset(part for part in value if isinstance(part, str)) if isinstance(value, list) else frozenset()

    def has(self, name: str) -> bool:
        value = self.stated.get(name)
        return value is not None and value is not False and value != ""


class Sandbox:
    """Confined processes for one run at a time. They are started when first needed, and end with this object."""

    def __init__(self, settings: CodeConfig) -> None:
        self._settings = settings
        child = ChildProcess(SandboxConfig(kind="code", memory_mib=MEMORY_FOR_THE_SANDBOX, sandbox=settings.sandbox))
        self._pool = ChildPool([child], "this verifier")
        weakref.finalize(self, child.kill)

    def run(self, cells: Sequence[str], again: Sequence[Sequence[str]], given: int) -> Outcome:
        """Run cells in order, after each its tests, and assertions of earlier ones `again`. `given`: how many are not a step's.

        Raises NoOutcome and StepvalueError."""
        asked = {"cells": list(cells), "again": [list(each) for each in again], "given": given}
        with (
            memory_file([json.dumps(asked).encode()]) as content,
            memory_file() as statement,
            self._pool.child() as child,
        ):
            report = child.run(self._task(TaskKind.CELLS), [content, statement])
            return self._outcome(report, statement)

    def judge(self, cells: Sequence[str], cases: Sequence[Case]) -> Outcome:
        """Run cells in one process and tests of them in another. Raises NoOutcome and StepvalueError."""
        tests = [{name: value for name, value in asdict(case).items() if value is not None} for case in cases]
        with (
            memory_file([json.dumps({"cells": list(cells)}).encode()]) as content,
            memory_file([json.dumps({"cases": tests}).encode()]) as asked,
            memory_file() as statement,
            self._pool.child() as child,
        ):
            report = child.run(self._task(TaskKind.CASES), [content, asked, statement])
            return self._outcome(report, statement)

    def _outcome(self, report: ProgramReport | None, statement: int) -> Outcome:
        if report is None or not report.began or report.unseen:
            raise NoOutcome("the program's process was lost")
        if report.exhausted or report.status == -signal.SIGXCPU:
            raise NoOutcome("the program reaches a limit of processor time, threads or files")
        if report.late:
            raise NoOutcome("the program does not end in time")
        try:
            stated = json.loads(read_note(statement))
        except (ValueError, RecursionError):
            stated = None
        if not isinstance(stated, dict):
            raise NoOutcome("the program ends its process")
        return Outcome(stated)

    def _task(self, kind: TaskKind) -> ProgramTask:
        settings = self._settings
        return ProgramTask(
            kind=kind,
            cpu_seconds=settings.cpu_seconds,
            wall_seconds=settings.wall_seconds,
            memory_bytes=settings.program_memory_mib << 20,
        )
