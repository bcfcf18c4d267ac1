"""One Parquet file: built in memory, written with page checksums, read back and verified before anyone hears of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import StoreError
from pipeline.ids import file_name
from pipeline.store.files import publish_if_absent, read, sha256_of

_ZSTD_LEVEL = 3
# Columns that repeat few values; for the others a dictionary is built, found useless and thrown away.
_REPEATING = ["prefix_id", "problem_id", "finish", "verdict", "grader", "answer", "problem", "origin", "file", "reason"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRecord:
    """What a commit record says of a file. `file` is relative to the run directory."""

    table: str
    file: str
    sha256: str
    rows: int


def write_shard(run_dir: Path, table_name: str, unit_id: str, groups: Sequence[pa.Table]) -> ShardRecord:
    """Write `groups`, one row group each, under a content-addressed name; equal content already there is success."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        groups[0].schema,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        write_page_checksum=True,
        use_dictionary=_REPEATING,  # type: ignore[arg-type]  # the stubs know bool only
    ) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(1, group.num_rows))
    data = memoryview(sink.getvalue())
    digest = sha256_of(data)
    file = f"{table_name}/{file_name(table_name, unit_id, digest)}"
    record = ShardRecord(table=table_name, file=file, sha256=digest, rows=sum(group.num_rows for group in groups))
    publish_if_absent(run_dir / file, data)
    read_shard(run_dir, record)
    return record


def read_shard(run_dir: Path, record: ShardRecord) -> pa.Table:
    """The table of a committed file. Raises StoreError when the file is missing, damaged or not what was committed."""
    return verified_file(run_dir, record).read(use_threads=False)


def verified_file(run_dir: Path, record: ShardRecord) -> pq.ParquetFile:
    """The opened file, its bytes checked against the record; for reading single row groups."""
    path = run_dir / record.file
    data = read(path) if path.exists() else None
    if data is None or sha256_of(data) != record.sha256:
        fault = "missing" if data is None else "damaged"
        raise StoreError(
            f"{path} is {fault}: move it, and the record in {run_dir / 'commits'} that names it, out of the run directory and "
            "start the command again: what it held is done anew"
        )
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    if file.metadata.num_rows != record.rows:
        raise StoreError(f"{path} has {file.metadata.num_rows} rows, its commit record says {record.rows}")
    return file
