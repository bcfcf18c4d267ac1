"""Parquet files: built in memory, written with page checksums, and published under content-addressed names."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.errors import Absent, Damaged, StoreError
from pipeline.core.ids import shard_name
from pipeline.storage.storage import Storage, sha256_of

DAMAGED = "damaged"
"""Folder of files that differ from what was committed."""
ASIDE = "aside"
"""Folder of files that do not belong in the folders that people read: superseded ones, and those that no record names."""
_ZSTD_LEVEL = 3
# Columns with few distinct values. For other columns, building a dictionary would be wasted work.
_REPEATING = [
    *("prefix_id", "problem_id", "finish", "verdict", "grader", "answer", "problem", "origin", "file", "reason"),
    *("judge", "reading", "verifier", "covers"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRecord:
    """The entry of a file in a commit record. `file` is relative to the run directory."""

    table: str
    file: str
    sha256: str
    rows: int


def write_shard(
    storage: Storage,
    table_name: str,
    unit_id: str,
    groups: Sequence[pa.Table],
    *,
    folder: str = "",
    notes: Mapping[str, str] | None = None,
) -> ShardRecord:
    """Write `groups`, one row group each, under a content-addressed name. An existing file with equal content is a success.

    The file is written to `folder`, by default that of the table. `notes` go into the file's metadata. Raises StoreError.
    """
    data = _encoded(groups, notes or {})
    digest = sha256_of(data)
    file = f"{folder or table_name}/{shard_name(table_name, unit_id, digest)}"
    record = ShardRecord(table=table_name, file=file, sha256=digest, rows=sum(group.num_rows for group in groups))
    _opened(data, record, file)
    while not storage.create(file, data):
        with suppress(Absent):  # where another driver has just moved it
            if sha256_of(storage.read(file)) == digest:
                break
            set_aside_damaged(storage, file)
    return record


def read_shard(storage: Storage, record: ShardRecord, columns: Sequence[str] | None = None) -> pa.Table:
    """The table of a committed file, or some of its columns. Raises StoreError when the file is missing, damaged or different
    from what was committed."""
    file = verified_file(storage, record)
    return file.read(columns=None if columns is None else list(columns), use_threads=False)


def verified_file(storage: Storage, record: ShardRecord) -> pq.ParquetFile:
    """The opened file after its bytes were checked against the record, for reading single row groups."""
    return _opened(intact_bytes(storage, record), record, f"{storage.run_dir}/{record.file}")


def intact_bytes(storage: Storage, record: ShardRecord) -> bytes:
    """The content of a committed file. Raises Absent or Damaged where it is missing or differs from the record."""
    data = _found(storage, record)
    if sha256_of(data) != record.sha256:
        raise Damaged(_damage(storage, record, "damaged"))
    return data


def notes_of(file: pq.ParquetFile) -> dict[str, str]:
    """The `notes` of `write_shard`."""
    metadata = file.schema_arrow.metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items()}


def aside_name(file: str) -> str:
    """Where a data file is when it is not in its own folder."""
    return f"{ASIDE}/{file.rpartition('/')[2]}"


def set_aside(storage: Storage, file: str) -> None:
    """Move a data file out of its folder to `aside/`. A missing file is no error."""
    with suppress(Absent):
        storage.move(file, aside_name(file))


def set_aside_damaged(storage: Storage, file: str) -> None:
    """Move a damaged file to `damaged/`. A missing file is no error."""
    with suppress(Absent):
        storage.move(file, _damaged_name(file))


def keep_damaged(storage: Storage, file: str) -> None:
    """Copy a file to `damaged/`. A missing file is no error."""
    with suppress(Absent):
        storage.create(_damaged_name(file), storage.read(file))


def _damaged_name(file: str) -> str:
    return f"{DAMAGED}/{file.replace('/', '-')}"


def _found(storage: Storage, record: ShardRecord) -> bytes:
    # The first place is tried twice, because a file may be moved between the two places meanwhile.
    for name in (record.file, aside_name(record.file), record.file):
        try:
            return storage.read(name)
        except Absent:
            continue
    raise Absent(_damage(storage, record, "missing"))


def _damage(storage: Storage, record: ShardRecord, fault: str) -> str:
    remedy = "start the command of this run directory again, which repeats the lost work"
    return f"{storage.run_dir}/{record.file} is {fault}: {remedy}"


def _encoded(groups: Sequence[pa.Table], notes: Mapping[str, str]) -> bytes:
    sink = pa.BufferOutputStream()
    schema = groups[0].schema.with_metadata(dict(notes)) if notes else groups[0].schema
    with pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        write_page_checksum=True,
        use_dictionary=_REPEATING,  # type: ignore[arg-type]  # the stubs allow only bool
    ) as writer:
        for group in groups:
            writer.write_table(group.cast(schema), row_group_size=max(1, group.num_rows))
    return bytes(sink.getvalue().to_pybytes())


def _opened(data: bytes, record: ShardRecord, file_path: str) -> pq.ParquetFile:
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    if file.metadata.num_rows != record.rows:
        raise StoreError(f"{file_path} has {file.metadata.num_rows} rows, but its commit record states {record.rows}")
    return file
