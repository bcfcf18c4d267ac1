"""Runs of `label` and of `judge` with oracles, in the process of the test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.config.judge import JudgeRunConfig
from pipeline.config.label import ClusterConfig, RunConfig
from pipeline.core.progress import Status, Summary
from pipeline.core.tables import CRITIQUES
from pipeline.judges.settings import OracleVotes
from pipeline.runtime.chain_run.run import Running
from pipeline.runtime.judging.task import JudgeTask
from pipeline.storage.location import storage_at
from pipeline.storage.stored_critiques import JUDGE_RUNS, StoredJudge
from tests.oracles.lab import LabJudgeConfig, LabVotes
from tests.runtime.growing import label
from tests.runtime.in_process import done_here
from tests.runtime.virtual_clock import on_a_virtual_clock

Row = dict[str, Any]
NAME = "dry"
VOTES = 3
FEW = ("sampling.rollouts=2", "run.unit_problems=4")
QUICK = RunConfig(unit_problems=5, progress_seconds=0.05, attempts=1)


def rows(count: int, first: int = 0) -> list[Row]:
    """Problems with a chain of 2 to 4 steps each."""
    return [
        {
            "problem": f"{number}+1",
            "answer": str(number + 1),
            "steps": [f"step {at} of {number}" for at in range(1 + number % 3)] + [f"The answer is {number + 1}."],
        }
        for number in range(first, first + count)
    ]


def labelled(folder: Path, count: int) -> Path:
    """A run directory with labels of chains; labelled again, with more chains, it grows."""
    label(folder, rows(count), *FEW)
    return folder / "run"


def settings(
    run_dir: Path, run: RunConfig = QUICK, *, name: str = NAME, votes: int = VOTES, seed: int = 0, **own: Any
) -> JudgeRunConfig:
    return JudgeRunConfig(
        run_dir=str(run_dir),
        judge=LabJudgeConfig(name=name, votes=votes, oracle=OracleVotes(seed=seed), lab=LabVotes(**own)),
        run=run,
        cluster=ClusterConfig(workers=2),
    )


def judged(
    config: JudgeRunConfig, watch: Callable[[Status], None] = lambda _: None, run: Running = on_a_virtual_clock
) -> Summary:
    return done_here(JudgeTask(config), watch, run)


def stored(run_dir: Path, name: str = NAME) -> StoredJudge:
    return JUDGE_RUNS.read(storage_at(str(run_dir)), name)


def frame(run_dir: Path, name: str = NAME) -> pl.DataFrame:
    """All critiques with their newest readings."""
    return stored(run_dir, name).frame(CRITIQUES)
