"""Writes rows as they come into a file of JSON lines, a JSON array, or Parquet."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.export.formats.base import JsonText, Row
from pipeline.export.settings import FileType

GROUP_ROWS = 8192
"""Rows per row group, the unit that a Parquet reader loads at once."""


class RowFile(Protocol):
    def write(self, rows: Sequence[Row]) -> None: ...

    def close(self) -> None:
        """Write the buffered rows and complete the file."""
        ...


class TableFile:
    """Writes Parquet, row group by row group."""

    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(stream, schema, compression="zstd")
        self._schema = schema
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def write(self, rows: Sequence[Row]) -> None:
        columns = [pa.array([row[field.name] for row in rows], type=field.type) for field in self._schema]
        self.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def write_table(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._rows += table.num_rows
        if self._rows >= GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=max(1, self._rows))
        self._waiting, self._rows = [], 0


class _Lines:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, rows: Sequence[Row]) -> None:
        self._stream.write("".join([_json(row) + "\n" for row in rows]).encode())

    def close(self) -> None: ...


class _Array:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._between = "[\n"

    def write(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._stream.write(f"{self._between}{_json(row)}".encode())
            self._between = ",\n"

    def close(self) -> None:
        self._stream.write(b"[]\n" if self._between == "[\n" else b"\n]\n")


@contextmanager
def row_file(path: Path, file: FileType, schema: pa.Schema) -> Iterator[RowFile]:
    """A new file for rows of `schema`. It is closed when the block ends."""
    with path.open("xb") as stream:
        rows: RowFile
        match file:
            case FileType.jsonl:
                rows = _Lines(stream)
            case FileType.json:
                rows = _Array(stream)
            case FileType.parquet:
                rows = TableFile(stream, schema)
        try:
            yield rows
        finally:
            rows.close()


def _json(row: Row) -> str:
    if not any(isinstance(value, JsonText) for value in row.values()):
        return _encoded(row)
    values = (value if isinstance(value, JsonText) else _encoded(value) for value in row.values())
    return "{" + ", ".join(f"{_encoded(name)}: {text}" for name, text in zip(row, values, strict=True)) + "}"


_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode
