"""Reads the rows of Parquet and Arrow files, in a process with a limit on its memory: see `parquet_child`.

A row that is too large stands as an OversizedRow in its place. Where 64 rows pass the limit, they are read row by row. Where a
single row does, or makes the reader crash, UnreadableFileError is raised after the rows before it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import IOBase
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from pipeline.data import parquet_child
from pipeline.data.jsonl import Row

CHILD_BYTES = 640 * 2**20
"""Memory of the reading process, which takes 60 MB before it reads anything."""
BATCH_ROWS = 64
UNREADABLE_METADATA = "the metadata at its end are damaged, or larger than Arrow reads"
_INHERITED = (
    "PATH", "LD_LIBRARY_PATH", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE",
    "PYTHONHOME", "PYTHONPATH", "PYTHONPLATLIBDIR", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX",
)  # fmt: skip
"""What the reading process needs of the environment. Keys and tokens stay away from what reads the files of others."""


class UnreadableFileError(Exception):
    """The file takes too much memory, or crashes the reader. The text says from which row on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OversizedRow:
    """Stands in place of a row that is not made. `size`: what its values would take, in bytes."""

    size: int


ParquetRow = Row | OversizedRow | Exception
"""A row; an exception where Python cannot hold its values."""


class _Died(Exception):
    """The reading process has ended."""


class _Refused(Exception):
    """The reading process says what is wrong with the file."""


class ParquetReader:
    """Reads files one after the other, with a process that is started for the first one. A context that ends the process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "ParquetReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def rows(self, path: Path) -> Iterator[ParquetRow]:
        """All rows of a file. Raises UnreadableFileError, and OSError for a damaged file."""
        sent = 0
        for batch_rows in (BATCH_ROWS, 1):
            try:
                for row in self._rows(path, batch_rows, sent):
                    sent += 1
                    yield row
                return
            except _Died:
                self._kill()
        raise UnreadableFileError(
            f"from row {sent + 1:,} on it takes more than {CHILD_BYTES:,} bytes of memory, or makes the reader crash"
        )

    def _rows(self, path: Path, batch_rows: int, skip: int) -> Iterator[ParquetRow]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        request = {"path": os.fsencode(path).hex(), "batch": batch_rows, "skip": skip}
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            _check(process.stdout.readline())
            yield from _batched_rows(pa.ipc.open_stream(pa.PythonFile(cast(IOBase, process.stdout), mode="r")))
            _check(process.stdout.readline())
        except _Refused as error:
            raise OSError(UNREADABLE_METADATA if "thrift" in str(error).lower() else str(error)) from error
        except (OSError, EOFError, pa.ArrowInvalid) as error:  # a message has no end
            raise _Died from error

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(parquet_child.__file__), str(CHILD_BYTES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Arrow's other pools reserve more than they use, which counts against the limit.
                env=environment | {"ARROW_DEFAULT_MEMORY_POOL": "system"},
            )
        return self._process

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _check(answer: bytes) -> None:
    if not answer.endswith(b"\n"):
        raise EOFError
    error = json.loads(answer)["error"]
    if error is not None:
        raise _Refused(error)


def _batched_rows(stream: Any) -> Iterator[ParquetRow]:
    while True:
        try:
            batch, metadata = stream.read_next_batch_with_custom_metadata()
        except StopIteration:
            return
        if metadata:
            yield OversizedRow(size=int(metadata[parquet_child.SIZE]))
        for index in range(batch.num_rows):
            yield _row(batch.slice(index, 1))


def _row(row: pa.RecordBatch) -> ParquetRow:
    try:
        return cast(Row, row.to_pylist()[0])
    except (ValueError, OverflowError, pa.ArrowException) as error:
        return error
