"""The tables of a run of `search`, as far as two runs of the same searches have them alike."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from pipeline.core.table import TABLES as DECLARED
from pipeline.storage.location import storage_at
from pipeline.storage.stored_search import stored_search

SAMPLES, STEP_SCORES, CANDIDATES, SEARCHES = "samples", "stepscores", "candidates", "searches"
METHODS = ("best_of_n", "majority", "weighted", "beam", "dvts", "particle", "mcts", "regenerate")
TABLES = (SAMPLES, STEP_SCORES, CANDIDATES, SEARCHES)
KEYS = {
    SAMPLES: ["row", "sample_id"],
    STEP_SCORES: ["row", "prefix_id"],
    CANDIDATES: ["row", "candidate"],
    SEARCHES: ["row"],
}
CHANCE = ("seconds", "took", "n_computed", "scorer_computed")
"""Columns that say how long something took, or what was in a cache."""


def tables(run_dir: Path | str) -> dict[str, pl.DataFrame]:
    """All tables of a finished run, sorted by their keys."""
    stored = stored_search(storage_at(str(run_dir)))
    return {name: stored.frame(DECLARED[name]).sort(KEYS[name]) for name in TABLES}


def without_chance(found: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables without the columns of CHANCE."""
    return {name: frame.drop([each for each in CHANCE if each in frame.columns]) for name, frame in found.items()}


def assert_alike(found: Mapping[str, pl.DataFrame], expected: Mapping[str, pl.DataFrame]) -> None:
    """Two runs of the same searches have the same tables, but for CHANCE."""
    one, other = without_chance(found), without_chance(expected)
    for name in TABLES:
        assert one[name].equals(other[name]), f"{name} differs"
