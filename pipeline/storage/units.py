"""The staged input of a run directory: its units in the order of the input, and the rows of each unit.

The record of a grown input names the files of the input before, and those of the units that are new.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import polars as pl
import pyarrow as pa

from pipeline.core.ids import content_id, row_content
from pipeline.core.records import InputRow, RowLocation
from pipeline.core.tables import CHAINS as CHAINS_TABLE
from pipeline.core.tables import GIVEN_OUTCOME, INPUTS
from pipeline.storage.commits import Commit
from pipeline.storage.shards import ShardRecord, notes_of, verified_file, write_shard
from pipeline.storage.storage import Storage

TABLE = INPUTS.name
CHAINS = CHAINS_TABLE.name
TABLES = (TABLE, CHAINS)
"""The tables of staged inputs: rows to label, and chains to score."""
UNITS = "stepvalue.units"
AGAIN = "stepvalue.again"
"""Note of a file: problem id -> the number of earlier units with chains of the problem, where there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRef:
    """The location of a unit's rows: one row group of a staged file. `size`: its bytes before compression."""

    unit_id: str
    shard: ShardRecord
    group: int
    size: int = 0


def write_units(storage: Storage, file_id: str, units: Sequence[Sequence[InputRow]]) -> ShardRecord:
    """Write one file with a row group per unit."""
    with_outcomes = any(row.given_outcome is not None for rows in units for row in rows)
    table = INPUTS.with_extra(GIVEN_OUTCOME) if with_outcomes else INPUTS
    groups: list[pa.Table] = [table.to_table(rows) for rows in units]
    notes = {UNITS: json.dumps([unit_id_of(rows) for rows in units])}
    again = {row.problem.problem_id: row.again for rows in units for row in rows if row.again}
    if again:
        notes[AGAIN] = json.dumps(again, sort_keys=True)
    return write_shard(storage, TABLE, file_id, groups, notes=notes)


def write_chains(storage: Storage, file_id: str, units: Mapping[str, pa.Table]) -> ShardRecord:
    """Write one file of chains to score, with a row group per unit, by its id."""
    return write_shard(storage, CHAINS, file_id, list(units.values()), notes={UNITS: json.dumps(list(units))})


def unit_chains(storage: Storage, unit: UnitRef) -> pa.Table:
    """The chains of one unit of `write_chains`. Raises StoreError."""
    return verified_file(storage, unit.shard).read_row_group(unit.group, use_threads=False)


def units_of(storage: Storage, staged: Commit) -> Iterator[UnitRef]:
    """The units of a committed input. Raises StoreError for a missing or damaged file."""
    for shard in staged.shards:
        if shard.table in TABLES:
            file = verified_file(storage, shard)
            for group, unit_id in enumerate(json.loads(notes_of(file)[UNITS])):
                size = file.metadata.row_group(group).total_byte_size
                yield UnitRef(unit_id=unit_id, shard=shard, group=group, size=size)


def staged_rows(storage: Storage, staged: Commit) -> Iterator[list[InputRow]]:
    """The rows of each unit of a committed input; each file is read once. Raises as `units_of` does."""
    for shard in staged.shards:
        if shard.table == TABLE:
            file = verified_file(storage, shard)
            again = again_of(notes_of(file))
            for group in range(file.num_row_groups):
                yield noted_rows(INPUTS.from_table(file.read_row_group(group, use_threads=False)), again)


class RowNames:
    """Names rows without an id of their own by their place in the input, such as `problems.jsonl:7`. Keeps the staged file that
    was read last: units of one file follow each other."""

    def __init__(self, storage: Storage) -> None:
        self._file = lru_cache(maxsize=1)(partial(verified_file, storage))

    def named(self, unit: UnitRef, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of a unit's table with a `source_id` in each: its own, else the place of its chain, else that of the first
        row of its problem. Raises StoreError."""
        if not rows["source_id"].null_count():
            return rows
        columns = ["chain_id", "problem_id", "file", "line"]
        places: dict[str, str] = {}
        for row in self._file(unit.shard).read_row_group(unit.group, columns, use_threads=False).to_pylist():
            place = str(RowLocation(file=row["file"].rpartition("/")[2], line=row["line"]))
            for name in columns[:2]:
                places.setdefault(row[name], place)
        by_place = (pl.col(name).replace_strict(places, default=None) for name in columns[:2])
        return rows.with_columns(pl.coalesce("source_id", *by_place))


def again_of(notes: Mapping[str, str]) -> dict[str, int]:
    """Problem id -> the number of earlier units with chains of the problem, from the notes of a file."""
    return {str(problem): int(number) for problem, number in json.loads(notes.get(AGAIN, "{}")).items()}


def unit_rows(storage: Storage, unit: UnitRef) -> list[InputRow]:
    """The rows of one unit. The chains of a problem are adjacent. Raises StoreError."""
    file = verified_file(storage, unit.shard)
    rows = INPUTS.from_table(file.read_row_group(unit.group, use_threads=False))
    return noted_rows(rows, again_of(notes_of(file)))


def noted_rows(rows: Sequence[InputRow], again: Mapping[str, int]) -> list[InputRow]:
    """Rows from a file with what the file's notes (`again_of`) say about them."""
    return [replace(row, again=again.get(row.problem.problem_id, 0)) for row in rows]


def content_of(row: InputRow) -> str:
    """What makes the row unique in its run."""
    return row_content(row.problem.problem_id, row.solution.chain_id if row.solution else None)


def unit_id_of(rows: Sequence[InputRow]) -> str:
    """An id that depends only on the unit's problems and chains, so a file that is staged again has the same units."""
    return content_id(
        "unit", *(f"{row.problem.problem_id}:{row.solution.chain_id if row.solution else ''}" for row in rows)
    )
