"""Makes small run directories with data of every kind, which tests audit and damage."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

from pipeline.analysis.audit.findings import Finding
from pipeline.analysis.audit.run import audit
from pipeline.analysis.relabel import regrade, relabel
from pipeline.config.changes import AuditConfig, RegradeConfig, RelabelConfig
from pipeline.config.choices import LabelRule
from pipeline.config.label import LabelConfig
from pipeline.engines import oracle
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.settings import EstimatorChange, GraderChange, compose_label

ROLLOUTS = 3
EXTENDED = 5


def rows() -> list[dict[str, Any]]:
    """Rows with shared prefixes, a chain without an answer, a prefix and a problem that are too long, bare problems, and bad
    rows."""
    sums = [
        {
            "id": f"{n}-{last}",
            "problem": f"What is {n} + {n} + 1?",
            "answer": str(2 * n + 1),
            "steps": [f"{n} + {n} = {2 * n}.", f"{2 * n} + 1 = {last}.", f"The answer is {last}."],
        }
        for n in (3, 4)
        for last in (2 * n + 1, 2 * n + 3)
    ]
    return [
        *sums,
        {"id": "open", "problem": "What is 5 + 1?", "answer": "6", "steps": ["5 + 1 is", "what it is."]},
        {"id": "long", "problem": "What is 6?", "answer": "6", "steps": ["It is 6.", "x" * 300, "The answer is 6."]},
        {"id": "huge", "problem": "y" * 500, "answer": "6", "steps": ["The answer is 6."]},
        {"id": "bare", "problem": "What is 7?", "answer": "7"},
        {"id": "none", "problem": "", "answer": "7"},
    ]


def config(folder: Path, *overrides: str) -> LabelConfig:
    """The settings of a run in `folder`/run on `rows`."""
    data = folder / "rows.jsonl"
    if not data.exists():
        write_rows(data, rows())
    small = [
        "policy=lab",
        "estimator=fixed",
        "policy.max_model_len=300",
        "sampling.max_tokens=100",
        "run.unit_problems=3",
    ]
    run_dir = f"run_dir={folder / 'run'}"
    return compose_label([f"data.path={data}", run_dir, *small, f"sampling.rollouts={ROLLOUTS}", *overrides])


def labelled(folder: Path, *overrides: str) -> Path:
    """The directory of a finished run. Its engine died once, so it has flushed files."""
    with patch.object(oracle, "_CHUNK", 4):
        label_in_process(config(folder, "policy.lab.fail_after=20", *overrides))
    return folder / "run"


def edited(folder: Path) -> Path:
    """The directory of a run that was extended, regraded with other verdicts, and relabelled by another rule."""
    labelled(folder)
    run_dir = labelled(folder, f"sampling.rollouts={EXTENDED}")
    regrade(RegradeConfig(run_dir=str(run_dir), grader=GraderChange(answer_pattern="work (is)")))
    relabel(RelabelConfig(run_dir=str(run_dir), estimator=EstimatorChange(rule=LabelRule.threshold)))
    return run_dir


def copied(run_dir: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run_dir, folder / run_dir.name))


def labels(run_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(run_dir / "labels" / "*.parquet")


def files(run_dir: Path) -> dict[str, bytes]:
    """File name -> content. The lock has no content and is left out."""
    found = (path for path in sorted(run_dir.rglob("*")) if path.is_file() and path.name != ".lock")
    return {path.relative_to(run_dir).as_posix(): path.read_bytes() for path in found}


def findings(run_dir: Path) -> Sequence[Finding]:
    """What an audit finds. Each finding says where, and what to do."""
    found = audit(AuditConfig(run_dir=str(run_dir))).findings
    assert all(finding.remedy and finding.where for finding in found)
    return found
