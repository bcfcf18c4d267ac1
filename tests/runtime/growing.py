"""Starts of a run whose input grows, and what tests ask of its directory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.analysis.audit.run import AuditReport, audit
from pipeline.config.changes import AuditConfig
from pipeline.core.progress import Summary
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label

Row = dict[str, Any]
SMALL = ("policy=oracle", "estimator=fixed", "sampling.rollouts=3", "run.unit_problems=3")


def chains(*numbers: int, last: int = 1) -> list[Row]:
    """Chains of the problems `numbers`; another `last` gives other chains of them, which share the first step."""
    return [
        {
            "id": f"{n}-{last}",
            "problem": f"What is {n} + {n} + 1?",
            "answer": str(2 * n + 1),
            "steps": [f"{n} + {n} = {2 * n}.", f"{2 * n} + 1 = {2 * n + last}.", f"The answer is {2 * n + last}."],
        }
        for n in numbers
    ]


def bare(*numbers: int) -> list[Row]:
    """The problems `numbers` without chains."""
    return [{**row, "id": f"{row['id']}-bare", "steps": None} for row in chains(*numbers)]


def label(folder: Path, rows: Sequence[Row], *overrides: str) -> Summary:
    """One start on `folder`/run with these rows as its input."""
    folder.mkdir(exist_ok=True)
    data = write_rows(folder / "rows.jsonl", rows)
    return label_in_process(compose_label([f"data.path={data}", f"run_dir={folder / 'run'}", *SMALL, *overrides]))


def labels(folder: Path) -> pl.DataFrame:
    """All of `labels/`, as a user reads it."""
    return pl.read_parquet(folder / "run" / "labels" / "*.parquet").sort("chain_id")


def files(folder: Path, name: str) -> dict[str, bytes]:
    """The files of one folder of the run directory."""
    return {path.name: path.read_bytes() for path in sorted((folder / "run" / name).glob("*"))}


def audited(folder: Path) -> AuditReport:
    return audit(AuditConfig(run_dir=str(folder / "run")))


def assert_sound(folder: Path) -> None:
    """The run is finished, and an audit finds no fault and no file in a wrong place."""
    report = audited(folder)
    assert (report.findings, report.owed, report.orphans.foreign) == ([], 0, ())
