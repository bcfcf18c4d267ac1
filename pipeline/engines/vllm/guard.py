"""Ends an engine's processes when their owner is gone, however it went.

vLLM works in processes of its own, and they outlive an owner that is killed: under pid 1, generating on, holding the device.
They carry a mark in their environment that names their owner, and a small process beside the owner ends them (see `reaper`).
What even that one could not end, because it was killed too, the next engine ends before it starts.

A mark names its owner by pid, start time and pid namespace, so that neither a new process under the pid of a dead owner nor a
process of a container, whose pids mean something else here, is taken for it. Left alone are processes of other users, those
without a mark of ours or with one whose owner lives, and the family of this process: all with the mark that it carries itself.
"""

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.errors import PolicyError
from pipeline.engines.vllm import reaper

END_SECONDS = 30.0
"""How long killed processes may take to end: those of a large model give gigabytes of memory back."""
_WAIT_SECONDS = 10.0
_LOOK_SECONDS = 0.05
_MARK = re.compile(r"(?P<namespace>\d+)-(?P<pid>\d+)-(?P<started>\d+)-[0-9a-f]{32}")
_DEAD_STATES = ("Z", "X")
_GONE = (FileNotFoundError, ProcessLookupError)


class EngineGuard:
    """Processes started after this one was made, and theirs, end with this process, or at `release`.

    Raises PolicyError when processes of an earlier owner can be found and not be ended.
    """

    def __init__(self) -> None:
        end_orphans()
        mark = mark_of_this_process()
        os.environ[reaper.MARK] = mark
        os.environ["SPT_NOENV"] = "1"  # else a process that renames itself overwrites the mark
        os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = (
            "spawn"  # a forked process shows the environment of its parent's start
        )
        self._process = subprocess.Popen(
            [sys.executable, "-I", reaper.__file__, mark],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env={},
            close_fds=True,
        )

    def release(self) -> None:
        """Kill what is left of the engine, and wait until it is gone."""
        os.environ.pop(reaper.MARK, None)
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_WAIT_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessName:
    """A process for good: pids are used again, a pid with a start time (in the kernel's ticks since boot) is not."""

    pid: int
    started: int


def mark_of_this_process() -> str:
    """A new mark that names this process as the owner."""
    owner = _living(os.getpid())
    return f"{_pid_namespace()}-{owner.pid}-{owner.started}-{secrets.token_hex(16)}"


def end_orphans(seconds: float = END_SECONDS) -> None:
    """Kill every process of this user that carries the mark of a dead owner, and wait until they are gone.

    Raises PolicyError, which names them, when some are still there after `seconds`.
    """
    deadline = time.monotonic() + seconds
    killed: set[ProcessName] = set()
    while True:
        # A process may be started while its parent is being killed: look again until there is none.
        found = list(_orphans())
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
        killed.update(found)
        left = sorted(process.pid for process in killed if _lives(process))
        if not found and not left:
            return
        if time.monotonic() > deadline:
            raise PolicyError(
                f"processes {', '.join(map(str, left))} of an engine whose owner died hold on to the device, and did not end "
                f"within {seconds:g} s of being killed: end them, or restart the machine, and start again"
            )
        time.sleep(_LOOK_SECONDS)


def _orphans() -> Iterator[ProcessName]:
    found = reaper.process_marks()
    for pid, mark in found.items():
        named = _MARK.fullmatch(mark)
        if named and int(named["namespace"]) == _pid_namespace() and mark != found.get(os.getpid()):
            owner = ProcessName(pid=int(named["pid"]), started=int(named["started"]))
            with contextlib.suppress(*_GONE):
                process = _living(pid)
                if not _lives(owner):
                    yield process


def _lives(process: ProcessName) -> bool:
    try:
        return _living(process.pid) == process
    except _GONE:
        return False


def _living(pid: int) -> ProcessName:
    """The process that has this pid now. Raises FileNotFoundError or ProcessLookupError when there is none, or when all that is
    left of it is its exit status, which holds no memory, device or file."""
    # The name of the program comes first, in brackets, and may hold any character; see proc_pid_stat(5) for the order.
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    state, threads, started = fields[0], int(fields[17]), int(fields[19])
    if state in _DEAD_STATES and threads <= 1:
        raise ProcessLookupError(f"process {pid} has ended")
    return ProcessName(pid=pid, started=started)


def _pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino
