"""The side of the child of `line_process`: the lines that it is asked, and its limits.

Covered: a child ends with its parent, also where a fork of the parent holds the pipe open; limits of memory and processor time;
what a library prints reaches nobody. Not covered: wall time. The parent kills a child that is late.
"""

import math
import os
import resource
import select
import time
from collections.abc import Iterator

CPU_SLACK_SECONDS = 5
PARENT_CHECK_SECONDS = 10


def results_alone(memory_mib: int) -> int:
    """Limit the memory of this process. Returns a descriptor for answers, which is all that still goes to the parent."""
    results = os.dup(1)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit(resource.RLIMIT_AS, memory_mib << 20)
    return results


def limit_next_task(cpu_seconds: float) -> None:
    """Limit the processor time of the next task, so that a child whose parent died does not run on."""
    limit(resource.RLIMIT_CPU, math.ceil(time.process_time() + cpu_seconds) + CPU_SLACK_SECONDS)


def limit(kind: int, value: int, process: int = 0) -> None:
    """Set a soft limit of a process, at most its hard limit. 0: this process."""
    hard = resource.prlimit(process, kind)[1]
    resource.prlimit(process, kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def lines() -> Iterator[bytes]:
    """The lines of standard input, until it ends or the parent has died (a fork of the parent may hold the pipe open)."""
    parent = os.getppid()
    poller = select.poll()
    poller.register(0, select.POLLIN)
    rest = b""
    while True:
        while not poller.poll(PARENT_CHECK_SECONDS * 1000):
            if os.getppid() != parent:
                return
        piece = os.read(0, 65536)
        if not piece:
            return
        # In a long line, only the new piece is searched.
        *whole, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
        yield from whole
