"""Small runs of every estimator in this process, and readers of their logs and labels."""

from pathlib import Path
from typing import Any

import polars as pl

from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.config.label import LabelConfig
from tests.conftest import write_rows
from tests.settings import compose_label


def sums(count: int, chains: int = 2) -> list[dict[str, Any]]:
    """`count` problems with chains of three steps; every second chain is wrong."""
    return [
        {
            "id": f"{n}-{chain}",
            "problem": f"What is {n} + {n} + 1?",
            "answer": str(2 * n + 1),
            "steps": [
                f"{n} + {n} = {2 * n}.",
                f"Way {chain}: {2 * n} + 1 = {2 * n + 1 + chain % 2}.",
                f"The answer is {2 * n + 1 + chain % 2}.",
            ],
        }
        for n in range(3, 3 + count)
        for chain in range(chains)
    ]


def long_chain(steps: int) -> dict[str, Any]:
    texts = [f"{n} + 1 = {n + 1}." for n in range(steps - 1)]
    return {"id": f"long-{steps}", "problem": f"Count to {steps}.", "answer": str(steps), "steps": [*texts, "Done."]}


def settings(folder: Path, rows: list[dict[str, Any]], *overrides: str) -> LabelConfig:
    """A run in `folder`/run; `run.unit_problems` puts all problems into one unit."""
    folder.mkdir(exist_ok=True)
    data = folder / "rows.jsonl"
    if not data.exists():
        write_rows(data, rows)
    small = ["policy=oracle", "run.unit_problems=100", "sampling.rollouts=4", "cluster.workers=1"]
    return compose_label([f"data.path={data}", f"run_dir={folder / 'run'}", *small, *overrides])


def table(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder / "run" / name / "*.parquet")


def log(folder: Path) -> dict[str, tuple[str, str, int]]:
    """Rollout id -> text, verdict and round. Every id is unique."""
    columns = table(folder, "rollouts").select("rollout_id", "text", "verdict", "round").rows()
    found = {rollout: (text, verdict, number) for rollout, text, verdict, number in columns}
    assert len(found) == len(columns)
    return found


def labels(folder: Path) -> pl.DataFrame:
    return table(folder, "labels").sort("chain_id")


def kernels(folder: Path) -> list[int]:
    """The number of chains from which the kernels in the folder were learned."""
    return sorted(table(folder, "kernels")["chains"].to_list())


def proved(folder: Path) -> None:
    report = audit(AuditConfig(run_dir=str(folder / "run")))
    assert report.sound, report.findings
