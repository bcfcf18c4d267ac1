"""The best chain of every problem."""

import json

import polars as pl

from pipeline.analysis.select.read import SCORE, Scored

_COLUMNS = ["problem_id", "source_id", "problem", "gold_answer", "chain_id", "steps", "final_answer", "outcome", SCORE]


def chosen_lines(candidates: Scored) -> list[bytes]:
    """JSON lines, one per problem in the order of the file; of equal scores the first by chain_id."""
    best = (
        candidates.frame.with_row_index("place")
        .with_columns(pl.col("place").min().over("problem_id"))
        .sort("place", pl.col(SCORE), "chain_id", descending=[False, True, False], nulls_last=True)
        .unique("problem_id", keep="first", maintain_order=True)
    )
    return [f"{json.dumps(row, ensure_ascii=False)}\n".encode() for row in best.select(_COLUMNS).iter_rows(named=True)]
