"""Forges run directories: changes records and files so that every checksum is right."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.storage.commits import Commit, CommitState, commit_name, encode_commit, record_sequences
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import read_shard, write_shard

Change = Callable[[pa.Table], pa.Table]
Row = dict[str, Any]


class Forger:
    """Rewrites records and files so that every checksum is right."""

    def __init__(self, run_dir: Path) -> None:
        self.storage = LocalStorage(run_dir)
        self._run_dir = run_dir

    def last(self, kind: str, table: str = "") -> Commit:
        """The last whole record of the first record sequence of a kind whose record names a file of `table`."""
        wholes = [
            [commit for commit in found.commits if commit.state is CommitState.WHOLE][-1]
            for found in record_sequences(self.storage, kind)
        ]
        return next(commit for commit in wholes if not table or any(shard.table == table for shard in commit.shards))

    def write(self, commit: Commit) -> None:
        (self._run_dir / commit_name(commit)).write_bytes(encode_commit(commit))

    def change(self, kind: str, table: str, change: Change) -> Commit:
        """Change the last file of a table that a record names, and adapt the record."""
        commit = self.last(kind, table)
        shard = next(shard for shard in reversed(commit.shards) if shard.table == table)
        forged = change(read_shard(self.storage, shard))
        written = write_shard(self.storage, table, shard.file.split("-")[-2], [forged])
        self.write(replace(commit, shards=tuple(written if each == shard else each for each in commit.shards)))
        return commit


def changed(change: Callable[[list[Row]], list[Row]]) -> Change:
    """The change of a table that changes its rows so."""
    return lambda table: pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema)


def first(where: Callable[[Row], bool] = lambda row: True, **values: Any) -> Change:
    """Changes the first row for which `where` holds. A value may be a function of the row."""

    def change(rows: list[Row]) -> list[Row]:
        at = next(at for at, row in enumerate(rows) if where(row))
        return [*rows[:at], _with(rows[at], values), *rows[at + 1 :]]

    return changed(change)


def every(**values: Any) -> Change:
    """Changes all rows as `first` changes one."""
    return changed(lambda rows: [_with(row, values) for row in rows])


def _with(row: Row, values: Row) -> Row:
    return {**row, **{name: value(row) if callable(value) else value for name, value in values.items()}}


def one_more(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table.slice(0, 1)]).combine_chunks()


def one_less(table: pa.Table) -> pa.Table:
    return table.slice(1)
