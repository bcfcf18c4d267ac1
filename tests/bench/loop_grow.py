"""What a student learns from a run that has grown, against more chains and more problems for as many tokens: best of 16 with
the tiny policy.

It continues in `runs/loop-grow`: what is there is not run again. Remove the folder to start with other code. Students choose
among the candidates of the part `loop`, from its pool in `runs/loop-experiment`.
"""

import time

import torch

from tests.bench.loop import FOLDER as POOL
from tests.conftest import ROOT
from tests.loop.experiment import Experiment
from tests.loop.growing import ARMS, BASE, MORE_CHAINS, MORE_PROBLEMS, Growing, Sizes, plan
from tests.loop.grown_tables import arms_table, differences_table

FOLDER = ROOT / "runs" / "loop-grow"


def loop_grow() -> None:
    """Run what is missing, and print the tables."""
    torch.set_num_threads(1)
    began = time.monotonic()
    experiment = Experiment(POOL, _show)
    try:
        growing = Growing(FOLDER, experiment.students, experiment.exercises_of, Sizes(), _show)
        for arm, seed in plan():
            growing.run(arm, seed)
        results, votes = growing.results(), experiment.votes
    finally:
        experiment.close()
    seconds = sum(each["seconds"] for each in results)
    _show(f"\n{(time.monotonic() - began) / 60:.0f} minutes; {seconds / 60:.0f} of all starts")
    for table in (
        arms_table(results, votes, ARMS),
        *(differences_table(results, of, ARMS) for of in (MORE_CHAINS, MORE_PROBLEMS, BASE)),
    ):
        print()
        for line in table:
            _show(line)


def _show(line: str) -> None:
    print(line, flush=True)
