"""What everything but the model costs: CPU per rollout and memory of the driver, with the oracle engine."""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.conftest import ROOT

SIZES = (10_000, 100_000, 1_000_000)
STEPS = 6
ROLLOUTS = 8
_PER_CHAIN = STEPS * ROLLOUTS  # the bare problem and all steps but the last
_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Cost:
    """Of one run: rollouts made, CPU seconds of all its processes (Ray's too), and the driver's largest resident memory."""

    rollouts: int
    cpu_seconds: float
    driver_mib: float
    wall_seconds: float


def control_plane() -> None:
    print("\ncontrol plane: oracle engine, 6-step chains, 8 rollouts per prefix; CPU of all processes, Ray's included")
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        start = _run(Path(folder), 1)
        print(f"  {'rollouts':>10} {'µs CPU each':>12} {'with start-up':>14} {'driver MiB':>11} {'seconds':>8}")
        for size in SIZES:
            cost = _run(Path(folder), size // _PER_CHAIN)
            marginal = (cost.cpu_seconds - start.cpu_seconds) / (cost.rollouts - start.rollouts) * 1e6
            whole = cost.cpu_seconds / cost.rollouts * 1e6
            print(
                f"  {cost.rollouts:>10,} {marginal:>12.1f} {whole:>14.1f} {cost.driver_mib:>11.0f} {cost.wall_seconds:>8.1f}"
            )
        print(f"  start-up alone: {start.cpu_seconds:.1f} s CPU, driver {start.driver_mib:.0f} MiB")


def write_chains(folder: Path, chains: int) -> Path:
    """An input of so many chains of STEPS steps."""
    data = folder / f"{chains}.jsonl"
    with data.open("w") as file:
        for number in range(chains):
            steps = [
                f"Step {step} of sum {number} adds {step} and keeps the rest as it was." for step in range(1, STEPS)
            ]
            row = {
                "id": str(number),
                "problem": f"Problem {number}: add the small numbers that are given and tell their sum.",
                "answer": str(number),
                "steps": [*steps, f"The answer is {number}."],
            }
            file.write(json.dumps(row) + "\n")
    return data


def _run(folder: Path, chains: int) -> Cost:
    data = write_chains(folder, chains)
    settings = [
        f"data.path={data}",
        f"run_dir={folder / str(chains)}",
        "policy=oracle",
        "estimator=fixed",
        "run.show_chains=0",
    ]
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", "label", *settings], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    driver = psutil.Process(process.pid)
    seconds: dict[tuple[int, float], float] = {}
    memory = 0
    while process.poll() is None:
        for member in _family(driver):
            try:
                times = member.cpu_times()
                seconds[(member.pid, member.create_time())] = times.user + times.system
                if member.pid == driver.pid:
                    memory = max(memory, member.memory_info().rss)
            except psutil.Error:
                continue
        time.sleep(_SAMPLE_SECONDS)
    if process.returncode:
        raise SystemExit(f"the run with {chains} chains failed")
    return Cost(
        rollouts=chains * _PER_CHAIN,
        cpu_seconds=sum(seconds.values()),
        driver_mib=memory / 2**20,
        wall_seconds=time.monotonic() - began,
    )


def _family(driver: psutil.Process) -> list[psutil.Process]:
    try:
        return [driver, *driver.children(recursive=True)]
    except psutil.Error:
        return []
