"""Score files for tests: an oracle that knows people's labels and blurs them as wished, and files as `score` writes."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config.choices import Aggregation
from pipeline.core.tables import SCORES
from pipeline.scorers.chain_scores import chain_score, chain_scores

Rng = np.random.Generator


def score_row(
    problem: str,
    steps: Sequence[str],
    scores: Sequence[float | None],
    *,
    source_id: str | None = None,
    outcome: bool | None = None,
    model: str = "oracle",
) -> dict[str, Any]:
    """A row with all columns of `tables.SCORES`."""
    return {
        "row": 0,
        "chain_id": f"c-{source_id}-{problem}-{len(steps)}",
        "problem_id": f"p-{problem}",
        "source_id": source_id,
        "problem": problem,
        "gold_answer": None,
        "steps": list(steps),
        "final_answer": None,
        "outcome": outcome,
        "step_scores": list(scores),
        "step_positions": [None] * len(scores),
        "reliability": None,
        "n_scored": sum(score is not None for score in scores),
        "fault": "too_long" if None in scores else None,
        "n_tokens": 0,
        **chain_scores(scores),
        "score": chain_score(scores, Aggregation.last),
        "model": model,
    }


def write_scores(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A file as `score` writes it: Parquet, or JSONL by its name."""
    if path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=SCORES.schema), path, compression="zstd")
    return path


def beta(shift: float) -> Callable[[bool, Rng], float]:
    """Scores of steps: a good one is distributed as Beta(1 + shift, 1), a bad one as Beta(1, 1 + shift).

    With shift 1 their densities are 2x and 2(1 - x), and the AUC is 5/6.
    """

    def draw(good: bool, rng: Rng) -> float:
        return float(rng.beta(1 + shift, 1) if good else rng.beta(1, 1 + shift))

    return draw


def oracle(
    rows: Sequence[Mapping[str, Any]], draw: Callable[[bool, Rng], float], *, seed: int = 0, label: str = "label"
) -> list[dict[str, Any]]:
    """Scores of ProcessBench rows: each step up to the first error by `draw`, those after it like bad ones."""
    rng = np.random.default_rng(seed)
    return [
        score_row(
            row["problem"],
            [step.strip() for step in row["steps"]],
            [draw(row[label] == -1 or at < row[label], rng) for at in range(len(row["steps"]))],
            source_id=row.get("id"),
            outcome=row.get("final_answer_correct"),
        )
        for row in rows
    ]
