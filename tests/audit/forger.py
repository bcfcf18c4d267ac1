"""Forges run directories: changes records and files so that every checksum is right."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from pipeline.storage.commits import Commit, CommitState, commit_name, encode_commit, record_sequences
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import read_shard, write_shard

Change = Callable[[pa.Table], pa.Table]


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


def with_column(name: str, values: Callable[[list[object]], list[object]]) -> Change:
    def change(table: pa.Table) -> pa.Table:
        column = pa.array(values(table[name].to_pylist()), type=table.schema.field(name).type)
        return table.set_column(table.column_names.index(name), table.schema.field(name), column)

    return change


def first_replaced(value: object) -> Callable[[list[object]], list[object]]:
    return lambda values: [value, *values[1:]]
