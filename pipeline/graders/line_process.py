"""Child processes that are asked in lines and answer in lines, seen from the parent.

A child is a module of this package. It runs in a session of its own, without the parent's environment, standard error and
working directory, and is killed with all processes that it started.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pipeline
from pipeline.core.errors import StepvalueError

PACKAGE_ROOT = str(Path(pipeline.__file__).resolve().parent.parent)
_INHERITED = ("LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "COVERAGE_PROCESS_START")
Process = subprocess.Popen[bytes]
START_SECONDS = 120.0
START_TRIES = 3
ASK_TRIES = 2
"""A child that ends without a reply may have been killed for lack of memory, or by a person."""


def start_module(
    module: str, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, paths: Sequence[str] = ()
) -> Process:
    """A process that runs a module. Lines go to its `stdin` and come from its `stdout`. `paths`: where it may find modules,
    after the package's own."""
    # Absolute entries only: the child has another working directory.
    known = filter(os.path.isabs, [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *paths])
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # -P: no file in the working directory can replace a library.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd="/",
        start_new_session=True,
        env=inherited | dict(environment or {}) | {"PYTHONPATH": os.pathsep.join([PACKAGE_ROOT, *known])},
    )


def write_line(process: Process, line: bytes) -> None:
    """Send a line, which has no line end yet. Raises OSError if the child has ended."""
    assert process.stdin is not None
    rest = memoryview(line + b"\n")
    # Without a buffer, a write to a pipe may take a part of a long line.
    while rest:
        rest = rest[process.stdin.write(rest) or 0 :]


def read_line(process: Process, seconds: float) -> bytes:
    """One line from the child, or b"" if the child has ended. Raises TimeoutError after `seconds`."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    # poll() instead of select(): a worker with many open files has descriptors above select()'s limit of 1024.
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + seconds
    line = b""
    while not line.endswith(b"\n"):
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        piece = os.read(descriptor, 4096)
        if not piece:
            return b""
        line += piece
    return line


def end(process: Process) -> None:
    """Kill the process and what it started, and close its pipes."""
    if process.returncode is None:
        # Its group, because the child may have started others. Until it is waited for, the number of the group is its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


class LineChild:
    """A process of a module, started when it is first asked, and replaced after it ends or has had `most_tasks` tasks. One
    thread at a time may use it. `not_started`: the error where no process starts. `more`: see `start_module`."""

    def __init__(
        self, module: str, arguments: Sequence[str], most_tasks: int, not_started: StepvalueError, **more: Any
    ) -> None:
        self.process: Process | None = None
        self.tasks = 0
        self._begun = partial(start_module, module, arguments, **more)
        self._most_tasks = most_tasks
        self._not_started = not_started

    def is_ready(self, process: Process) -> bool:
        """Wait for a new process. False if it has ended. Raises OSError where it cannot be asked."""
        return bool(read_line(process, START_SECONDS))

    def start(self) -> Process:
        """The process, started if there is none. Tries again if it ends before it is ready, for example for lack of memory."""
        if self.process is not None and (self.process.poll() is not None or self.tasks >= self._most_tasks):
            self.kill()
        for _ in range(START_TRIES):
            if self.process is not None:
                return self.process
            self.process, self.tasks = self._begun(), 0
            with contextlib.suppress(OSError):
                if self.is_ready(self.process):
                    return self.process
            self.kill()
        raise self._not_started

    def ask(self, line: Callable[[], bytes], seconds: float) -> bytes:
        """The answer to a line, which is made when the process is there; b"" if `ASK_TRIES` processes end without a reply.

        Raises TimeoutError for a late process, which is killed, and what `start` raises.
        """
        for _ in range(ASK_TRIES):
            process = self.start()
            try:
                write_line(process, line())
                reply = read_line(process, seconds)
            except TimeoutError:
                self.kill()
                raise
            except (OSError, ValueError):
                reply = b""
            if reply:
                self.tasks += 1
                return reply
            self.kill()
        return b""

    def kill(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            end(process)
