"""A run of `search` as its commit records describe it, and its tables: the log of samples and step scores, and what the search
of each problem found. For commands that read it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import polars as pl

from pipeline.storage.run_record import SEARCH
from pipeline.storage.shards import read_shard, verified_file
from pipeline.storage.storage import Storage
from pipeline.storage.stored_chain_run import StoredChainRun, stored_chain_run

SAMPLES, STEP_SCORES = "samples", "stepscores"
"""The tables of the log."""
CANDIDATES, SEARCHES = "candidates", "searches"
"""The tables of results."""
_OF_INPUT = ("row", "steps", "gold_answer", "gold_answers")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSearch:
    """A run of `search`. The files are those of all finished units, in the order of the input."""

    storage: Storage
    run: StoredChainRun

    @property
    def method(self) -> str:
        return str(self.run.identity["search.method"])

    @property
    def n(self) -> int:
        return int(str(self.run.identity["search.n"]))

    @property
    def accept(self) -> float | None:
        """`search.accept`; None where it is not set."""
        found = self.run.identity.get("search.accept")
        return None if found is None else float(str(found))


def stored_search(storage: Storage, *, partial: bool = False) -> StoredSearch:
    """The run of `search` in a directory. An unfinished one is accepted only with `partial`.

    Raises UsageError for a directory without such a run, StoreError for a damaged one.
    """
    return StoredSearch(storage=storage, run=stored_chain_run(storage, SEARCH, partial=partial))


def search_frames(stored: StoredSearch, table: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """A table of the run: one frame for each of its files, in the order of the input. `columns`: those that are wanted; None:
    all. Raises StoreError for a missing or damaged file."""
    for shard in stored.run.shards(table):
        frame = pl.DataFrame(read_shard(stored.storage, shard, columns))
        # Words of a vocabulary as strings, so that frames of several files fit each other.
        yield frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchInput:
    """What the input says of the searches of finished units. `given`: rows that have a chain, from which a search may start.
    `unreadable`: rows with a known answer that the grader cannot read; none of their chains is graded by it."""

    given: frozenset[int]
    unreadable: frozenset[int]


def search_input(stored: StoredSearch) -> SearchInput:
    """Raises StoreError for a missing or damaged file."""
    given: list[int] = []
    unreadable: list[int] = []
    for shard, units in groupby(stored.run.units, key=lambda unit: unit.shard):
        groups = [unit.group for unit in units if unit.unit_id in stored.run.wholes]
        file = verified_file(stored.storage, shard)
        for group in groups:
            rows = pl.DataFrame(file.read_row_group(group, list(_OF_INPUT), use_threads=False))
            given.extend(rows.filter(pl.col("steps").list.len() > 0)["row"])
            unread = pl.col("gold_answer").is_not_null() & (pl.col("gold_answers").list.len() == 0)
            unreadable.extend(rows.filter(unread)["row"])
    return SearchInput(given=frozenset(given), unreadable=frozenset(unreadable))
