"""Committed files, read by code of our own: the checks of the store are under test, so they are not used to test it."""

import hashlib
from collections import Counter
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.errors import Absent, StoreError
from pipeline.core.table import log_tables
from pipeline.storage.shards import ASIDE, ShardRecord
from pipeline.storage.storage import Storage

Rows = tuple[dict[str, Any], ...]


def rows_of(storage: Storage, record: ShardRecord) -> Rows:
    """The rows of a committed file, not to be changed. Raises StoreError where the file is not what was committed."""
    data = _found(storage, record.file) or _found(storage, f"{ASIDE}/{record.file.rpartition('/')[2]}")
    if hashlib.sha256(data).hexdigest() != record.sha256:
        raise StoreError(f"{record.file} is not what was committed")
    return _decoded(data)


def _found(storage: Storage, name: str) -> bytes:
    try:
        return storage.read(name)
    except Absent:
        return b""


@lru_cache(maxsize=256)
def _decoded(data: bytes) -> Rows:
    return tuple(pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pylist())


KEYS = {
    **{name: table.key for name, table in log_tables().items()},
    "inputs": ("line",),
    "chains": ("row",),
    "labels": ("chain_id", "root_prefix_id"),
    "rejects": ("line", "step_index", "reason"),
    "allotments": ("unit_id", "problem_id"),
    "verdicts": ("rollout_id",),
    "readings": ("critique_id",),
    "candidates": ("row", "candidate"),
    "searches": ("row",),
}
"""The columns that identify a row of a table in its folder."""


def folder_rows(storage: Storage, *others: str) -> dict[str, Counter[tuple[Any, ...]]]:
    """How often each row is in the folder of its table, or in the `others`, as people read them: every file of the folder."""
    found: dict[str, Counter[tuple[Any, ...]]] = {}
    for folder in sorted({*KEYS, *others} & set(storage.names(""))):
        for name in storage.names(folder):
            table = name.rpartition("/")[2].partition("-")[0]
            keys = (tuple(row[key] for key in KEYS[table]) for row in _decoded(storage.read(name)))
            found.setdefault(table if table == folder else f"{folder} {table}", Counter()).update(keys)
    return found


def repeated_rows(storage: Storage) -> dict[str, int]:
    """How many rows of a folder are there more than once, by folder, where there are any."""
    extra = {table: rows.total() - len(rows) for table, rows in folder_rows(storage).items()}
    return {table: times for table, times in extra.items() if times}
