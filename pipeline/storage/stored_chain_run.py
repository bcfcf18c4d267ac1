"""A run over chains, of `score`, `judge`, `check` or `search`, as its commit records describe it. For commands that read it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.formatting import format_unfinished
from pipeline.core.records import Tally
from pipeline.core.table import Table
from pipeline.storage.commits import INPUT, UNIT, Commit, record_sequence, record_sequences, refuse_damage, resolve
from pipeline.storage.run_record import STAGED_INPUT, command_of
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import readable_identity
from pipeline.storage.units import UnitRef, units_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChainRun:
    """`staged`: the record of its chains. `units`: in the order of the input. `wholes`: the records of the finished units, by
    unit id."""

    storage: Storage
    identity: Settings
    staged: Commit
    units: tuple[UnitRef, ...]
    wholes: Mapping[str, Commit]

    @property
    def unfinished(self) -> int:
        return len(self.units) - len(self.wholes)

    @property
    def tally(self) -> Tally:
        """The counts of all finished units."""
        return sum((whole.tally for whole in self.wholes.values()), Tally())

    def shards(self, table: str) -> Iterator[ShardRecord]:
        """The files of a table of all finished units, in the order of the input."""
        for unit in self.units:
            if unit.unit_id in self.wholes:
                yield from (shard for shard in self.wholes[unit.unit_id].shards if shard.table == table)

    def frames(self, table: Table[Any], columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """A table of the run, with these columns, or with all: one frame for each of its files, in the order of the input.
        Raises StoreError for a missing or damaged file."""
        for shard in self.shards(table.name):
            frame = pl.DataFrame(read_shard(self.storage, shard, columns))
            # Words of a vocabulary as strings, so that frames of several files fit each other.
            yield frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))

    def frame(self, table: Table[Any], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The same as one frame."""
        frames = list(self.frames(table, columns))
        return pl.concat(frames) if frames else pl.DataFrame(table.schema.empty_table())


def stored_chain_run(storage: Storage, command: str, *, partial: bool = False) -> StoredChainRun:
    """The run of `command` in a directory. An unfinished one is accepted only with `partial`.

    Raises UsageError for a directory without such a run, StoreError for a damaged one.
    """
    identity = readable_identity(storage, f"`{command}`")
    if (found := command_of(identity)) != command:
        raise UsageError(
            f"{storage.run_dir} is a run of `{found}`: give a file or a folder that `{command}` has written"
        )
    staged = resolve(record_sequence(storage, INPUT, str(identity[STAGED_INPUT]))).whole
    if staged is None:
        raise StoreError(f"{storage.run_dir} has no intact input: start `{command}` on it again to repair it")
    wholes = {}
    for sequence in record_sequences(storage, UNIT):
        refuse_damage(sequence, storage.run_dir)
        if (whole := resolve(sequence).whole) is not None:
            wholes[sequence.sequence_id] = whole
    units = tuple(units_of(storage, staged))
    run = StoredChainRun(
        storage=storage,
        identity=identity,
        staged=staged,
        units=units,
        wholes={unit.unit_id: wholes[unit.unit_id] for unit in units if unit.unit_id in wholes},
    )
    if run.unfinished and not partial:
        raise UsageError(
            f"{storage.run_dir}: {format_unfinished(run.unfinished, len(units))}: finish the run with `{command}`"
        )
    return run
