"""Candidates with what arithmetic says about their steps, as a file in ProcessBench's layout: `label` is the index of the first
wrong step from 0, or -1."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from tests.bench.loop.plan import Files
from tests.bench.loop.truth import right
from tests.conftest import write_rows
from tests.tiny.arithmetic import Exercise

SUBSET = "arithmetic"


def write_judged(files: Files, exercises: Mapping[str, Exercise]) -> None:
    """Write the distinct candidates that have steps. `exercises`: by the text of the problem."""
    labels = pl.read_parquet(files.test_run / "labels" / "*.parquet")
    chains = labels.select("problem", "gold_answer", "steps", "outcome").iter_rows(named=True)
    write_rows(files.judged, judged(chains, exercises))


def judged(chains: Iterable[Mapping[str, Any]], exercises: Mapping[str, Exercise]) -> list[dict[str, Any]]:
    """The rows. `chains`: rows of `labels`."""
    rows: list[dict[str, Any]] = []
    for number, chain in enumerate(chains):
        flags = right(chain["steps"], exercises[chain["problem"]])
        rows.append(
            {
                "id": f"{SUBSET}-{number}",
                "problem": chain["problem"],
                "answer": chain["gold_answer"],
                "steps": chain["steps"],
                "label": -1 if all(flags) else flags.index(False),
                "final_answer_correct": chain["outcome"] is True,
            }
        )
    return rows
