"""Runs of `label` and of `check` in the process of the test."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.config.check import CheckRunConfig
from pipeline.config.label import ClusterConfig, DataConfig, RunConfig
from pipeline.core.progress import Status, Summary
from pipeline.core.tables import FINDINGS
from pipeline.runtime.checking.task import check_run
from pipeline.runtime.objects import given, offered
from pipeline.storage.location import storage_at
from pipeline.storage.stored_findings import CHECK_RUNS, StoredCheck
from tests.conftest import write_rows
from tests.runtime.checking.hostile import Obedient, ObedientConfig
from tests.runtime.growing import label
from tests.runtime.in_process import in_process, stop_signal
from tests.runtime.judging import runs as judging

NAME = "obedient"
QUICK = judging.QUICK


def rows(count: int, steps: Callable[[int], Sequence[str]]) -> list[dict[str, Any]]:
    """Problems with a chain each."""
    return [
        {"problem": f"problem {number}", "answer": "1", "steps": list(steps(number)), "id": f"r{number}"}
        for number in range(count)
    ]


def sums(number: int) -> list[str]:
    """Steps of which those of every third chain have a false sum."""
    total = number + 3 if number % 3 else number + 4
    return ["Let us begin.", f"{number} + 3 = {total}.", f"The answer is {total}."]


def orders(number: int) -> list[str]:
    """Steps for `Obedient`."""
    return [("right", "wrong", "unclear", "wrong")[(number + at) % 4] for at in range(1 + number % 4)]


def labelled(folder: Path, count: int, steps: Callable[[int], Sequence[str]] = orders) -> Path:
    """A run directory with labels of chains; labelled again, with more chains, it grows."""
    label(folder, rows(count, steps), *judging.FEW, "estimator.rule=threshold")
    return folder / "run"


def settings(run_dir: Path, run: RunConfig = QUICK, **own: Any) -> CheckRunConfig:
    """`check` by `Obedient` with settings of its own."""
    verifier = ObedientConfig(**{"deadline_seconds": 20.0, **own})
    return CheckRunConfig(
        run_dir=str(run_dir), verifier=verifier, processes=1, run=run, cluster=ClusterConfig(workers=2)
    )


@contextmanager
def obedient() -> Iterator[None]:
    """`Obedient` is among the verifiers."""
    with offered([given("verifier", Obedient(ObedientConfig()))]):
        yield


def checked(config: CheckRunConfig, watch: Callable[[Status], None] = lambda _: None) -> Mapping[str, Summary]:
    with obedient(), stop_signal() as stop:
        return check_run(config, in_process, watch, stop)


def checked_rows(folder: Path, problems: Sequence[tuple[str, list[str]]], verifier: str) -> pl.DataFrame:
    """The findings of a verifier on rows with these problems and steps."""
    given: list[dict[str, Any]] = [{"problem": problem, "answer": "1", "steps": steps} for problem, steps in problems]
    data = DataConfig(path=str(write_rows(folder / "rows.jsonl", given)))
    checked(CheckRunConfig(run_dir=str(folder / "run"), checks=[verifier], processes=1, run=QUICK, data=data))
    return frame(folder / "run", verifier)


def stored(run_dir: Path, name: str = NAME) -> StoredCheck:
    return CHECK_RUNS.read(storage_at(str(run_dir)), name)


def frame(run_dir: Path, name: str = NAME) -> pl.DataFrame:
    """All findings."""
    return stored(run_dir, name).frame(FINDINGS)
