"""Watching the processes of one run until it ends, and ending what is left of them.

Covered: wall time, processor time (finer than the kernel's own limit, which counts whole seconds), the number of threads,
the content of the working folder. Everything the run started is gone when `watch` returns, also what left its session.
Not covered: what happens between two looks, `TICK_SECONDS` apart; files that are removed and still open, whose number and
size the kernel limits.
"""

import os
import select
import signal
import time

from pipeline.graders.code.runs import OTHER_SIDE_ENDED
from pipeline.graders.code.task import Report, Task

MAX_THREADS = 64
MAX_FILES = 64
MAX_FOLDER_BYTES = 64 * 2**20
TICK_SECONDS = 0.02
LAST_WORDS_SECONDS = 1.0
END_SECONDS = 10.0


class Watched:
    """A forked process. `status` is None until it has been waited for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle = os.pidfd_open(pid)
        self.status: int | None = None
        self.cpu_seconds = 0.0

    def reap(self) -> None:
        """Wait for its end."""
        _, status, usage = os.wait4(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        os.close(self.handle)

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether it has ended, waiting for so long at most."""
        if self.status is None and _readable(self.handle, seconds):
            self.reap()
        return self.status is not None


def watch(task: Task, processes: list[Watched], folder: str, control: int, ready: int) -> Report:
    """Wait for the last process to end, or for a limit; then end all. The first process is the program."""
    program, last = processes[0], processes[-1]
    deadline = time.monotonic() + task.wall_seconds
    poller = select.poll()
    poller.register(control, 0)
    for process in processes:
        poller.register(process.handle, select.POLLIN)
    exhausted = late = False
    while not (last.ended() or exhausted or late):
        events = poller.poll(TICK_SECONDS * 1000)
        if program.status is None and program.ended():
            poller.unregister(program.handle) if program is not last else None
        exhausted = program.status is None and _exhausts(task, program, folder)
        late = time.monotonic() >= deadline or any(descriptor == control for descriptor, _ in events)
    if last.status == OTHER_SIDE_ENDED:
        program.ended(LAST_WORDS_SECONDS)
    status = program.status
    _end(processes)
    if program.cpu_seconds >= task.cpu_seconds:
        exhausted = True
    return Report(began=_begun(ready) == len(processes), status=status, exhausted=exhausted, late=late)


def _readable(descriptor: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def _exhausts(task: Task, program: Watched, folder: str) -> bool:
    try:
        # The clock of another process, as clock_getcpuclockid(3) computes its number.
        cpu_seconds = time.clock_gettime((~program.pid << 3) | 2)
        threads = len(os.listdir(f"/proc/{program.pid}/task"))
        with os.scandir(folder) as entries:
            sizes = [entry.stat(follow_symlinks=False).st_size for entry in entries]
    except OSError:
        return False  # it has just ended, or a file has just been removed
    return (
        cpu_seconds >= task.cpu_seconds
        or threads > MAX_THREADS
        or len(sizes) > MAX_FILES
        or sum(sizes) > MAX_FOLDER_BYTES
    )


def _end(processes: list[Watched]) -> None:
    """Kill and wait for these, and for every process they left behind: those have become children of this one."""
    for process in processes:
        if process.status is None:
            os.kill(process.pid, signal.SIGKILL)
            process.reap()
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        for pid in _children():
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
    raise TimeoutError("a program's processes cannot be ended")


def _children() -> list[int]:
    own, found = os.getpid(), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stream:
                # The name in parentheses may itself hold any character.
                parent = int(stream.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == own:
            found.append(int(name))
    return found


def _begun(ready: int) -> int:
    try:
        return len(os.read(ready, 16))
    except BlockingIOError:
        return 0
