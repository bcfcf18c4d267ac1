"""The used rows that the present input of a run no longer has as they were: those that changed, and those that vanished.

A run keeps their labels with `data.changed=keep`. The record of its input then names one file with all of these rows, which
each growth writes again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pipeline.core.ids import row_content
from pipeline.core.records import ChangedRow
from pipeline.core.tables import changed_rows
from pipeline.storage.commits import Commit
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.storage import Storage

CHANGES = "changes"


@dataclass(frozen=True, kw_only=True)
class KeptChanges:
    """The rows whose labels a run keeps although its input no longer has them as they were. Empty in most runs."""

    rows: tuple[ChangedRow, ...] = ()

    @property
    def vanished(self) -> int:
        """Number of rows in whose place nothing stands."""
        return sum(row.vanished for row in self.rows)

    @property
    def changed(self) -> int:
        """Number of the other rows."""
        return len(self.rows) - self.vanished

    @cached_property
    def _by_content(self) -> dict[str, ChangedRow]:
        return {changed_content(row): row for row in self.rows}

    def of_chain(self, problem_id: str, chain_id: str, *, marked: bool | None) -> ChangedRow | None:
        """The row that a labelled chain comes from, if it is one of these.

        `marked`: the chain's `input_changed`. It separates a chain that the policy sampled for such a row from one that a
        present row gives; of a chain without a mark the first is assumed.
        """
        if not self.rows:
            return None
        of_problem = None if marked is False else self._by_content.get(row_content(problem_id, None))
        return self._by_content.get(row_content(problem_id, chain_id)) or of_problem


def counted_changes(changed: int, vanished: int) -> str:
    """How many of something changed and how many vanished, in words: `1 changed, 1 vanished`."""
    return ", ".join(f"{number:,} {what}" for number, what in ((changed, "changed"), (vanished, "vanished")) if number)


def changes_of(staged: Commit) -> ShardRecord | None:
    """The file of the changed rows of a committed input. None in a run that never had any."""
    return next((shard for shard in staged.shards if shard.table == CHANGES), None)


def kept_changes(storage: Storage, changes: ShardRecord | None) -> KeptChanges:
    """The rows in the file of `changes_of`. Raises StoreError."""
    return KeptChanges(rows=tuple(changed_rows(read_shard(storage, changes))) if changes else ())


def changed_contents(storage: Storage, changes: ShardRecord | None) -> frozenset[str] | None:
    """The contents of these rows, None without a file. Raises StoreError."""
    return None if changes is None else contents_of(kept_changes(storage, changes).rows)


def contents_of(rows: Iterable[ChangedRow]) -> frozenset[str]:
    """The contents of changed rows."""
    return frozenset(map(changed_content, rows))


def changed_content(row: ChangedRow) -> str:
    """What makes the row unique in its run."""
    return row_content(row.problem_id, row.chain_id)
