"""The closed loop as an experiment: five seeds of every arm, with ceilings, and what the spread comes from.

It continues in `runs/loop-experiment`: what is there is not run again. Remove the folder to start with other code.
"""

import time

import torch

from tests.conftest import ROOT
from tests.loop.arms import ARMS, POOLED_LABELS, RECIPE, plan
from tests.loop.experiment import Experiment
from tests.loop.plan import TEST_PROBLEMS
from tests.loop.tables import arms_table, ceiling_line, differences_table, leads_table, spread_table

FOLDER = ROOT / "runs" / "loop-experiment"


def loop() -> None:
    """Run what is missing, and print the tables."""
    torch.set_num_threads(1)
    began = time.monotonic()
    experiment = Experiment(FOLDER, lambda line: print(line, flush=True))
    try:
        for run in plan():
            experiment.run(run.arm, run.seed, run.training_seed)
        results, votes, checker = experiment.results(), experiment.votes, experiment.by_arithmetic
    finally:
        experiment.close()
    print(
        f"\n{(time.monotonic() - began) / 60:.0f} minutes; {sum(each['seconds'] for each in results) / 60:.0f} of all starts"
    )
    names = [arm.name for arm in ARMS]
    for table in (
        arms_table(results, votes, names),
        ceiling_line(checker),
        leads_table(results, votes, RECIPE.name),
        leads_table(results, votes, POOLED_LABELS.name),
        differences_table(results, POOLED_LABELS.name, [name for name in names if name != POOLED_LABELS.name]),
        spread_table(results, votes, POOLED_LABELS.name, TEST_PROBLEMS),
    ):
        print()
        for line in table:
            print(line)
