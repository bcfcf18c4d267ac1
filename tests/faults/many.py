"""Many seeds on all cores. A file of its own: a process of the pool cannot load what is defined in `__main__`."""

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.faults.schedules import complaint, scenarios

BATCH = 100
SHOWN = 10


def play(count: int, first: int = 0) -> int:
    batches = [range(start, min(start + BATCH, first + count)) for start in range(first, first + count, BATCH)]
    done = faults = 0
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for batch, found in zip(batches, pool.imap(_complaints, batches), strict=True):
            done += len(batch)
            faults += len(found)
            for text in found[: max(0, SHOWN - faults + len(found))]:
                print(text, flush=True)
            print(f"\r{done} of {count} schedules, {faults} with faults", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return 1 if faults else 0


def _complaints(seeds: Iterable[int]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        inputs = scenarios(Path(folder))
        return [text for seed in seeds if (text := complaint(seed, inputs))]
