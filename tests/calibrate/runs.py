"""A run whose true values are known, and score files of a scorer that knows them and distorts them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pipeline.core.records import Problem
from pipeline.core.statistics import Floats
from pipeline.core.tables import LABELS
from pipeline.engines.oracle import true_value
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import stored_run
from tests.agree.scored import score_row
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label

STEPS = 5
"""Of each chain; the last one states the answer."""
SPREAD = 0.35
MODEL = "prm"
Row = dict[str, Any]


def oracle_run(folder: Path, *overrides: str, problems: int = 60, first: int = 0) -> Path:
    """A run of `problems` with two chains each, which share their first step. Problems are numbered from `first`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = [
        {
            "id": f"{number}-{last}",
            "problem": f"What is {number} + {number}?",
            "answer": str(2 * number),
            "steps": [
                f"Twice {number}.",
                *(f"Step {at} of chain {last}." for at in range(2, STEPS)),
                f"The answer is {2 * number + last}.",
            ],
        }
        for number in range(first, first + problems)
        for last in (0, 1)
    ]
    data = write_rows(folder / "rows.jsonl", rows)
    settings = ["policy=lab", "estimator=fixed", f"policy.lab.spread={SPREAD}", "sampling.rollouts=8"]
    label_in_process(compose_label([*settings, f"data.path={data}", f"run_dir={folder / 'run'}", *overrides]))
    return folder / "run"


def labels(run_dir: Path) -> list[Row]:
    return list(stored_run(LocalStorage(run_dir)).frame(LABELS).iter_rows(named=True))


def true_values(row: Row) -> list[float]:
    """V of each step but the last one, whose V is the outcome."""
    problem = cast(Problem, SimpleNamespace(problem_id=row["problem_id"]))
    inner = [true_value(0, SPREAD, problem, prefix) for prefix in row["prefix_ids"][:-1]]
    return [*inner, float(row["outcome"])]


def too_high(values: Floats) -> Floats:
    """What a scorer says that believes in every chain."""
    return np.asarray(values**0.4)


def scored(
    rows: Sequence[Row], distort: Callable[[Floats], Floats] = too_high, *, noise: float = 0.05, **other: Any
) -> list[Row]:
    """Rows as `score` writes them: V, distorted and blurred."""
    made = []
    for row in rows:
        # By the prefix, so that chains that share a step have the same score of it.
        blurred = [
            float(np.clip(distort(np.array(value)) + noise * np.random.default_rng(int(prefix[:8], 16)).normal(), 0, 1))
            for value, prefix in zip(true_values(row), row["prefix_ids"], strict=True)
        ]
        given = {"source_id": row["source_id"], "outcome": row["outcome"], "model": MODEL, **other}
        made.append(score_row(row["problem"], row["steps"], blurred, **given))
    return made
