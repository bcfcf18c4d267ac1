"""The child process that runs programs. It forks one confined process per role of a run, watches them, and reports the end.

It never reads programs or tests. It passes their content as open descriptors to the forked processes, so a program that
searches its own memory finds only itself. The child reports facts, and the parent derives the verdict. When the parent ends,
the child ends and removes its folder. Not covered: SIGKILL of the child. Its runs end with it; the parent removes the folder.
It watches wall time, processor time (more finely than the kernel's limit in whole seconds), threads and the working folder,
each by itself, and ends a run whose limit it cannot see. Before it reports a run, it ends every process that the run started.
Not covered: events between two checks, `TICK_SECONDS` apart; files that are removed but still open, which the kernel limits.
"""

import ctypes
import errno
import gc
import importlib
import json
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial

from pipeline.graders.code import runs
from pipeline.graders.code.cells import run_cases, run_cells, serve_cells
from pipeline.graders.code.sandbox import confine, empty_folder
from pipeline.graders.code.thread_limit import (
    MAX_THREADS,
    PATIENCE_SECONDS,
    ThreadLimit,
    count_threads,
    prepare,
    stat_of,
)
from pipeline.graders.code.wire import MAX_OUTPUT_BYTES, ProgramReport, ProgramTask, TaskKind

MAX_TASK_BYTES = 4096
MAX_GIVEN = 3
PARENT_CHECK_SECONDS = 10
MAX_FILES = 64
MAX_FOLDER_BYTES = 64 * 2**20
TICK_SECONDS = 0.02
BLIND_SECONDS = 1.0
STOP_SECONDS = 0.2
LAST_WORDS_SECONDS = 1.0
END_SECONDS = 10.0

_NANO = 1e-9
_PR_SET_CHILD_SUBREAPER = 36
# The modules that programs import most. They are loaded before the fork.
_WARM = (
    "bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq", "itertools", "math",
    "operator", "random", "re", "statistics", "string", "threading", "typing",
)  # fmt: skip

Role = Callable[[], None]
# The roles of each kind of task. The run ends when the last role ends.
_ROLES: dict[TaskKind, tuple[Role, ...]] = {
    TaskKind.SCRIPT: (runs.run_program,),
    TaskKind.SUITE: (runs.serve_program, runs.run_tests),
    TaskKind.OUTPUT: (runs.compare_output,),
    TaskKind.TESTS: (runs.read_tests,),
    TaskKind.PROBE: (runs.probe,),
    TaskKind.CELLS: (run_cells,),
    TaskKind.CASES: (serve_cells, run_cases),
}
_OF_PROGRAMS = (runs.run_program, runs.serve_program, runs.probe, run_cells, serve_cells)


