"""Does a command that has workers for a Python call: in a process of its own, whose reports it passes on, and which it stops
when the caller is interrupted."""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pipeline
from pipeline.cli.command import Command
from pipeline.core import errors
from pipeline.core.errors import Interrupted, RunInterrupted, StepvalueError
from pipeline.core.progress import Status
from pipeline.python.overrides import Setting, overrides_of, with_options
from pipeline.python.views import progress_view

if TYPE_CHECKING:
    from pipeline.runtime.objects import Given, Packed

_PACKAGE_ROOT = str(Path(pipeline.__file__).resolve().parent.parent)
_STOPPED = "interrupted; what was committed is kept: the same call continues the run"
_TOO_LATE = "interrupted, but the run was finished before it could stop: the same call returns it"
_LAST_LINES = 10
_RELAY_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """`command`: one that has workers. `overrides`: its settings. `objects`: those that the call gave; None without any."""

    command: str
    overrides: Sequence[str]
    objects: "Packed | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a task has ended. `found`: what the call gets, see `cli.workers.Work`; None if it is not done. Then `error` is the
    name of the error, empty for one that is none of ours, and `message` its message."""

    found: Any = None
    error: str = ""
    message: str = ""

    def result(self) -> Any:
        """What was found. Raises the error, as the type of `pipeline.core.errors` that it was."""
        if self.found is not None:
            return self.found
        kind = getattr(errors, self.error, None) if self.error else None
        if kind is None:
            raise StepvalueError(
                f"the process that works for this call failed; its committed work is kept:\n{self.message}"
            )
        raise kind(self.message)


def done_for_call(
    command: Command, asked: Iterable[Setting], objects: "tuple[Given, ...]" = (), *, progress: bool
) -> Any:
    """Do a command, show its progress where that is wanted, and return what it found. `objects`: those that it may need.

    Raises as `done_elsewhere` does, and UsageError for settings that contradict each other and for an object that cannot be
    pickled."""
    packed_objects = None
    if objects:
        from pipeline.runtime.objects import packed

        packed_objects = packed(objects)
    overrides = overrides_of(with_options(asked, command))
    task = Task(command=command.name, overrides=overrides, objects=packed_objects)
    with progress_view(shown=progress) as watch:
        return done_elsewhere(task, watch)


def done_elsewhere(task: Task, watch: Callable[[Status], None]) -> Any:
    """Do a task, call `watch` with each status, and return what was found.

    Raises what the driver of the command raises, UsageError for settings that are wrong, and RunInterrupted after Ctrl-C,
    once the process has stored its work. A second Ctrl-C ends it at once. Interrupted is a process that somebody else stopped.
    """
    ours, theirs = Pipe()
    with ours:
        with theirs:
            process = _started(theirs)
        said = _Relay(process)
        with suppress(BrokenPipeError):  # it has ended already, and its outcome says so
            ours.send(task)
        outcome, interrupted = _heard(ours, process, watch)
        process.wait()
        said.finish()
    if outcome is None:
        stopped = process.returncode == Interrupted.exit_code
        outcome = Outcome(error=Interrupted.__name__ if stopped else "", message=said.last())
    if interrupted and outcome.found is not None:
        # A loop over runs must end here too.
        raise RunInterrupted(_TOO_LATE)
    if interrupted and outcome.error in ("", Interrupted.__name__):
        raise RunInterrupted(_STOPPED)
    return outcome.result()


def _started(theirs: "Connection[Any, Any]") -> "subprocess.Popen[str]":
    paths = [_PACKAGE_ROOT, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return subprocess.Popen(
        # -P: no file in the working directory can replace a library, as a folder `pipeline` would.
        [sys.executable, "-P", "-m", "pipeline.python.child", str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        # Ctrl-C reaches the caller alone, which passes it on.
        start_new_session=True,
    )


def _heard(
    ours: "Connection[Any, Any]", process: "subprocess.Popen[str]", watch: Callable[[Status], None]
) -> tuple[Outcome | None, bool]:
    """The outcome, None where the process ended without one, and whether Ctrl-C came meanwhile."""
    events: queue.SimpleQueue[Status | Outcome | None] = queue.SimpleQueue()
    # A message must not be torn by Ctrl-C, so another thread reads them.
    threading.Thread(target=_read, args=(ours, events), daemon=True).start()
    interrupted = False
    while True:
        try:
            event = events.get()
            if event is None or isinstance(event, Outcome):
                return event, interrupted
            watch(event)
        except KeyboardInterrupt:
            interrupted = True
            process.send_signal(signal.SIGINT)


def _read(ours: "Connection[Any, Any]", events: "queue.SimpleQueue[Status | Outcome | None]") -> None:
    try:
        while True:
            events.put(ours.recv())
    except (EOFError, OSError):
        events.put(None)


class _Relay:
    """Prints what a process prints to this one's standard error, which a notebook shows."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._relay, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        # What the run started may hold its output open for longer.
        self._thread.join(_RELAY_SECONDS)

    def last(self) -> str:
        """Its exit code, and the last lines that it printed."""
        return f"exit code {self._process.returncode}\n{''.join(self._lines)}"

    def _relay(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines = [*self._lines[1 - _LAST_LINES :], line]
            sys.stderr.write(line)
