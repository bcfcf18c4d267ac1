"""`python -m tests.bench.scale [PRICE]`: idle engines, the driver at scale, and what a million labelled steps cost.

PRICE is what a GPU hour costs, in any currency (default 3). No GPU is used: engines run on a virtual clock.
"""

import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.bench.scale import records, told
from tests.bench.scale.chains import write_chains
from tests.bench.scale.cost import SAVINGS, Pieces
from tests.bench.scale.crowd import ROLLOUTS_PER_UNIT, live
from tests.bench.scale.hardware import QWEN_1_5B, QWEN_7B, Pace
from tests.bench.scale.run import CAPACITY, Played, play

CHAINS = 2_000
SEED = 1
PRICE = 3.0
PROCESSES = 2
LABELLED = (
    (QWEN_7B, "pooled", 8),
    (QWEN_7B, "pooled", 4),
    (QWEN_7B, "pooled", 1),
    (QWEN_1_5B, "pooled", 1),
    (QWEN_7B, "fixed", 8),
    (QWEN_7B, "fixed", 4),
    (QWEN_7B, "fixed", 1),
    (QWEN_1_5B, "fixed", 1),
)
"""What is run of figure A: the slowest first."""
CROWDS = ((10**8, 512), (10**7, 512), (10**6, 512), (10**5, 512), (10**7, 64), (10**7, 8), (10**6, 1))
"""Rollouts and replicas of figure B, the slowest first."""
REPLICAS = 512
FLUSH_SECONDS = 30.0


def main() -> int:
    if len(sys.argv) > 2:
        print("usage: python -m tests.bench.scale [PRICE]", file=sys.stderr)
        return 2
    price = float(sys.argv[1]) if len(sys.argv) == 2 else PRICE
    began = time.monotonic()
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    rate = records.measured()
    with tempfile.TemporaryDirectory(prefix="stepvalue-scale-") as folder:
        data = write_chains(Path(folder) / "chains.jsonl", CHAINS, SEED)
        with _processes() as pool:
            jobs = [
                (pace, name, pool.submit(play, data, pace, workers=many, settings=[f"estimator={name}"]))
                for pace, name, many in LABELLED
            ]
            played = [(pace, name, job.result()) for pace, name, job in jobs]
    _print(told.idle_table([(pace.name, name, run) for pace, name, run in reversed(played)]))
    of_7b = next(run for pace, name, run in played if (pace, name, run.workers) == (QWEN_7B, "fixed", 1))
    pooled = next(run for pace, name, run in played if (pace, name, run.workers) == (QWEN_7B, "pooled", 1))
    unit_seconds = ROLLOUTS_PER_UNIT * of_7b.seconds / of_7b.summary.totals.rollouts
    with _processes() as pool:
        crowds = [pool.submit(live, -(-rollouts // ROLLOUTS_PER_UNIT), many, unit_seconds) for rollouts, many in CROWDS]
        lived = [job.result() for job in crowds]
    _print(told.crowd_table(sorted(lived, key=lambda run: (run.replicas, run.units))))
    needed = records.files_per_second(
        units_per_second=max(run.units / run.seconds for run in lived),
        units_in_flight=REPLICAS * pooled.units_in_flight,
        flush_seconds=FLUSH_SECONDS,
    )
    _print(told.rate_lines(rate, needed, REPLICAS))
    _print(told.cost_table([each for run in played if run[2].workers == 1 for each in _pieces(*run)], price))
    print(f"\n{time.monotonic() - began:.0f} s")
    return 0


def _pieces(pace: Pace, estimator: str, run: Played) -> list[Pieces]:
    """Of a run of one worker; that of `fixed` also for `pooled` at its error."""
    tokens = run.summary.totals.tokens
    own = Pieces(
        name=f"{estimator}, as simulated",
        pace=pace,
        generated=tokens / run.steps,
        prefilled=run.work.prefilled / run.steps,
        running=CAPACITY,
        context=run.work.attended / tokens,
        idle=run.idle,
        cpu_seconds=run.cpu_seconds / run.steps,
    )
    if estimator != "fixed":
        return [own]
    cheaper = [
        replace(
            own,
            name=f"pooled at its error: {family}",
            generated=own.generated / factor,
            prefilled=own.prefilled / factor,
            cpu_seconds=own.cpu_seconds / factor,
        )
        for family, factor in SAVINGS.items()
    ]
    return [own, *cheaper]


def _processes() -> ProcessPoolExecutor:
    """A process for each job, which begins with an empty memory."""
    return ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1)


def _print(lines: Iterator[str]) -> None:
    print("\n" + "\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
