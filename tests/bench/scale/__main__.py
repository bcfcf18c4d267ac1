"""`python -m tests.bench.scale [PRICE [CHAINS]]`: idle engines, and what a million labelled steps cost.

PRICE is what a GPU hour costs, in any currency (default 3). No GPU is used: engines run on a virtual clock.
"""

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.bench.scale import render
from tests.bench.scale.chains import write_chains
from tests.bench.scale.cost import Pieces, costs
from tests.bench.scale.pace import QWEN_1_5B, QWEN_7B, Pace
from tests.bench.scale.run import CAPACITY, Played, play

CHAINS = 2_000
SEED = 1
PRICE = 3.0
PROCESSES = 2
LABELLED = (("pooled", 8), ("pooled", 4), ("pooled", 1), ("fixed", 8), ("fixed", 4), ("fixed", 1))
"""Estimators and workers of the idle share, the slowest first."""


def main(price: float, chains: int) -> None:
    with tempfile.TemporaryDirectory(prefix="stepvalue-scale-") as folder, ProcessPoolExecutor(PROCESSES) as pool:
        data = write_chains(Path(folder) / "chains.jsonl", chains, SEED)
        playing = [
            pool.submit(play, data, QWEN_7B, workers=many, settings=[f"estimator={name}"]) for name, many in LABELLED
        ]
        played = {shape: job.result() for shape, job in zip(LABELLED, playing, strict=True)}
    pieces = [
        each
        for pace in (QWEN_1_5B, QWEN_7B)
        for each in costs(_piece(pace, "fixed", played["fixed", 1]), _piece(pace, "pooled", played["pooled", 1]))
    ]
    for table in (
        render.idle_table([(name, run) for (name, _), run in sorted(played.items())]),
        render.cost_table(pieces, price),
    ):
        print("\n" + "\n".join(table))


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


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else PRICE, int(sys.argv[2]) if sys.argv[2:] else CHAINS)
