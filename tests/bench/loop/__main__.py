"""`python -m tests.bench.loop FOLDER [short | long]`: the closed loop with one of the tiny policies. Started again on the same
folder it goes on, if the code is the same. Nothing here is asserted: what comes out is printed. See `laps`.
"""

import random
import sys
from pathlib import Path

import polars as pl
import torch

from tests.bench.loop.laps import STEP, Laps
from tests.bench.loop.plan import LOOPS, SEED, SHORT_LOOP, TEST_PROBLEMS, Loop
from tests.bench.loop.problems import exercises, judged, row
from tests.bench.loop.report import agreement, costs, transfer
from tests.bench.loop.search_grid import searched_lines
from tests.bench.loop.searching import Searches
from tests.bench.loop.stages import code_of, run_all
from tests.checkout import ROOT, write_rows


def main(folder: Path, loop: Loop, test_problems: int = TEST_PROBLEMS) -> None:
    at = folder.resolve()
    at.mkdir(parents=True, exist_ok=True)
    rng = random.Random(SEED)
    every = exercises(rng, loop.size, loop.train_problems + test_problems)
    more = exercises(rng, loop.size, loop.other_problems, without={exercise.problem for exercise in every})
    parts = {"train": every[: loop.train_problems], "test": every[loop.train_problems :], "others": more}
    for name, of in parts.items():
        write_rows(at / f"{name}.jsonl", [row(exercise) for exercise in of])
    train, test, others = ({exercise.problem: exercise for exercise in of} for of in parts.values())

    def write_judged() -> None:
        labels = pl.read_parquet(at / "test-run" / "labels" / "*.parquet")
        chains = labels.select("problem", "gold_answer", "steps", "outcome").iter_rows(named=True)
        write_rows(at / "judged.jsonl", judged(chains, test))

    laps = Laps(at, loop.policy)
    stages = [*laps.first(write_judged), *(laps.second() if others else ()), *(laps.third() if others else ())]
    done = run_all(stages, at / "done.json", code_of(ROOT / "pipeline", loop.policy.asset))
    print("\nagreement with arithmetic", *agreement(at, train, test), sep="\n")
    if others:
        print("\nthe first lap's PRM as a witness for labels of other problems", *transfer(at, others, test), sep="\n")
        # All methods at all sizes would start vLLM dozens of times, so they run in this process.
        torch.set_num_threads(1)
        searches = Searches(at / "searches", at / f"{STEP}-model", at / "test.jsonl", SEED)
        lines = list(searched_lines([searches], lambda line: print(line, flush=True)))
        print("\nall methods of search with the first lap's PRM", *lines, sep="\n")
    print("", *costs(at, done), sep="\n")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or not {*sys.argv[2:]} <= LOOPS.keys():
        raise SystemExit(f"usage: python -m tests.bench.loop FOLDER [{' | '.join(LOOPS)}]")
    main(Path(sys.argv[1]), LOOPS[sys.argv[2]] if sys.argv[2:] else SHORT_LOOP)
