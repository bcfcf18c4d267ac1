"""How long others kept the processes of a run waiting for a processor, by the kernel's counts.

A thread that can run and waits may wait for other threads of its own run: at most as long as these computed. What it waited
beyond that, others had the processor. So a program cannot make itself look deprived, however many threads it starts.
Not covered: kernels without /proc/PID/schedstat; threads that ended before; waiting for a disk or for memory.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

_NANO = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of a process: for each thread the seconds that it computed and that it waited; and what all computed, ended ones too."""

    threads: Sequence[tuple[float, float]]
    computed: float


def counts_of(pid: int) -> Counts | None:
    """The counts of a process, which may have ended but must not have been waited for. None if the kernel has none."""
    threads = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as stream:
                    computed, waited, _ = map(int, stream.read().split())
            except (ProcessLookupError, FileNotFoundError):
                continue  # the thread has just ended
            threads.append((computed * _NANO, waited * _NANO))
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name in parentheses may contain any character, including a parenthesis.
            fields = stream.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    ticks = int(fields[11]) + int(fields[12])
    return Counts(threads=threads, computed=ticks / os.sysconf("SC_CLK_TCK"))


def deprived_seconds(processes: Sequence[Counts]) -> float:
    """The seconds that others took from a run of these processes: of each, from the thread that was busy for longest."""
    total = sum(max(each.computed, sum(computed for computed, _ in each.threads)) for each in processes)
    deprived = 0.0
    for each in processes:
        threads = [(computed, max(0.0, waited - (total - computed))) for computed, waited in each.threads]
        deprived += max(threads, key=sum, default=(0.0, 0.0))[1]
    return deprived
