"""The staged input of a run directory: its units in the order of the input, and the rows of each unit."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.core.ids import content_id
from pipeline.core.records import InputRow
from pipeline.core.tables import input_rows, inputs_table
from pipeline.storage.commits import Commit
from pipeline.storage.shards import ShardRecord, notes_of, verified_file, write_shard
from pipeline.storage.storage import Storage

TABLE = "inputs"
UNITS = "stepvalue.units"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRef:
    """The location of a unit's rows: one row group of a staged file. `size`: its bytes before compression."""

    unit_id: str
    shard: ShardRecord
    group: int
    size: int = 0


def write_units(storage: Storage, file_id: str, units: Sequence[Sequence[InputRow]]) -> ShardRecord:
    """Write one file with a row group per unit."""
    groups: list[pa.Table] = [inputs_table(rows) for rows in units]
    notes = {UNITS: json.dumps([unit_id_of(rows) for rows in units])}
    return write_shard(storage, TABLE, file_id, groups, notes=notes)


def units_of(storage: Storage, staged: Commit) -> Iterator[UnitRef]:
    """The units of a committed input. Raises StoreError for a missing or damaged file."""
    for shard in staged.shards:
        if shard.table == TABLE:
            file = verified_file(storage, shard)
            for group, unit_id in enumerate(json.loads(notes_of(file)[UNITS])):
                size = file.metadata.row_group(group).total_byte_size
                yield UnitRef(unit_id=unit_id, shard=shard, group=group, size=size)


def unit_rows(storage: Storage, unit: UnitRef) -> list[InputRow]:
    """The rows of one unit. The chains of a problem are adjacent."""
    return input_rows(verified_file(storage, unit.shard).read_row_group(unit.group, use_threads=False))


def unit_id_of(rows: Sequence[InputRow]) -> str:
    """An id that depends only on the unit's problems and chains, so a file that is staged again has the same units."""
    return content_id(
        "unit", *(f"{row.problem.problem_id}:{row.solution.chain_id if row.solution else ''}" for row in rows)
    )
