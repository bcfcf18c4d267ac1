"""The methods of `search` with PRMs that the loop trains: accuracy at equal tokens, over runs that each have a PRM, problems
and samples of their own.

It continues in `runs/loop-search`: what is there is not run again. Remove the folder to start with other code. PRMs learn as in
the part `loop`, from its pool in `runs/loop-experiment`.
"""

import random
from pathlib import Path

import torch

from tests.bench.loop import FOLDER as POOL
from tests.conftest import ROOT, write_rows
from tests.loop.arms import RECIPE
from tests.loop.experiment import Experiment
from tests.loop.plan import SEED, SIZE
from tests.loop.problems import exercises, row
from tests.loop.search_grid import auc_line, searched_lines
from tests.loop.searching import Searches

FOLDER = ROOT / "runs" / "loop-search"
RUNS = 3
PROBLEMS = 100
"""Of a run. No model has learned from them."""


def loop_search() -> None:
    """Run what is missing, and print the tables."""
    torch.set_num_threads(1)
    experiment = Experiment(POOL, _show)
    try:
        figures = [experiment.write_model(RECIPE, seed, _model(seed)) for seed in range(RUNS)]
        others = exercises(random.Random(SEED + 1), SIZE, RUNS * PROBLEMS, without=experiment.problems)
    finally:
        experiment.close()
    runs = []
    for seed in range(RUNS):
        problems = FOLDER / f"problems-{seed}.jsonl"
        write_rows(problems, [row(exercise) for exercise in others[PROBLEMS * seed : PROBLEMS * (seed + 1)]])
        runs.append(Searches(FOLDER / f"run-{seed}", _model(seed), problems, seed))
    table = list(searched_lines(runs, _show))
    print(f"\n{RUNS} runs with {PROBLEMS} problems each")
    for text in (*table, auc_line("step scores against arithmetic", [each["step_auc"] for each in figures])):
        print(text)


def _model(seed: int) -> Path:
    return FOLDER / f"prm-{seed}"


def _show(line: str) -> None:
    print(line, flush=True)
