"""The files of one unit's log. They are read once and extended part by part."""

from collections.abc import Container, Mapping

import pyarrow as pa

from pipeline.core.ids import content_id
from pipeline.core.records import Tally, UnitTarget
from pipeline.core.table import TABLES, log_tables
from pipeline.storage.commits import (
    UNIT,
    Commit,
    CommitState,
    ResolvedSequence,
    publish,
    record_sequence,
    refuse_damage,
    resolve,
)
from pipeline.storage.shards import ShardRecord, read_shard, set_aside, write_shard
from pipeline.storage.storage import Storage

FLUSHED = "flushed"
"""Folder of parts. The folder of a table of the log contains each row of a whole unit once."""


class UnitFiles:
    """See the module. A writer calls `read` first, and again whenever `append` or `complete` returns False.

    `offered` is the kernel for the decisions of a unit that begins, or begins again after it was complete. A unit with rollouts
    since then has its own kernel.
    """

    def __init__(
        self, storage: Storage, unit_id: str, known_length: int = 0, offered: tuple[ShardRecord, ...] = ()
    ) -> None:
        self._storage = storage
        self.unit_id = unit_id
        self._length = known_length
        self._offered = offered
        self._resolved = ResolvedSequence(log=(), whole=None)
        self._files: dict[ShardRecord, pa.Table] = {}
        self._tables: dict[ShardRecord, pa.Table] = {}
        self._offered_files: set[str] = set()

    @property
    def whole(self) -> Commit | None:
        """The record that completes the unit for its `unit_target`."""
        return self._resolved.whole

    @property
    def base(self) -> tuple[ShardRecord, ...]:
        """The kernel for the unit's decisions, the same before and after a crash. Empty: the built-in one."""
        begins = not self._length or (self.whole is not None and {*self._resolved.log} <= {*self.whole.shards})
        return self._offered if self._offered and begins else self._resolved.base

    def read(self) -> list[tuple[str, pa.Table]]:
        """(table name, rows) of every file of the log in the order in which they count. Each row appears once.

        Raises StoreError for a damaged file or record.
        """
        found = record_sequence(self._storage, UNIT, self.unit_id, self._length)
        refuse_damage(found, self._storage.run_dir)
        self._length = found.length
        # Where another record has won, for instance after the end of a run, nobody else removes what this writer offered.
        named = {shard.file for commit in found.commits for shard in commit.shards}
        for file in sorted(self._offered_files - named):
            set_aside(self._storage, file)
        self._offered_files.clear()
        self._resolved = resolve(found)
        known = self._files
        self._files = {
            shard: known[shard] if shard in known else read_shard(self._storage, shard) for shard in self._resolved.log
        }
        self._tables = _without_repeated_rows(self._files)
        return [(shard.table, table) for shard, table in self._tables.items()]

    def rows(self, name: str) -> list[pa.Table]:
        """The rows of a log table, each once, as `read` and later commits of this writer have them."""
        return [table for shard, table in self._tables.items() if shard.table == name]

    def leave_out(self, name: str, unwanted: Container[tuple[object, ...]]) -> None:
        """Leave rows with these keys out of what `rows` gives and `complete` commits."""
        for shard, table in self._tables.items():
            if shard.table == name and any(row_id in unwanted for row_id in TABLES[name].keys(table)):
                self._tables[shard] = table.filter(pa.array([row not in unwanted for row in TABLES[name].keys(table)]))

    def of_whole(self, name: str) -> list[pa.Table]:
        """The rows of a log table that the completing record names. Empty where the unit was never complete."""
        shards = self.whole.shards if self.whole else ()
        return [self._files[shard] for shard in shards if shard.table == name]

    def table(self, shard: ShardRecord) -> pa.Table:
        """The rows of a committed file. Raises StoreError."""
        return read_shard(self._storage, shard)

    def append(self, tables: Mapping[str, pa.Table], tally: Tally) -> bool:
        """Commit rows that are not in the log. Returns False and commits nothing when another driver extended the log."""
        shards = {self._write(name, table, FLUSHED): table for name, table in tables.items() if table.num_rows}
        if not shards:
            return True
        part = Commit(
            kind=UNIT,
            sequence_id=self.unit_id,
            number=self._length,
            state=CommitState.PART,
            shards=tuple(shards),
            tally=tally,
            base=self.base,
        )
        if not publish(self._storage, part):
            return False
        self._files |= shards
        self._tables |= shards
        self._resolved = ResolvedSequence(
            log=(*self._resolved.log, *shards), whole=self._resolved.whole, base=part.base
        )
        self._length += 1
        return True

    def complete(
        self,
        last: Mapping[str, pa.Table],
        results: Mapping[str, pa.Table],
        tally: Tally,
        unit_target: UnitTarget,
        learned_from: int = 0,
    ) -> bool:
        """Commit the unit as complete: `last`, the last rows of the log, and `results`, tables outside the log.

        Files of the log that an earlier completing record names are kept. All others are merged into one file per table.
        Returns False and commits nothing when another driver extended the log.
        """
        # Files that are no parts, and of which all rows count.
        whole = (shard for shard in self._resolved.log if not shard.file.startswith(FLUSHED))
        kept = [shard for shard in whole if self._tables[shard].num_rows == shard.rows]
        written: dict[ShardRecord, pa.Table] = {}
        for name in log_tables():
            parts = [self._tables[shard] for shard in self._resolved.log if shard.table == name and shard not in kept]
            tables = [table for table in (*parts, *([last[name]] if name in last else ())) if table.num_rows]
            if tables:
                together = TABLES[name].in_order(tables)
                written[self._write(name, together)] = together
        log = (*kept, *written)
        others = [self._write(name, table) for name, table in results.items() if table.num_rows]
        commit = Commit(
            kind=UNIT,
            sequence_id=self.unit_id,
            number=self._length,
            state=CommitState.WHOLE,
            shards=(*log, *others),
            tally=tally,
            unit_target=unit_target,
            base=self.base,
            learned_from=learned_from,
        )
        if not publish(self._storage, commit):
            return False
        self._length += 1
        self._resolved = ResolvedSequence(log=log, whole=commit, base=commit.base)
        self._files = self._tables = {shard: self._tables[shard] for shard in kept} | written
        return True

    def _write(self, name: str, table: pa.Table, folder: str = "") -> ShardRecord:
        shard = write_shard(self._storage, name, content_id(name, self.unit_id), [table], folder=folder)
        self._offered_files.add(shard.file)
        return shard


def _without_repeated_rows(tables: Mapping[ShardRecord, pa.Table]) -> dict[ShardRecord, pa.Table]:
    """Remove repeated rows: if a merged file is void, its parts and a later file may contain the same row. The first counts."""
    seen: dict[str, set[tuple[object, ...]]] = {name: set() for name in log_tables()}
    once: dict[ShardRecord, pa.Table] = {}
    for shard, table in tables.items():
        ids = TABLES[shard.table].keys(table)
        new = [row_id not in seen[shard.table] for row_id in ids]
        seen[shard.table].update(ids)
        once[shard] = table if all(new) else table.filter(pa.array(new))
    return once
