"""A reader of a run directory who never forgets: a row of the log is never lost, doubled or changed once it was committed."""

from collections.abc import Mapping
from typing import Any

from pipeline.core.errors import StoreError
from pipeline.core.ids import record_parts
from pipeline.core.table import TABLES
from pipeline.storage.commits import FOLDER, UNIT, record_sequence, resolve
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from tests.faults.reading import rows_of

Key = tuple[str, tuple[object, ...]]
"""Table and identity of a row of the log."""
Row = tuple[Key, tuple[Any, ...]]
"""A row of the log: its key and all its values."""


class Observer:
    """Looks whenever records have become durable or are said to be. What is wrong it adds to `violations`."""

    def __init__(self, storage: Storage, violations: list[str]) -> None:
        self._storage = storage
        self._violations = violations
        self._known: set[str] = set()
        self._rows: dict[str, list[Row]] = {}
        self._seen: dict[str, dict[Key, Row]] = {}
        self._damaged: set[str] = set()

    def folder_synced(self, folder: str) -> None:
        if folder.rpartition("/")[2] == FOLDER:
            self.look()

    def look(self) -> None:
        there = self._storage.names(FOLDER)
        changed = dict.fromkeys(unit for name in there if name not in self._known and (unit := _unit_of(name)))
        self._known.update(there)
        for unit_id in changed:
            self._compare(unit_id, sum(_unit_of(name) == unit_id for name in there))

    def expect_damage(self, file: str) -> None:
        """A file or record is about to be damaged: rows that it holds may be lost, and may come back as others."""
        lost = set(self._rows.pop(file, ()))
        if unit_id := _unit_of(file):
            number = int(file.removesuffix(".json").rpartition("-")[2])
            for commit in record_sequence(self._storage, UNIT, unit_id, number + 1).commits:
                if commit.number == number:
                    lost.update(row for shard in commit.shards for row in self._rows.get(shard.file, ()))
        self._damaged.add(file)
        self._known.discard(file)
        for unit_id, seen in self._seen.items():
            self._seen[unit_id] = {key: row for key, row in seen.items() if row not in lost}

    def _compare(self, unit_id: str, least: int) -> None:
        """What a unit's log holds now with what it held before."""
        found = record_sequence(self._storage, UNIT, unit_id, least)
        void = {name for commit in found.commits for name in commit.void}
        try:
            if unread := [name for name in found.unreadable if name not in void]:
                raise StoreError(unread[0])
            rows = [row for shard in resolve(found).log for row in self._read(shard)]
        except StoreError as error:
            if not any(name in str(error) for name in self._damaged):
                self._violations.append(f"unreadable: {error}")
            return
        now: dict[Key, Row] = {}
        for row in rows:
            if now.setdefault(row[0], row) is not row and not void:
                self._violations.append(f"twice in the log of {unit_id}: {row[0]}")
        for key, row in self._seen.get(unit_id, {}).items():
            if key not in now:
                self._violations.append(f"lost from the log of {unit_id}: {key}")
            elif now[key] != row:
                self._violations.append(f"changed in the log of {unit_id}: {row} became {now[key]}")
        self._seen[unit_id] = now

    def _read(self, shard: ShardRecord) -> list[Row]:
        if shard.file not in self._rows:
            self._rows[shard.file] = [_row(shard.table, row) for row in rows_of(self._storage, shard)]
        return self._rows[shard.file]


def _row(table: str, row: Mapping[str, Any]) -> Row:
    values = tuple(tuple(value) if isinstance(value, list) else value for value in row.values())
    return (table, tuple(row[key] for key in TABLES[table].key)), values


def _unit_of(name: str) -> str | None:
    parts = record_parts(name.removeprefix(f"{FOLDER}/"))
    return parts[1] if parts and parts[0] == UNIT else None
