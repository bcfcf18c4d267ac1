"""Ends an engine's processes when their owner ends, in whatever way the owner ends.

vLLM runs in its own processes. They survive an owner that is killed: they become children of pid 1, keep generating and keep
the device. Each carries a mark in its environment that names its owner, and a small process started by the owner ends them
(see `reaper`). If that process was killed too, the next engine ends them before it starts.

A mark names its owner by pid, start time and pid namespace. It therefore cannot match a new process with the pid of a dead
owner, or a process of a container, where pids differ. The guard does not touch processes of other users, processes without a
mark or with a living owner, and processes with the same mark as this process.
"""

import contextlib
import os
import re
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.errors import PlaceError
from pipeline.engines.vllm import reaper

END_SECONDS = 30.0
"""How long killed processes may take to end. Those of a large model must release gigabytes of memory."""
_WAIT_SECONDS = 10.0
_LOOK_SECONDS = 0.05
_MARK = re.compile(r"(?P<namespace>\d+)-(?P<pid>\d+)-(?P<started>\d+)-[0-9a-f]{32}")
_DEAD_STATES = ("Z", "X")
_GONE = (FileNotFoundError, ProcessLookupError)


class EngineGuard:
    """Ends all processes that are started after its creation, and their children, with this process or at `release`.

    Raises PlaceError when processes of an earlier owner exist and cannot be ended.
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
            stdout=subprocess.PIPE,  # nothing is written to it: it closes when the guard process ends
            start_new_session=True,
            env={},
            close_fds=True,
        )
        self._process.wait()  # it has left the guard process, which is nobody's child

    def release(self) -> None:
        """Kill the remaining processes of the engine and wait for their end. Its own tracker ends with this process."""
        os.environ.pop(reaper.MARK, None)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
            select.select([self._process.stdout], [], [], _WAIT_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessName:
    """A unique process: a pid alone is reused, a pid with its start time (kernel ticks since boot) is not."""

    pid: int
    started: int


def mark_of_this_process() -> str:
    """A new mark that names this process as the owner."""
    owner = _living(os.getpid())
    return f"{_pid_namespace()}-{owner.pid}-{owner.started}-{secrets.token_hex(16)}"


def end_orphans(seconds: float = END_SECONDS) -> None:
    """Kill every process of this user that carries the mark of a dead owner, wait for their end, and remove what shared memory
    the engines of dead owners have left. Trackers have `TRACKER_SECONDS` to end by themselves.

    Raises PlaceError, which names the processes that still exist after `seconds`.
    """
    began = time.monotonic()
    deadline, patience = began + seconds, began + min(seconds, reaper.TRACKER_SECONDS)
    ending: set[ProcessName] = set()
    while True:
        # A process may start while its parent is being killed: repeat until none is found.
        found = list(_orphans())
        for process in found:
            if reaper.is_tracker(process.pid) and time.monotonic() < patience:
                continue
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
        ending.update(found)
        left = sorted(process.pid for process in ending if _lives(process))
        if not found and not left:
            _remove_shared_memory()
            return
        if time.monotonic() > deadline:
            raise PlaceError(
                f"processes {', '.join(map(str, left))} of an engine whose owner died still hold the device: they did not end "
                f"within {seconds:g} s after they were killed; end them or restart the machine, then start again"
            )
        time.sleep(_LOOK_SECONDS)


def _orphans() -> Iterator[ProcessName]:
    found = reaper.process_marks()
    for pid, mark in found.items():
        named = _MARK.fullmatch(mark)
        if named and int(named["namespace"]) == _pid_namespace() and mark != found.get(os.getpid()):
            with contextlib.suppress(*_GONE):
                process = _living(pid)
                if not _lives(_owner(named)):
                    yield process


def _remove_shared_memory() -> None:
    for path in reaper.SHARED_MEMORY.glob(f"{reaper.NAMES}*"):
        named = _MARK.fullmatch(path.name.removeprefix(reaper.NAMES))
        if named and int(named["namespace"]) == _pid_namespace() and not _lives(_owner(named)):
            reaper.remove_shared_memory([*reaper.names_kept_in(path), path.name])


def _owner(named: "re.Match[str]") -> ProcessName:
    return ProcessName(pid=int(named["pid"]), started=int(named["started"]))


def _lives(process: ProcessName) -> bool:
    try:
        return _living(process.pid) == process
    except _GONE:
        return False


def _living(pid: int) -> ProcessName:
    """The process that has this pid now. Raises FileNotFoundError or ProcessLookupError when there is none, or when it is a
    zombie, which holds no memory, device or file."""
    # The program's name comes first, in brackets, and may contain any character. See proc_pid_stat(5) for the order.
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    state, threads, started = fields[0], int(fields[17]), int(fields[19])
    if state in _DEAD_STATES and threads <= 1:
        raise ProcessLookupError(f"process {pid} has ended")
    return ProcessName(pid=pid, started=started)


def _pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino
