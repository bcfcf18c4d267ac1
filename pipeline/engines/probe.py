"""What this CPU can do: measured, for no data sheet knows how many of its cores a worker has, nor who else uses its memory."""

import time
from collections.abc import Callable
from typing import Any

from pipeline.core.hardware import Device

READ_BYTES = 256 * 1024 * 1024
"""Read in one pass: more than the caches of most processors hold."""
MATRIX = 1024
TRIES = 5
"""The fastest counts: what disturbs a measurement makes it slower. All took 0.6 to 0.9 s on two cores that others used too."""


def measured_cpu(dtype: str, threads: int) -> Device:
    """The bandwidth of reading memory and the FLOP/s of a product of matrices in `dtype`, with so many threads of torch.

    Neither is a limit of the hardware: both are what this library reaches at its best while nothing else runs, and where
    others use the machine meanwhile they come out too low. To be called when no process will be forked any more: the threads
    of OpenMP do not survive in a child.
    """
    import torch

    kept = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        memory = torch.ones(READ_BYTES // 4, dtype=torch.float32)
        matrix = torch.ones(MATRIX, MATRIX, dtype=getattr(torch, dtype))
        reading = _fastest(memory.sum)
        multiplying = _fastest(lambda: matrix @ matrix)
    finally:
        torch.set_num_threads(kept)
    return Device(
        name=f"{threads} CPU core{'s' if threads > 1 else ''}",
        bandwidth=READ_BYTES / reading,
        flops=2 * MATRIX**3 / multiplying,
        memory=0.0,
    )


def _fastest(work: Callable[[], Any]) -> float:
    """Seconds."""
    seconds = []
    for _ in range(TRIES):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