def serve(control: socket.socket, folder: str, required: Collection[str]) -> Role | None:
    """Run tasks until the parent has ended, then return None.

    In a forked process, return its role, so that the role runs outside all frames of this module.
    """
    parent, own = os.getppid(), os.getpid()
    control.send(b"ready")
    while (received := _receive(control, parent)) is not None:
        task, given = received
        # No `finally` around the fork, because the forked process also returns through this frame.
        work = f"{folder}/run"
        os.mkdir(work, 0o700)
        ready, announce = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        wires = [*os.pipe(), *os.pipe()]
        watched = []
        for role in _ROLES[task.kind]:
            asked, asking = (end.detach() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            pid = os.fork()
            if pid == 0:
                # `_lay_out` reuses the descriptor number, so the socket object must not close it later.
                control.detach()
                _lay_out({**_descriptors(role, given, announce, wires), runs.Descriptor.WIRE: asking})
                return partial(_be, role, task, work, own, required)
            os.close(asking)
            patience = 0.0 if role is runs.probe else PATIENCE_SECONDS
            watched.append(Watched(pid, ThreadLimit(pid, asked, patience_seconds=patience)))
        for descriptor in (*given, announce, *wires):
            os.close(descriptor)
        report = watch(task, watched, work, control.fileno(), ready)
        os.close(ready)
        with suppress(OSError):
            empty_folder(folder)
        try:
            control.send(json.dumps(asdict(report)).encode())
        except OSError:
            break
    with suppress(OSError):
        empty_folder(folder)
        os.rmdir(folder)
    return None


def _receive(control: socket.socket, parent: int) -> tuple[ProgramTask, list[int]] | None:
    """The next task and its descriptors. None if the parent has ended (a fork of it may hold the socket open)."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    while not poller.poll(PARENT_CHECK_SECONDS * 1000):
        if os.getppid() != parent:
            return None
    with suppress(OSError):
        message, given, _, _ = socket.recv_fds(control, MAX_TASK_BYTES, MAX_GIVEN)
        return (ProgramTask(**json.loads(message)), given) if message else None
    return None


def _descriptors(role: Role, given: list[int], announce: int, wires: list[int]) -> dict[int, int]:
    """The descriptors of a role: their number in its process -> the open descriptor. `given` depends on the kind of task."""
    own: dict[int, int] = {runs.Descriptor.STATEMENT: given[-1]}
    if role is runs.run_program:
        own = {0: given[1], 1: given[2]}
    elif role in (runs.serve_program, serve_cells):
        own = {runs.Descriptor.READING: wires[0], runs.Descriptor.WRITING: wires[3]}
    elif role is runs.compare_output:
        own |= {0: given[1]}
    elif role in (runs.run_tests, run_cases):
        own |= {runs.Descriptor.READING: wires[2], runs.Descriptor.WRITING: wires[1]}
    content = given[1] if role in (runs.run_tests, run_cases) else given[0]
    return own | {runs.Descriptor.CONTENT: content, runs.Descriptor.READY: announce}


def _lay_out(wanted: dict[int, int]) -> None:
    """Open exactly the wanted descriptors, and the null device for each standard stream that is not among them."""
    null = os.open(os.devnull, os.O_RDWR)
    top = max(runs.Descriptor) + 1
    safe = {}
    for number in (number for number in range(top) if number < min(runs.Descriptor) or number in wanted):
        source = os.dup(wanted.get(number, null))
        while source < top:
            source = os.dup(source)
        safe[number] = source
    os.closerange(0, top)
    for number, source in safe.items():
        os.dup2(source, number)
    os.closerange(top, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def _be(role: Role, task: ProgramTask, work: str, parent: int, required: Collection[str]) -> None:
    """Confine this process, and run its role if the confinement is as strict as required. The probe runs in any case."""
    os.setsid()
    program = role in _OF_PROGRAMS
    cpu_seconds, folder = (task.cpu_seconds, work) if program else (task.longest_seconds, None)
    done = confine(
        parent, memory_bytes=task.memory_bytes, cpu_seconds=math.ceil(cpu_seconds), file_bytes=MAX_OUTPUT_BYTES,
        folder=folder, wire=runs.Descriptor.WIRE,
    )  # fmt: skip
    if role is runs.probe or done.issuperset(required):
        role()


Counts = tuple[Sequence[tuple[float, float]], float]
"""Of a process: for each thread the seconds that it computed and that it waited; and what all computed, ended ones too."""


def counts_of(pid: int) -> Counts | None:
    """The counts of a process, which may have ended but must not have been waited for. None if the kernel has none."""
    threads = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            # A thread that is missing has just ended.
            with (
                suppress(ProcessLookupError, FileNotFoundError),
                open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as stream,
            ):
                computed, waited, _ = map(int, stream.read().split())
                threads.append((computed * _NANO, waited * _NANO))
        fields = stat_of(f"/proc/{pid}/stat")
    except (OSError, ValueError):
        return None
    ticks = int(fields[11]) + int(fields[12])
    return threads, ticks / os.sysconf("SC_CLK_TCK")


def deprived_seconds(processes: Sequence[Counts]) -> float:
    """The seconds that others took from a run of these processes: of each, from the thread that was busy for longest."""
    total = sum(max(all_computed, sum(computed for computed, _ in threads)) for threads, all_computed in processes)
    deprived = 0.0
    for threads, _ in processes:
        lost = [(computed, max(0.0, waited - (total - computed))) for computed, waited in threads]
        deprived += max(lost, key=sum, default=(0.0, 0.0))[1]
    return deprived


class Watched:
    """A forked process. `status` is None until it has been waited for. `threads` is None if its threads begin without limit."""

    def __init__(self, pid: int, threads: ThreadLimit | None = None) -> None:
        self.pid = pid
        self.handle = os.pidfd_open(pid)
        self.threads = threads
        self.status: int | None = None
        self.cpu_seconds = 0.0
        self.counts: Counts | None = None

    def reap(self) -> None:
        """Wait until the process ends, and record its status and processor time."""
        self.measure()
        _, status, usage = os.wait4(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        os.close(self.handle)
        if self.threads is not None:
            self.threads.close()

    def measure(self) -> None:
        """Record how long the process computed and waited so far, unless it has ended."""
        if self.status is None:
            self.counts = counts_of(self.pid)

    def has_ended(self, seconds: float = 0.0) -> bool:
        """Whether the process has ended. Waits at most `seconds`."""
        if self.status is None and select.select([self.handle], [], [], seconds)[0]:
            self.reap()
        return self.status is not None


def watch(task: ProgramTask, processes: list[Watched], folder: str, control: int, ready: int) -> ProgramReport:
    """Wait until the last process ends or a limit is reached, then end all processes. The first process is the program."""
    program, last = processes[0], processes[-1]
    began_at = time.monotonic()
    looks = _Looks(task, program, folder)
    next_look = time.monotonic() + TICK_SECONDS
    exhausted = late = False
    while not (last.has_ended() or exhausted or late or looks.blind):
        late = _wait(processes, control, max(0.0, next_look - time.monotonic()))
        program.has_ended()
        exhausted = task.kind != TaskKind.PROBE and program.threads is not None and program.threads.exceeded
        if time.monotonic() >= next_look:
            exhausted = exhausted or (program.status is None and looks.exhausts())
            late = late or _is_late(task, processes, time.monotonic() - began_at)
            next_look = time.monotonic() + TICK_SECONDS
    if last.status == runs.OTHER_SIDE_ENDED:
        program.has_ended(LAST_WORDS_SECONDS)
    status, last_status, wall_seconds = program.status, last.status, time.monotonic() - began_at
    deprived = _deprived_seconds(processes)
    _end(processes)
    began = len(os.read(ready, 16))  # nobody is left to write to it
    exhausted = exhausted or program.cpu_seconds >= task.cpu_seconds
    return ProgramReport(
        began=began == len(processes), status=status, exhausted=exhausted, late=late, unseen=looks.blind,
        last_status=last_status, wall_seconds=wall_seconds, deprived_seconds=deprived,
    )  # fmt: skip


def _deprived_seconds(processes: list[Watched]) -> float | None:
    """The seconds that others took from a run so far. None if the kernel does not count them."""
    for process in processes:
        process.measure()
    counts = [process.counts for process in processes if process.counts is not None]
    return deprived_seconds(counts) if len(counts) == len(processes) else None


def _is_late(task: ProgramTask, processes: list[Watched], elapsed: float) -> bool:
    if not task.wall_seconds <= elapsed < task.longest_seconds:
        return elapsed >= task.wall_seconds
    deprived = _deprived_seconds(processes)
    return deprived is None or elapsed - deprived >= task.wall_seconds


def _wait(processes: list[Watched], control: int, seconds: float) -> bool:
    """Wait until something happens, and answer the requests for new threads that can be answered. Whether the parent ended."""
    poller = select.poll()
    poller.register(control, 0)
    limits: dict[int, ThreadLimit] = {}
    for process in processes:
        if process.status is None:
            poller.register(process.handle, select.POLLIN)
        if process.threads is not None and process.threads.descriptor is not None:
            limits[process.threads.descriptor] = process.threads
            poller.register(process.threads.descriptor, select.POLLIN)
    events = dict(poller.poll(seconds * 1000))
    for descriptor, limit in limits.items():
        if events.get(descriptor, 0) & select.POLLIN:
            limit.receive()
        elif descriptor in events:
            limit.close()  # the process ends: it asks no more
    for limit in limits.values():
        limit.answer()
    return control in events


class _Looks:
    """The looks at a running program's limits. Each is taken by itself: one that fails leaves the others in force.

    A look fails if the program has just ended, or if the machine hides what is looked at. `blind` says that one has failed for
    `BLIND_SECONDS` without a break, so that the run has to end: a limit that cannot be seen is not held.
    """

    def __init__(self, task: ProgramTask, program: Watched, folder: str) -> None:
        self._task = task
        self._pid = program.pid
        self._folder = folder
        self._looks = (self._computes_too_long, self._has_too_many_threads, self._fills_its_folder)
        self._failing_since: dict[int, float] = {}
        self.blind = False

    def exhausts(self) -> bool:
        """Whether the program exceeds a limit."""
        exceeded = False
        for number, look in enumerate(self._looks):
            try:
                exceeded = look() or exceeded
            except OSError:
                since = self._failing_since.setdefault(number, time.monotonic())
                self.blind = self.blind or time.monotonic() - since >= BLIND_SECONDS
            else:
                self._failing_since.pop(number, None)
        return exceeded

    def _computes_too_long(self) -> bool:
        # The number of the processor clock of another process, computed like clock_getcpuclockid(3).
        return time.clock_gettime((~self._pid << 3) | 2) >= self._task.cpu_seconds

    def _has_too_many_threads(self) -> bool:
        # A probe starts as many as it can.
        return self._task.kind != TaskKind.PROBE and count_threads(self._pid) > MAX_THREADS

    def _fills_its_folder(self) -> bool:
        """Whether there are too many files and folders, or too large ones. A program with folders is stopped meanwhile: it
        might move one just before it is looked into, and so hide what is in it."""
        counted = self._count([self._folder])
        if counted is not None:
            return counted
        os.kill(self._pid, signal.SIGSTOP)
        try:
            deadline = time.monotonic() + STOP_SECONDS
            while not os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WNOHANG):
                if time.monotonic() >= deadline:
                    raise TimeoutError
                time.sleep(STOP_SECONDS / 1000)
            return self._count([self._folder], deep=True) or False
        finally:
            os.kill(self._pid, signal.SIGCONT)

    def _count(self, folders: list[str], *, deep: bool = False) -> bool | None:
        """Whether these folders are full. None: they have others in them, and `deep` is false. Stops at the first file too
        many, because a program may add files faster than they are listed."""
        files = size = 0
        for folder in folders:
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        files += 1
                        with suppress(FileNotFoundError):  # removed or renamed since it was listed; it counts as a file
                            size += entry.stat(follow_symlinks=False).st_size
                        if files > MAX_FILES or size > MAX_FOLDER_BYTES:
                            return True
                        if entry.is_dir(follow_symlinks=False):
                            if not deep:
                                return None
                            folders.append(entry.path)
            except OSError as error:
                if folder == self._folder or error.errno not in (errno.EACCES, errno.ENAMETOOLONG):
                    raise
                return True  # the program made the folder so
        return False


def _end(processes: list[Watched]) -> None:
    """Kill these processes and all their orphaned descendants, which become children of this process. Wait for their end."""
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
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if int(stat_of(f"/proc/{name}/stat")[1]) == os.getpid():
                    os.kill(int(name), signal.SIGKILL)
        time.sleep(0.001)
    raise TimeoutError("a program's processes cannot be ended")


def _prepare() -> None:
    """Prepare what forked processes inherit: common modules are loaded, and only the standard library can be imported."""
    for name in _WARM:
        importlib.import_module(name)
    prepare()
    ours = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [path for path in sys.path if path not in ours]
    # The parent may ignore SIGINT. Programs start with the default.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A parent that limits its own processor time or memory, as those of verifiers do, leaves soft limits to all its children.
    for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (hard, hard))
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    gc.freeze()


def main(arguments: list[str]) -> Role | None:
    """Serve the inherited socket. Arguments: its descriptor, the folder for runs, and the required protections."""
    if not os.access("/proc/1/stat", os.R_OK):
        raise SystemExit("/proc hides other processes (hidepid), so that no limit of a program can be watched")
    descriptor, folder, *required = arguments
    _prepare()
    return serve(socket.socket(fileno=int(descriptor)), folder, required)


if __name__ == "__main__":
    part = main(sys.argv[1:])
    if part is not None:
        part()
