"""Committed files, read by code of our own: the checks of the store are under test, so they are not used to test it."""

import hashlib
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.errors import Absent, StoreError
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
