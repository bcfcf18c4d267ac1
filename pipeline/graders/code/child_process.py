"""The process that runs `child`, and its folder. It is started when first needed and replaced after it ends."""

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict

from pipeline.config.choices import Sandbox
from pipeline.core.errors import StepvalueError
from pipeline.graders.code.sandbox import empty_folder
from pipeline.graders.code.wire import ProgramReport, ProgramTask, TaskKind
from pipeline.graders.line_process import PACKAGE_ROOT
from pipeline.graders.settings import CodeConfig

START_SECONDS = 60.0
GRACE_SECONDS = 30.0
"""If no report arrives for this long after the longest time of a run, the process is killed."""
REMOVAL_ATTEMPTS = 50
MAX_NOTE_BYTES = 4096
"""Limit of what is read of the last words of a process."""

_CHILD = "pipeline.graders.code.child"
_INHERITED = ("LD_LIBRARY_PATH",)
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_REQUIRED: dict[Sandbox, tuple[str, ...]] = {
    Sandbox.full: ("system_calls", "files", "threads"),
    Sandbox.standard: ("system_calls",),
    Sandbox.limits: (),
}
_MISSING = {
    "system_calls": "seccomp, which keeps programs from the network and from starting processes, is not available. Use Linux "
    "5.3 or newer on x86-64 or aarch64, and a container that allows seccomp; or set grader.sandbox=limits to run programs "
    "without it",
    "files": "Landlock, which keeps programs from reading files, is not available. Use Linux 5.13 or newer, booted with "
    "Landlock; or set grader.sandbox=standard to run programs without it",
    "threads": "a kernel that asks before each new thread of a program, so that no program has more than 64 at any moment, is "
    "not available. Use Linux 5.5 or newer, and a container whose runtime does not listen to system calls itself; or set "
    "grader.sandbox=standard, where threads are counted only now and then",
}


class ChildProcess:
    """Runs one task at a time. Only one thread may use it at a time."""

    def __init__(self, config: CodeConfig) -> None:
        self._config = config
        self._control: socket.socket | None = None
        self._folder: str | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process if none is running.

        Raises StepvalueError if it does not start, or if it cannot provide the protection of `grader.sandbox`.
        """
        if self.process is not None and self.process.poll() is None:
            return
        self.kill()
        required = _REQUIRED[self._config.sandbox]
        self._folder = tempfile.mkdtemp(prefix="stepvalue-code-")
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        with theirs, memory_file() as errors:
            # A fixed hash seed makes verdicts reproducible. -s, -S and -B: no user's folder, no site packages, no bytecode.
            self.process = subprocess.Popen(
                [
                    sys.executable, "-P", "-s", "-S", "-B", "-X", "utf8", "-m", _CHILD,
                    str(theirs.fileno()), self._folder, *required,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd="/",
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
                env=environment | {"PYTHONPATH": PACKAGE_ROOT, "PYTHONHASHSEED": "0"},
            )  # fmt: skip
            theirs.close()
            if not self._heard(START_SECONDS):
                self.kill()
                last = read_note(errors).strip().rpartition("\n")[2] or "it prints no error"
                raise StepvalueError(
                    f"the process that runs programs does not start: {last}"
                    f" (grader.memory_mib={self._config.memory_mib}, Python {sys.executable})"
                )
        self._check(required)

    def run(self, task: ProgramTask, descriptors: Sequence[int]) -> ProgramReport | None:
        """Run a task with these open files. None if the process is lost. Raises StepvalueError like `start`."""
        self.start()
        return self._run(task, descriptors)

    def kill(self) -> None:
        """Kill the process and its runs, and remove its folder."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        if self._control is not None:
            self._control.close()
        if self._folder is not None:
            _remove(self._folder)
        self.process = self._control = self._folder = None

    def _run(self, task: ProgramTask, descriptors: Sequence[int]) -> ProgramReport | None:
        assert self._control is not None
        with suppress(OSError):
            socket.send_fds(self._control, [json.dumps(asdict(task)).encode()], descriptors)
            if reply := self._heard(task.longest_seconds + GRACE_SECONDS):
                return ProgramReport(**json.loads(reply))
        self.kill()
        return None

    def _heard(self, seconds: float) -> bytes:
        """The next message of the process, or b"" if it has ended or sends none within `seconds`."""
        assert self._control is not None
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        with suppress(OSError):
            return self._control.recv(4096) if poller.poll(seconds * 1000) else b""
        return b""

    def _check(self, required: Sequence[str]) -> None:
        memory_bytes = self._config.memory_mib << 20
        task = ProgramTask(
            kind=TaskKind.PROBE, cpu_seconds=START_SECONDS, wall_seconds=START_SECONDS, memory_bytes=memory_bytes
        )
        with json_file({}) as content, memory_file() as statement:
            if self._run(task, [content, statement]) is None:
                raise StepvalueError(
                    "the process that runs programs failed at its first task: it needs Linux 5.3 or newer"
                )
            found = read_note(statement).split()
        missing = [_MISSING[name] for name in required if name not in found]
        if missing:
            self.kill()
            raise StepvalueError(f"programs cannot be run safely here: {missing[0]}")


@contextmanager
def memory_file(content: Iterable[bytes] | None = None) -> Iterator[int]:
    """An open file without a name. It is empty and writable, or it contains the pieces `content` and cannot be changed."""
    descriptor = os.memfd_create("stepvalue", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        if content is not None:
            with open(descriptor, "wb", closefd=False) as stream:
                stream.writelines(content)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
            os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def json_file(value: object) -> AbstractContextManager[int]:
    """A `memory_file` with a value as JSON."""
    return memory_file([json.dumps(value).encode()])


def read_note(descriptor: int) -> str:
    """The last `MAX_NOTE_BYTES` of a memory file. Bytes that are not UTF-8 are replaced."""
    start = max(0, size_of(descriptor) - MAX_NOTE_BYTES)
    return os.pread(descriptor, MAX_NOTE_BYTES, start).decode("utf-8", "replace")


def size_of(descriptor: int) -> int:
    """The size of an open file in bytes."""
    return os.fstat(descriptor).st_size


def _remove(folder: str) -> None:
    """Remove a folder. It tries several times, because a process that is being killed may still write to it."""
    for _ in range(REMOVAL_ATTEMPTS):
        with suppress(OSError):
            empty_folder(folder)
            os.rmdir(folder)
        if not os.path.exists(folder):
            return
        time.sleep(0.02)
