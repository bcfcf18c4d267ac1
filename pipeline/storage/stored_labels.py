"""The files of the current labels of a run directory, and what they have. `StoredRun.frames` reads them."""

import io
from collections.abc import Iterator
from typing import IO

import polars as pl
import pyarrow.compute as pc

from pipeline.config.choices import ValueColumn
from pipeline.core.errors import UsageError
from pipeline.core.tables import CONSENSUS
from pipeline.storage.editions import current_shards
from pipeline.storage.shards import ShardRecord, intact_bytes, verified_file
from pipeline.storage.stored_run import StoredRun

_MADE_BY = {
    ValueColumn.p_no_drop: "estimator=pooled",
    ValueColumn.p_error_free: "estimator.rule=consensus consensus.how=posterior",
}
"""The columns of soft targets that some labels do not have, and the settings of `relabel` that make them."""


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


def label_shards(run: StoredRun) -> list[ShardRecord]:
    """The records of the current label files, in the order of the input. Raises UsageError where there are none."""
    shards = list(_current(run))
    if not shards:
        raise UsageError(f"{run.storage.run_dir}: no chain is labelled yet: start `label` on it again")
    return shards


def labels_frame(run: StoredRun) -> pl.DataFrame:
    """All current labels at once, in the order of the input, which polars decodes several times as fast as
    `StoredRun.frames`.

    Raises UsageError where there are none, and StoreError for a damaged file.
    """
    shards = label_shards(run)
    files: list[IO[bytes]] = [io.BytesIO(intact_bytes(run.storage, shard)) for shard in shards]
    return pl.read_parquet(files)


def _current(run: StoredRun) -> Iterator[ShardRecord]:
    current = current_shards(run.wholes, run.edition)
    return (shard for unit in run.units for shard in current.get(unit.unit_id, ()))
