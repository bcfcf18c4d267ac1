"""`python -m tests.bench.scale [PRICE]`: idle engines, the driver at scale, and what a million labelled steps cost.

PRICE is what a GPU hour costs, in any currency (default 3). No GPU is used: engines run on a virtual clock.
"""

import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.bench.scale import records, render
from tests.bench.scale.chains import write_chains
from tests.bench.scale.cost import Pieces, costs
from tests.bench.scale.crowd import ROLLOUTS_PER_UNIT, live
from tests.bench.scale.pace import QWEN_1_5B, QWEN_7B, Pace
from tests.bench.scale.run import CAPACITY, Played, play

CHAINS = 2_000
SEED = 1
PRICE = 3.0
PROCESSES = 2
LABELLED = (("pooled", 8), ("pooled", 4), ("pooled", 1), ("fixed", 8), ("fixed", 4), ("fixed", 1))
"""Estimators and workers of the idle share, the slowest first."""
SHAPES = ((10**8, 512), (10**7, 512), (10**7, 64), (10**7, 8), (10**6, 512), (10**6, 1), (10**5, 512))
"""Rollouts and replicas that the driver has, the slowest first."""
REPLICAS = 512
FLUSH_SECONDS = 30.0
"""The default of `run.flush_seconds`."""


def main() -> int:
    if len(sys.argv) > 2:
        print("usage: python -m tests.bench.scale [PRICE]", file=sys.stderr)
        return 2
    price = float(sys.argv[1]) if len(sys.argv) == 2 else PRICE
    began = time.monotonic()
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}", flush=True)
    rate = records.measured()
    with tempfile.TemporaryDirectory(prefix="stepvalue-scale-") as folder, _processes() as pool:
        data = write_chains(Path(folder) / "chains.jsonl", CHAINS, SEED)
        driving = [pool.submit(live, -(-rollouts // ROLLOUTS_PER_UNIT), many) for rollouts, many in SHAPES]
        playing = [
            pool.submit(play, data, QWEN_7B, workers=many, settings=[f"estimator={name}"]) for name, many in LABELLED
        ]
        played = {shape: job.result() for shape, job in zip(LABELLED, playing, strict=True)}
        lived = [job.result() for job in driving]
    _print(render.idle_table([(name, run) for (name, _), run in sorted(played.items())]))
    _print(render.crowd_table(sorted(lived, key=lambda run: (run.replicas, run.units))))
    needed = records.files_per_second(
        units_per_second=max(run.units / run.seconds for run in lived),
        units_in_flight=REPLICAS * played["pooled", 1].units_in_flight,
        flush_seconds=FLUSH_SECONDS,
    )
    _print(render.rate_lines(rate, needed, REPLICAS))
    pieces = [
        each
        for pace in (QWEN_1_5B, QWEN_7B)
        for each in costs(_piece(pace, "fixed", played["fixed", 1]), _piece(pace, "pooled", played["pooled", 1]))
    ]
    _print(render.cost_table(pieces, price))
    print(f"\n{time.monotonic() - began:.0f} s")
    return 0


def _piece(pace: Pace, estimator: str, run: Played) -> Pieces:
    """Of a run of one worker: tokens and idle share hardly depend on the speed of its policy, so they stand for others too."""
    tokens = run.summary.totals.tokens
    return Pieces(
        name=f"{estimator}, as simulated",
        pace=pace,
        generated=tokens / run.steps,
        prefilled=run.work.prefilled / run.steps,
        running=CAPACITY,
        context=run.work.attended / tokens,
        idle=run.idle,
        cpu_seconds=run.cpu_seconds / run.steps,
    )


def _processes() -> ProcessPoolExecutor:
    """A process for each job, which begins with an empty memory."""
    return ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1)


def _print(lines: Iterable[str]) -> None:
    print("\n" + "\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
