"""Runs cells and tests in the sandbox of `graders.code`, and reads what its processes state. Nothing of a step runs here."""

import json
import signal
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.graders.code.child_process import ChildProcess, json_file, memory_file, read_note
from pipeline.graders.code.wire import ProgramTask, TaskKind
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

    def run(self, cells: Sequence[str]) -> Outcome:
        """Run cells in order, after each but the first its tests.

        Raises NoOutcome and StepvalueError."""
        return self._outcome(TaskKind.CELLS, {"cells": cells})

    def judge(self, cells: Sequence[str], cases: Sequence[Case]) -> Outcome:
        """Run cells in one process and tests of them in another. Raises NoOutcome and StepvalueError."""
        tests = [{name: value for name, value in asdict(case).items() if value is not None} for case in cases]
        return self._outcome(TaskKind.CASES, {"cells": cells}, {"cases": tests})

    def _outcome(self, kind: TaskKind, *contents: Mapping[str, Any]) -> Outcome:
        settings = self._settings
        memory = settings.program_memory_mib << 20
        task = ProgramTask(
            kind=kind, cpu_seconds=settings.cpu_seconds, wall_seconds=settings.wall_seconds, memory_bytes=memory
        )
        with ExitStack() as files, memory_file() as statement, self._pool.child() as child:
            report = child.run(task, [*(files.enter_context(json_file(each)) for each in contents), statement])
            stated = read_note(statement)
        if report is None or not report.began or report.unseen:
            raise NoOutcome("the program's process was lost")
        if report.exhausted or report.status == -signal.SIGXCPU:
            raise NoOutcome("the program reaches a limit of processor time, threads or files")
        if report.late:
            raise NoOutcome("the program does not end in time")
        with suppress(ValueError, RecursionError):
            if isinstance(found := json.loads(stated), dict):
                return Outcome(found)
        raise NoOutcome("the program ends its process")
