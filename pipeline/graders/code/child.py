"""The process that runs programs: it forks one confined process per role of a run, watches, and tells how the run ended.

It holds neither programs nor tests: their content goes past it, as open descriptors, to the processes it forks, so that a
program which searches its own memory finds nothing but itself. Reports are facts; verdicts are the parent's.
Ends, and removes its folder, when its parent does. Not covered: its own death by SIGKILL; its runs die with it, and the
parent removes the folder.
"""

import ctypes
import gc
import importlib
import json
import math
import os
import resource
import select
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from pipeline.graders.code.runs import Descriptor, probe, read_tests, run_program, run_tests, serve_program
from pipeline.graders.code.sandbox import Confinement, Limits, confine
from pipeline.graders.code.task import MAX_OUTPUT_BYTES, Kind, Task
from pipeline.graders.code.watch import Watched, watch

MAX_TASK_BYTES = 4096
MAX_GIVEN = 3
PARENT_CHECK_SECONDS = 10

_PR_SET_CHILD_SUBREAPER = 36
# What programs import most: forked processes have it already.
_WARM = (
    "bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq", "itertools", "math",
    "operator", "random", "re", "statistics", "string", "threading", "typing",
)  # fmt: skip

Role = Callable[[], None]
# What runs for each kind of task; the end of the last ends the run.
_ROLES: dict[Kind, tuple[Role, ...]] = {
    Kind.SCRIPT: (run_program,),
    Kind.SUITE: (serve_program, run_tests),
    Kind.TESTS: (read_tests,),
    Kind.PROBE: (probe,),
}
_OF_PROGRAMS = (run_program, serve_program, probe)


def serve(control: socket.socket, folder: str, required: Confinement) -> Role | None:
    """Run tasks until the parent is gone: None. In a forked process: what it is to do, outside of all frames here."""
    parent, own = os.getppid(), os.getpid()
    control.send(b"ready")
    while (received := _receive(control, parent)) is not None:
        task, given = received
        # No `finally` around a fork: the forked process leaves through this frame too.
        work = f"{folder}/run"
        os.mkdir(work, 0o700)
        ready, announce = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        wires = [*os.pipe(), *os.pipe()]
        watched = []
        for role in _ROLES[task.kind]:
            pid = os.fork()
            if pid == 0:
                # Its number is given away: the object must not close it when this frame is left.
                control.detach()
                _lay_out(_descriptors(role, given, announce, wires))
                return partial(_be, role, task, work, own, required)
            watched.append(Watched(pid))
        for descriptor in (*given, announce, *wires):
            os.close(descriptor)
        report = watch(task, watched, work, control.fileno(), ready)
        os.close(ready)
        shutil.rmtree(work, ignore_errors=True)
        try:
            control.send(json.dumps(asdict(report)).encode())
        except OSError:
            break
    shutil.rmtree(folder, ignore_errors=True)
    return None


def _receive(control: socket.socket, parent: int) -> tuple[Task, list[int]] | None:
    """The next task and what came with it, None when the parent is gone (a fork of it may hold the socket open)."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    while not poller.poll(PARENT_CHECK_SECONDS * 1000):
        if os.getppid() != parent:
            return None
    try:
        message, given, _, _ = socket.recv_fds(control, MAX_TASK_BYTES, MAX_GIVEN)
    except OSError:
        return None
    return (Task(**json.loads(message)), given) if message else None


def _descriptors(role: Role, given: list[int], announce: int, wires: list[int]) -> dict[int, int]:
    """Which open descriptor a process gets under which number. Each kind of task comes with its own list of them."""
    if role is run_program:
        content, standard_input, standard_output = given
        return {0: standard_input, 1: standard_output, Descriptor.CONTENT: content, Descriptor.READY: announce}
    if role is serve_program:
        return {
            Descriptor.CONTENT: given[0],
            Descriptor.READY: announce,
            Descriptor.READING: wires[0],
            Descriptor.WRITING: wires[3],
        }
    content, statement = given[-2:]
    tests: dict[int, int] = {Descriptor.CONTENT: content, Descriptor.READY: announce, Descriptor.STATEMENT: statement}
    return tests | ({Descriptor.READING: wires[2], Descriptor.WRITING: wires[1]} if role is run_tests else {})


def _lay_out(wanted: dict[int, int]) -> None:
    """Have exactly these descriptors open, and the null device for the standard streams that are not among them."""
    null = os.open(os.devnull, os.O_RDWR)
    top = max(Descriptor) + 1
    safe = {}
    for number in (number for number in range(top) if number < min(Descriptor) or number in wanted):
        source = os.dup(wanted.get(number, null))
        while source < top:
            source = os.dup(source)
        safe[number] = source
    os.closerange(0, top)
    for number, source in safe.items():
        os.dup2(source, number)
    os.closerange(top, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def _be(role: Role, task: Task, work: str, parent: int, required: Confinement) -> None:
    """Confine this process, and do its part if the confinement is as strict as required."""
    os.setsid()
    program = role in _OF_PROGRAMS
    limits = Limits(
        memory_bytes=task.memory_bytes,
        cpu_seconds=math.ceil(task.cpu_seconds if program else task.wall_seconds),
        file_bytes=MAX_OUTPUT_BYTES,
        folder=work if program else None,
    )
    done = confine(limits, parent)
    if role is probe or (done.system_calls >= required.system_calls and done.files >= required.files):
        role()


def _prepare() -> None:
    """What every forked process starts with: common modules, and the standard library alone to import from."""
    for name in _WARM:
        importlib.import_module(name)
    ours = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [path for path in sys.path if path not in ours]
    # What the parent ignores, a program need not.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    gc.freeze()


def main(arguments: list[str]) -> Role | None:
    """Serve the socket that was inherited: its descriptor, the folder for runs, and what confinement is required."""
    descriptor, folder, *required = arguments
    _prepare()
    confinement = Confinement(system_calls="system_calls" in required, files="files" in required)
    return serve(socket.socket(fileno=int(descriptor)), folder, confinement)


if __name__ == "__main__":
    part = main(sys.argv[1:])
    if part is not None:
        part()
