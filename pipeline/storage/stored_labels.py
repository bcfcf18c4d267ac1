"""The labels of a run directory as polars frames, read through its commit records."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from pipeline.storage.editions import current_shards
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, stored_run


def label_frames(storage: Storage, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """The current labels: one frame per complete unit that has labels, in the order of the input. All chains of a problem are
    in one frame. `columns`: the columns to read. Raises as `stored_run` does, and StoreError for a damaged file."""
    yield from frames_of(storage, stored_run(storage), columns)


def frames_of(storage: Storage, run: StoredRun, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """Like `label_frames`, for a run whose records are already read."""
    current = current_shards(run.wholes, run.edition)
    for unit in run.units:
        for shard in current.get(unit.unit_id, ()):
            yield pl.DataFrame(read_shard(storage, shard, columns))


def rows_of(storage: Storage, run: StoredRun, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Like `frames_of`, row by row as dicts of column name -> value."""
    for frame in frames_of(storage, run, columns):
        yield from frame.iter_rows(named=True)
