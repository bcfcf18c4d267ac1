"""The staged input of a run directory: which units it has, in the order of the input, and the rows of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.ids import content_id
from pipeline.records import InputRow
from pipeline.store.commits import Commit
from pipeline.store.shards import ShardRecord, verified_file
from pipeline.tables import input_rows

TABLE = "inputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRef:
    """Where a unit's rows stand: one row group of a staged file."""

    unit_id: str
    shard: ShardRecord
    group: int


def units_of(run_dir: Path, staged: Commit) -> Iterator[UnitRef]:
    """The units of a committed input. Raises StoreError for a missing or damaged file."""
    for shard in staged.shards:
        if shard.table == TABLE:
            for group in range(verified_file(run_dir, shard).num_row_groups):
                yield UnitRef(unit_id=content_id("unit", shard.sha256, str(group)), shard=shard, group=group)


def unit_rows(run_dir: Path, unit: UnitRef) -> list[InputRow]:
    """The rows of one unit, chains of a problem together."""
    return input_rows(verified_file(run_dir, unit.shard).read_row_group(unit.group))
