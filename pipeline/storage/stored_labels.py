"""The labels of a run directory as polars frames, read through its commit records."""

import io
from collections.abc import Iterator, Sequence
from typing import IO, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.config.choices import ValueColumn
from pipeline.core.errors import UsageError
from pipeline.core.records import GROWN
from pipeline.core.tables import CONSENSUS, DROPS, LABELS_CONSENSUS
from pipeline.storage.editions import current_shards
from pipeline.storage.location import storage_at
from pipeline.storage.shards import ShardRecord, intact_bytes, verified_file
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, readable_run, stored_run
from pipeline.storage.units import UnitRef

_MADE_BY = {
    ValueColumn.p_no_drop: "estimator=pooled",
    ValueColumn.p_error_free: "estimator.rule=consensus consensus.how=posterior",
}
"""The columns of soft targets that some labels do not have, and the settings of `relabel` that make them."""
_SOME = pa.schema(map(LABELS_CONSENSUS.schema.field, (*CONSENSUS, *DROPS)))
"""The columns that some labels do not have."""


def label_frames(storage: Storage, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """The current labels: one frame per complete unit that has labels, in the order of the input. All chains of a problem are
    in one frame. `columns`: the columns to read. Those that some labels do not have may be among them, and are null there;
    `grown` is false. Raises as `stored_run` does, and StoreError for a damaged file."""
    yield from frames_of(stored_run(storage), columns)


def frames_of(run: StoredRun, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """Like `label_frames`, for a run whose records are already read."""
    return (frame for _, frame in unit_frames(run, columns))


def unit_frames(run: StoredRun, columns: Sequence[str] | None = None) -> Iterator[tuple[UnitRef, pl.DataFrame]]:
    """The labels of each unit that has some, in the order of the input. Raises as `frames_of` does."""
    current = current_shards(run.wholes, run.edition)
    for unit in run.units:
        for shard in current.get(unit.unit_id, ()):
            yield unit, _frame(run.storage, shard, columns)


def unit_labels(run: StoredRun, unit_id: str, columns: Sequence[str]) -> pl.DataFrame | None:
    """The current labels of one unit; None if it has none. Raises as `frames_of` does."""
    shards = current_shards(run.wholes, run.edition).get(unit_id, ())
    return _frame(run.storage, shards[0], columns) if shards else None


def _frame(storage: Storage, shard: ShardRecord, columns: Sequence[str] | None) -> pl.DataFrame:
    file = verified_file(storage, shard)
    if columns is None:
        return pl.DataFrame(file.read(use_threads=False))
    return _with_made(file, columns)


def has_consensus(run: StoredRun) -> bool:
    """Whether the current labels are by consensus: they have the columns of `tables.CONSENSUS`. Raises StoreError for a
    damaged file."""
    first = next(_current(run), None)
    return first is not None and set(CONSENSUS).issubset(verified_file(run.storage, first).schema_arrow.names)


def refuse_without(run: StoredRun, soft: ValueColumn | None) -> None:
    """Raise UsageError if the current labels have nothing in the column that the setting `soft` asks for. Raises StoreError for
    a damaged file."""
    if soft not in _MADE_BY:
        return
    for shard in _current(run):
        file = verified_file(run.storage, shard)
        if soft.value in file.schema_arrow.names:
            found = pc.list_flatten(file.read(columns=[soft.value])[soft.value])
            if found.null_count < len(found):
                return
    run_dir = run.storage.run_dir
    raise UsageError(
        f"soft={soft.value}: the labels of {run_dir} have none: make them with `relabel run_dir={run_dir} {_MADE_BY[soft]}`, "
        "or leave soft out"
    )


def _with_made(file: pq.ParquetFile, columns: Sequence[str]) -> pl.DataFrame:
    """The columns of a label file, and among them those that it lacks but can be asked for."""
    there = set(file.schema_arrow.names)
    lacking = [name for name in columns if name in (*_SOME.names, GROWN) and name not in there]
    found = [name for name in columns if name not in lacking]
    nulls = pl.DataFrame(_SOME.empty_table()).clear(file.metadata.num_rows)
    nulls = nulls.with_columns(pl.lit(False).alias(GROWN))
    if not found:
        return nulls.select(columns)
    frame = pl.DataFrame(file.read(columns=found, use_threads=False))
    if not lacking:
        return frame
    return frame.with_columns(nulls.select(lacking)).select(columns)


def label_shards(run: StoredRun) -> list[ShardRecord]:
    """The records of the current label files, in the order of the input. Raises UsageError where there are none."""
    shards = list(_current(run))
    if not shards:
        raise UsageError(f"{run.storage.run_dir}: no chain is labelled yet: start `label` on it again")
    return shards


def labels_frame(run: StoredRun) -> pl.DataFrame:
    """All current labels at once, in the order of the input, which polars decodes several times as fast as `frames_of`.

    Raises UsageError where there are none, and StoreError for a damaged file.
    """
    shards = label_shards(run)
    files: list[IO[bytes]] = [io.BytesIO(intact_bytes(run.storage, shard)) for shard in shards]
    return pl.read_parquet(files)


def rows_of(run: StoredRun, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Like `frames_of`, row by row as dicts of column name -> value."""
    for frame in frames_of(run, columns):
        yield from frame.iter_rows(named=True)


def label_rows(run_dir: str, columns: Sequence[str], *, partial: bool) -> Iterator[dict[str, Any]]:
    """The rows of the current labels of the run in a directory. Raises UsageError for no run of this version, and for an
    unfinished run without `partial`; StoreError for a damaged file."""
    storage = storage_at(run_dir)
    yield from rows_of(readable_run(storage, partial=partial), columns)


def _current(run: StoredRun) -> Iterator[ShardRecord]:
    current = current_shards(run.wholes, run.edition)
    return (shard for unit in run.units for shard in current.get(unit.unit_id, ()))
