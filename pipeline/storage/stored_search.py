"""A run of `search` as its commit records describe it, and what it knows of its input. For commands that read it."""

from dataclasses import dataclass
from itertools import groupby

import polars as pl

from pipeline.storage.run_record import SEARCH
from pipeline.storage.shards import verified_file
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredTask, stored_task

_OF_INPUT = ("row", "steps", "gold_answer", "gold_answers")


class StoredSearch(StoredTask):
    """A run of `search`."""

    @property
    def method(self) -> str:
        return str(self.identity["search.method"])

    @property
    def n(self) -> int:
        return int(str(self.identity["search.n"]))

    @property
    def accept(self) -> float | None:
        """`search.accept`; None where it is not set."""
        found = self.identity.get("search.accept")
        return None if found is None else float(str(found))


def stored_search(storage: Storage, *, partial: bool = False) -> StoredSearch:
    """The run of `search` in a directory. Raises as `stored_task` does."""
    return stored_task(storage, SEARCH, StoredSearch, partial=partial)


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
    for shard, units in groupby(stored.units, key=lambda unit: unit.shard):
        groups = [unit.group for unit in units if unit.unit_id in stored.wholes]
        file = verified_file(stored.storage, shard)
        for group in groups:
            rows = pl.DataFrame(file.read_row_group(group, list(_OF_INPUT), use_threads=False))
            given.extend(rows.filter(pl.col("steps").list.len() > 0)["row"])
            unread = pl.col("gold_answer").is_not_null() & (pl.col("gold_answers").list.len() == 0)
            unreadable.extend(rows.filter(unread)["row"])
    return SearchInput(given=frozenset(given), unreadable=frozenset(unreadable))
