"""What watching a run costs: its panel and its signs of life, in processor time of the driver; and how long `status` takes."""

import io
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import psutil
from rich.console import Console

from pipeline.__main__ import compose_label
from pipeline.analysis.report.terminal import LiveView
from pipeline.config.label import RunConfig
from pipeline.core.progress import Load, Status, Verdicts
from pipeline.runtime.heartbeat import heartbeat
from pipeline.storage import starts
from pipeline.storage.local import LocalStorage
from tests.bench.control import STEPS, write_chains
from tests.conftest import ROOT
from tests.runtime.in_process import label_in_process

SECONDS = 60.0
BAR_SHARE = 0.01
UPDATES = 300
ROLLOUTS = 1_000_000
ROLLOUTS_PER_CHAIN = STEPS * 8
UNIT_PROBLEMS = 4
REPEATS = 5
BAR_SECONDS = 2.0
BUSY = Status(
    stage="labelling", units=5_000, prefixes=50_000, rollouts_expected=1_000_000, workers=8, share_of_bound=0.7,
    verdicts=Verdicts(correct=450, incorrect=530, no_answer=15, ungraded=5, truncated=12),
    load=Load(running=2048, waiting=900, grading=3),
)  # fmt: skip


def live() -> None:
    every = RunConfig().progress_seconds
    print(f"\nlive: processor time of view and signs of life, {starts.MOST} samples old, a status every {every:g} s")
    print(f"  {'':<12}{'of wall time':>14}{'goal':>7}{'ms per status':>15}")
    for name, terminal in (("80 x 24", True), ("log", False)):
        share, update = _watching(terminal=terminal, every=every)
        print(f"  {name:<12}{share:>14.2%}{BAR_SHARE:>7.0%}{update * 1e3:>15.2f}", flush=True)
    _status()


def _watching(*, terminal: bool, every: float) -> tuple[float, float]:
    """Of a process that does nothing else, all its threads together: the share of a processor that a run takes which is
    watched for `SECONDS`, and the processor seconds of one status."""
    with (
        tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder,
        patch.object(starts, "EVERY_SECONDS", 0.0),
    ):
        console = Console(file=io.StringIO(), width=80, height=24, force_terminal=terminal)
        with LiveView(console, 3.0) as view, heartbeat(LocalStorage(Path(folder)), 3.0, view) as report:
            for number in range(starts.MOST):
                report(_after(number))
            cpu = time.process_time()
            for number in range(UPDATES):
                report(_after(starts.MOST + number))
            update = (time.process_time() - cpu) / UPDATES
            began, cpu = time.monotonic(), time.process_time()
            while (seconds := time.monotonic() - began) < SECONDS:
                report(_after(2 * starts.MOST + int(seconds)))
                time.sleep(every)
            return (time.process_time() - cpu) / (time.monotonic() - began), update


def _after(number: int) -> Status:
    return replace(BUSY, rollouts=1000 * number, tokens=10**5 * number, units_done=number, device_seconds=40.0 * number)


def _status() -> None:
    """The command on a finished run, its start-up included."""
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
        folder = Path(name)
        data = write_chains(folder, ROLLOUTS // ROLLOUTS_PER_CHAIN)
        settings = ["policy=oracle", "estimator=fixed", f"run.unit_problems={UNIT_PROBLEMS}"]
        summary = label_in_process(compose_label([f"data.path={data}", f"run_dir={folder / 'run'}", *settings]))
        times = [_timed(folder / "run") for _ in range(REPEATS)]
        wall, cpu = min(wall for wall, _ in times), min(cpu for _, cpu in times)
        print(
            f"status of {summary.totals.rollouts:,} rollouts in {summary.units:,} units: {wall:.2f} s, {cpu:.2f} s of them "
            f"processor time, the best of {REPEATS}; goal {BAR_SECONDS:g} s"
        )


def _timed(run_dir: Path) -> tuple[float, float]:
    """Seconds of the wall clock and of processor time."""
    began, before = time.monotonic(), _children()
    subprocess.run(
        [sys.executable, "-m", "pipeline", "status", f"run_dir={run_dir}"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - began, _children() - before


def _children() -> float:
    times = psutil.Process().cpu_times()
    return float(times.children_user + times.children_system)
