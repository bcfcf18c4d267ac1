"""`score out=FOLDER` with the oracle: processor time for each chain, and the driver's memory as chains grow in number."""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

from pipeline.config.label import DataConfig, RunConfig
from pipeline.config.score import ScoreConfig
from pipeline.graders.settings import MathConfig
from pipeline.runtime.chain_run import run as chain_run
from pipeline.runtime.chain_run.staging import staged_chains
from pipeline.runtime.scoring.run import score_run
from pipeline.runtime.stop import StopSignal
from pipeline.scorers.settings import OracleScorerConfig, OracleScores
from tests.conftest import write_rows
from tests.runtime.in_process import hired_here

CHAINS = 100_000
FEWER = 10_000
PER_PROBLEM, STEPS = 8, 7
MOST_US = 100
POLL_SECONDS = 0.05


def score_run_bench() -> None:
    print(
        f"\nscore out=FOLDER, the oracle scorer: goal: {MOST_US} us of processor a chain, and flat memory of the driver"
    )
    with tempfile.TemporaryDirectory() as folder:
        few, many = (_input(Path(folder), count) for count in (FEWER, CHAINS))
        reading, rest = _processor(many, Path(folder) / "here")
        print(f"  {CHAINS:,} chains of {STEPS} steps, one process: {rest:.0f} us a chain to score, store and commit;")
        print(f"    {reading:.0f} us before that, to read JSON lines, grade the answers and stage the chains")
        for path, count in ((few, FEWER), (many, CHAINS)):
            peak, seconds = _driver(path, Path(folder) / f"out-{count}")
            print(
                f"  {count:,} chains with Ray: {peak / 2**20:,.0f} MiB peak of the driver, {seconds:.0f} s by the clock"
            )


def _input(folder: Path, count: int) -> Path:
    rng = random.Random(0)
    rows: list[dict[str, Any]] = [
        {
            "id": str(number),
            "problem": f"What is twice {number // PER_PROBLEM}? ".ljust(200, "."),
            "answer": str(2 * (number // PER_PROBLEM)),
            "steps": [
                *(f"Step {at} of {number}: {rng.random():.6f} ".ljust(100, ".") for at in range(STEPS - 1)),
                f"The answer is {2 * (number // PER_PROBLEM)}.",
            ],
        }
        for number in range(count)
    ]
    return write_rows(folder / f"{count}.jsonl", rows)


def _processor(path: Path, out: Path) -> tuple[float, float]:
    """Microseconds of processor a chain: to stage the chains, and for the rest."""
    config = ScoreConfig(
        out=str(out),
        data=DataConfig(path=str(path)),
        grader=MathConfig(),
        scorer=OracleScorerConfig(oracle=OracleScores(auc=0.8)),
        run=RunConfig(),
    )
    spent = 0.0

    def timed(*arguments: Any) -> Any:
        nonlocal spent
        began = time.process_time()
        found = staged_chains(*arguments)
        spent = time.process_time() - began
        return found

    with patch.object(chain_run, "staged_chains", timed):
        began = time.process_time()
        score_run(config, hired_here, lambda _: None, StopSignal())
        whole = time.process_time() - began
    return spent / CHAINS * 1e6, (whole - spent) / CHAINS * 1e6


def _driver(path: Path, out: Path) -> tuple[int, float]:
    """Peak memory of the driver in bytes, and seconds by the clock."""
    words = ["score", f"data.path={path}", "scorer=oracle", "scorer.oracle.auc=0.8", f"out={out}"]
    began, peak = time.monotonic(), 0
    process = subprocess.Popen([sys.executable, "-m", "pipeline", *words], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            peak = max(peak, psutil.Process(process.pid).memory_info().rss)
        except psutil.Error:
            break
        time.sleep(POLL_SECONDS)
    if process.wait() != 0:
        raise RuntimeError(f"score ended with {process.returncode}")
    return peak, time.monotonic() - began
