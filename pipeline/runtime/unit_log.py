"""The log of a unit while a worker works on the unit: what is committed, and what is new.

Other processes may write to the same log: a worker that the driver has given up but that still runs, or a second driver.
Committed rows are final. A writer only adds rows that the log does not contain.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pipeline.core.failpoints import failpoint
from pipeline.core.records import Tally, UnitTarget
from pipeline.core.table import Table
from pipeline.runtime.problem_budget import meets_target
from pipeline.storage.commits import Commit
from pipeline.storage.unit_files import UnitFiles

Record = TypeVar("Record")
Kept = TypeVar("Kept")
Result = TypeVar("Result")


class LogTable(Generic[Record, Kept]):
    """One table of a log, by key: `new` records, which are not committed yet, and what is `kept` of all rows, committed or not.

    `keep`: what is kept of a new record; `rows`: of each row of a table, by its key. `key` and `to_table`: of records that are
    not rows.
    """

    def __init__(
        self,
        table: Table[Record],
        *,
        keep: Callable[[Record], Kept],
        rows: Callable[[pa.Table], Mapping[Any, Kept]],
        key: Callable[[Record], Any] | None = None,
        to_table: Callable[[Sequence[Record]], pa.Table] | None = None,
    ) -> None:
        self.name = table.name
        self.to_table = to_table or table.to_table
        self._key = key or attrgetter(*table.key)
        self._keep = keep
        self._rows = rows
        self.new: dict[Any, Record] = {}
        self.kept: dict[Any, Kept] = {}

    @staticmethod
    def whole(table: Table[Record]) -> "LogTable[Record, Record]":
        """A table of which whole records are kept."""
        key = attrgetter(*table.key)
        return LogTable(
            table, keep=lambda record: record, rows=lambda rows: {key(each): each for each in table.from_table(rows)}
        )

    def add(self, record: Record) -> Kept | None:
        """Add a record, and return what is kept of it. None where the log has its key already: then nothing is added."""
        key = self._key(record)
        if key in self.kept:
            return None
        self.new[key] = record
        kept = self.kept[key] = self._keep(record)
        return kept

    def drop(self, unwanted: Callable[[Any], bool]) -> None:
        """Forget the new records with these keys."""
        for key in [key for key in self.new if unwanted(key)]:
            del self.new[key], self.kept[key]

    def read(self, tables: Iterable[pa.Table]) -> None:
        """Take the committed rows, and keep only those new records that are not among them."""
        committed = {key: kept for table in tables for key, kept in self._rows(table).items()}
        self.new = {key: record for key, record in self.new.items() if key not in committed}
        self.kept = {key: self._keep(record) for key, record in self.new.items()} | committed


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What makes a unit whole: its `results`, tables that follow from its log, and its `tally`; None: that of the log's rows.

    `readings`: how often the log had been read when they were computed. `learned_from`: see `Commit`.
    """

    results: Mapping[str, pa.Table]
    tally: Tally | None
    readings: int
    learned_from: int = 0


class UnitLog:
    """The tables of a unit's log. `readings` counts how often the log was read; what was computed before the last reading may
    be stale. `tally_of`: the counts of rows, by table."""

    def __init__(
        self,
        files: UnitFiles,
        unit_target: UnitTarget,
        tables: Sequence[LogTable[Any, Any]],
        tally_of: Callable[[Mapping[str, pa.Table]], Tally],
    ) -> None:
        self.files = files
        self.unit_target = unit_target
        self._tables = tables
        self._tally_of = tally_of
        self._writing = asyncio.Lock()
        self._uninterrupted = _Uninterrupted()
        self.readings = 0

    @property
    def unit_id(self) -> str:
        return self.files.unit_id

    @property
    def done(self) -> Commit | None:
        """The record that completes the unit for its target or a larger one; None if there is no such record."""
        whole = self.files.whole
        return whole if whole is not None and meets_target(whole, self.unit_target) else None

    async def read(self) -> None:
        """Read the log, and keep only those new records that are not committed by now. Raises StoreError."""
        found = await asyncio.to_thread(self._read)
        for table in self._tables:
            table.read(self.files.rows(table.name))
        self.readings += 1
        self._take(found)

    def _read(self) -> Any:
        """Read the files, in a thread. Returns what `_take` needs."""
        self.files.read()

    def _take(self, found: Any) -> None:
        """Follow the log, which was read now."""

    async def flush(self) -> None:
        """Commit the new records. Raises StoreError."""
        await self._uninterrupted.run(self._flush())

    async def _flush(self) -> None:
        async with self._writing:
            while not self.done and any(new := [dict(table.new) for table in self._tables]):
                failpoint("worker.flush")
                if await asyncio.to_thread(self._append, new):
                    for table, records in zip(self._tables, new, strict=True):
                        for key in records:
                            table.new.pop(key, None)
                    return
                await self.read()

    def _append(self, new: Sequence[Mapping[Any, Any]]) -> bool:
        tables = self._rows_of(new)
        return self.files.append(tables, self._tally_of(tables))

    async def complete(self, finished: Finished) -> bool:
        """Commit the unit as whole, with its new records.

        Returns False if `finished` is stale: the log has been read since, or another process has added to it. In the second
        case the log is read now.
        """
        return await self._uninterrupted.run(self._complete(finished))

    async def _complete(self, finished: Finished) -> bool:
        async with self._writing:
            if finished.readings != self.readings:
                return False
            failpoint("worker.complete")
            new = self._rows_of([table.new for table in self._tables])
            tally = finished.tally
            if tally is None:
                tally = self._tally_of(
                    {name: pa.concat_tables([*self.files.rows(name), rows]) for name, rows in new.items()}
                )
            won = await asyncio.to_thread(
                self.files.complete, new, finished.results, tally, self.unit_target, finished.learned_from
            )
            if not won:
                await self.read()
            return won

    def _rows_of(self, new: Sequence[Mapping[Any, Any]]) -> dict[str, pa.Table]:
        return {
            table.name: table.to_table(list(records.values())) for table, records in zip(self._tables, new, strict=True)
        }


class _Uninterrupted:
    """Runs coroutines to their ends even if their callers are cancelled. The thread of a coroutine would go on anyway, next to
    the thread of the next one."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # asyncio prints the errors that nobody asks for, and a caller that was cancelled asks no more
