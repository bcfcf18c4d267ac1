"""Makes plans and runs with the oracle policy in this process."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from pipeline.analysis.plan.run import plan
from pipeline.core.forecast import Forecast, encode_forecast
from pipeline.core.progress import Summary
from pipeline.runtime.stop import StopSignal
from tests.conftest import write_rows
from tests.runtime.in_process import in_process, label_in_process
from tests.settings import compose_label

MADE_AT = "2026-01-02T03:04:05+00:00"


def problems(count: int, seed: int = 0, most_chains: int = 3) -> list[dict[str, Any]]:
    """Rows with chains of two to nine steps; half of the chains are correct."""
    rng = Random(seed)
    rows: list[dict[str, Any]] = []
    for problem in range(count):
        answer = rng.randint(10, 99)
        for chain in range(rng.randint(1, most_chains)):
            steps = [
                f"Case {step} of {problem}.{chain} {'x' * rng.randint(1, 99)}" for step in range(rng.randint(1, 8))
            ]
            steps.append(f"The answer is {answer + rng.randint(0, 1)}.")
            question = f"What is {answer} of {problem}?"
            rows.append({"id": f"{problem}-{chain}", "problem": question, "answer": str(answer), "steps": steps})
    return rows


def planned(folder: Path, rows: Sequence[dict[str, Any]], *overrides: str) -> Forecast:
    """Plan the rows and write plan.json into the folder."""
    config = compose_label([f"data.path={write_rows(folder / 'rows.jsonl', rows)}", "policy=oracle", *overrides])
    forecast = plan(config, in_process, lambda _: None, StopSignal(), made_at=MADE_AT)
    (folder / "plan.json").write_bytes(encode_forecast(forecast))
    return forecast


def labelled(folder: Path, *overrides: str) -> Summary:
    """Label the planned rows."""
    settings = [f"data.path={folder / 'rows.jsonl'}", "policy=oracle", f"run_dir={folder / 'run'}"]
    return label_in_process(compose_label([*settings, *overrides]))


def edited(folder: Path, **limit: float | None) -> str:
    """The setting that names a plan.json with another limit."""
    path = folder / "plan.json"
    values = json.loads(path.read_text())
    values["limit"] |= limit
    path.write_text(json.dumps(values))
    return f"budget={path}"
