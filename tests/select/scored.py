"""Makes score files by hand."""

from pathlib import Path

import polars as pl

from pipeline.core.tables import SCORES

Row = dict[str, object]


def row(
    problem: str,
    chain: str,
    answer: str | None,
    score: float | None,
    *,
    gold: str | None = "7",
    outcome: bool | None = None,
    **other: object,
) -> Row:
    """A candidate. Without `outcome`, the outcome is whether `answer` equals `gold`."""
    known = None if gold is None or answer is None else answer == gold
    return {
        "row": 0,
        "chain_id": chain,
        "problem_id": problem,
        "source_id": None,
        "problem": f"What is {problem}?",
        "gold_answer": gold,
        "steps": ["so", f"it is {answer}"],
        "final_answer": answer,
        "outcome": known if outcome is None else outcome,
        "step_scores": [0.5, score],
        "step_positions": [None, None],
        "reliability": None,
        "n_scored": 2,
        "fault": None,
        "n_tokens": 0,
        "score_min": score,
        "score_product": score,
        "score_mean": score,
        "score_last": score,
        "score": score,
        "model": "no model",
        **other,
    }


def written(path: Path, rows: list[Row]) -> Path:
    """Write the rows in the format of the file's suffix."""
    frame = pl.DataFrame(rows, schema=pl.DataFrame(SCORES.schema.empty_table()).schema)
    if path.suffix == ".jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_parquet(path)
    return path
