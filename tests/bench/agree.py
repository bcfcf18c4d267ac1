"""`agree scores=...`: how long it takes, and how often its intervals hold known truth."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.agree.known import TRUTH, coverage
from tests.agree.scored import beta, oracle, write_scores
from tests.conftest import write_rows

CHAINS = (1_308, 10_000)
SECONDS = 10
"""For the first number of chains."""
REPEATS, SAMPLE, REPLICATES = 2_000, 300, 500
SUBSETS = ("gsm8k", "math", "olympiadbench", "omnimath")


def agree() -> None:
    print(f"\nagree: goals: {CHAINS[0]:,} chains in {SECONDS} s; intervals hold the truth in 95 +- 2 % of samples")
    with tempfile.TemporaryDirectory() as folder:
        for chains in CHAINS:
            seconds = _seconds(Path(folder), chains)
            print(f"  {chains:,} chains, page and JSON: {seconds:.1f} s by the clock")
    print(f"  {REPEATS:,} samples of {SAMPLE} chains, {REPLICATES} bootstrap samples each:")
    for name, share in coverage(REPEATS, SAMPLE, REPLICATES).items():
        print(f"    {name}, true value {TRUTH[name]:.4f}: held in {100 * share:.1f} %")


def _seconds(folder: Path, chains: int) -> float:
    rng = np.random.default_rng(0)
    rows = [_row(number, rng) for number in range(chains)]
    data = write_rows(folder / f"{chains}.jsonl", rows)
    scores = write_scores(folder / f"{chains}.parquet", oracle(rows, beta(1)))
    words = [f"scores={scores}", f"data.path={data}", "threshold=dev", "dev=gsm8k", f"out={folder / f'{chains}.json'}"]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pipeline", "agree", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _row(number: int, rng: np.random.Generator) -> dict[str, Any]:
    """A chain of 3 to 15 steps of 150 characters."""
    steps = [f"step {at} of {number} ".ljust(150, ".") for at in range(int(rng.integers(3, 16)))]
    return {
        "id": f"{SUBSETS[number % len(SUBSETS)]}-{number}",
        "problem": f"problem {number} ".ljust(300, "."),
        "steps": steps,
        "label": int(rng.integers(-1, len(steps))),
        "final_answer_correct": bool(rng.random() < 0.5),
    }
