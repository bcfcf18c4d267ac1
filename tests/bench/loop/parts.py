"""The parts `loop` and `loop-search` of the bench. Each continues in a folder below `runs/`: what is there is not
run again. Remove the folder to start with other code.
"""

import random
from pathlib import Path

import torch

from tests.bench.loop.arms import ARMS, POOLED_LABELS, RECIPE, plan
from tests.bench.loop.experiment import POOL, Experiment
from tests.bench.loop.plan import SEED, SIZE
from tests.bench.loop.problems import exercises, row
from tests.bench.loop.search_grid import auc_line, searched_lines
from tests.bench.loop.searching import Searches
from tests.bench.loop.tables import arms_table, ceiling_line, differences_table, leads_table
from tests.checkout import ROOT, write_rows

SEARCHED = ROOT / "runs" / "loop-search"
RUNS = 3
PROBLEMS = 100
"""Of a run of searches. No model has learned from them."""


def loop() -> None:
    """The closed loop as an experiment: five seeds of every arm, and ceilings."""
    experiment = _experiment()
    for arm, seed in plan():
        experiment.run(arm, seed)
    results, votes, names = experiment.results(), experiment.votes, [arm.name for arm in ARMS]
    for table in (
        arms_table(results, votes, names),
        ceiling_line(experiment.by_arithmetic),
        leads_table(results, votes, RECIPE.name),
        leads_table(results, votes, POOLED_LABELS.name),
        differences_table(results, POOLED_LABELS.name, names),
    ):
        _show("", *table)


def loop_search() -> None:
    """The methods of `search` with PRMs that learn as in the part `loop`: accuracy at equal tokens, over runs that each have a
    PRM, problems and samples of their own."""
    experiment = _experiment()
    figures = [experiment.write_model(RECIPE, seed, _model(seed)) for seed in range(RUNS)]
    others = exercises(random.Random(SEED + 1), SIZE, RUNS * PROBLEMS, without=experiment.problems)
    runs = []
    for seed in range(RUNS):
        problems = SEARCHED / f"problems-{seed}.jsonl"
        write_rows(problems, [row(exercise) for exercise in others[PROBLEMS * seed : PROBLEMS * (seed + 1)]])
        runs.append(Searches(SEARCHED / f"run-{seed}", _model(seed), problems, seed))
    table = list(searched_lines(runs, _show))
    _show(f"\n{RUNS} runs with {PROBLEMS} problems each", *table)
    _show(auc_line("step scores against arithmetic", [each["step_auc"] for each in figures]))


def _experiment() -> Experiment:
    torch.set_num_threads(1)
    return Experiment(POOL, _show)


def _model(seed: int) -> Path:
    return SEARCHED / f"prm-{seed}"


def _show(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)
