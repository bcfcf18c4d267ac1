"""Reads raw rows from files and data sets, one at a time, so that memory does not grow with the input.

A path is a file, a folder, a glob, `sample` (the shipped example) or `hf://OWNER/NAME[/CONFIG][:SPLIT]`. Files are `.jsonl`,
`.jsonl.gz`, `.jsonl.zst`, `.parquet`, or `.json` with an array or with one row per line. A row that cannot be read becomes a
Reject. A file that cannot be read raises InputError, also if the damage is found half-way.

Not covered: nested folders (use a glob: `data/**/*.jsonl`), and JSON arrays above MAX_ARRAY_BYTES.
"""

import glob
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Literal, TypeVar, cast

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.errors import InputError
from pipeline.core.records import Reject, RejectReason, RowLocation
from pipeline.data.hub import PREFIX, Row, hub_commit, hub_rows
from pipeline.data.jsonl import BYTE_ORDER_MARK, UnusableLineError, as_object, numbered_lines, parse_object

SAMPLE = Path(__file__).parent / "sample.jsonl"
SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".parquet")
MAX_ARRAY_BYTES = 64 * 2**20
"""A larger JSON array is refused, because an array is read at once."""
T = TypeVar("T")
_SETTING = "data.path"
_PARQUET_BATCH_ROWS = 64
_CHUNK_BYTES = 2**20
_COMPRESSION: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}


def read_rows(data_path: str, limit: int | None, setting: str = _SETTING) -> Iterator[tuple[RowLocation, Row | Reject]]:
    """The first `limit` rows in order, each with its location. Unreadable rows count, blank lines do not.

    `setting` is the setting that named the path, for messages. Raises InputError at once if the path does not exist, and during
    iteration for a damaged file or an unavailable data set.
    """
    if data_path.startswith(PREFIX):
        return islice(hub_rows(data_path, setting), limit)
    files = input_files(data_path, setting)
    return islice(chain.from_iterable(_file_rows(file, setting) for file in files), limit)


def input_files(data_path: str, setting: str = _SETTING) -> list[Path]:
    """The files of a path, sorted by name; an empty list for `hf://`. Raises InputError if there is no file."""
    if data_path.startswith(PREFIX):
        return []
    path = SAMPLE if data_path == "sample" else Path(data_path)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and _is_input(file) and file.name[0] != ".")
        if not files:
            raise InputError(f"{setting}: the folder {path} contains no file that ends in {' '.join(SUFFIXES)}")
        return files
    if path.is_file():
        files = [path]
    else:
        files = sorted(Path(name) for name in glob.glob(data_path, recursive=True) if Path(name).is_file())
    if not files:
        raise InputError(f"{setting}: there is no file or folder {path}; check the path (working folder: {Path.cwd()})")
    for file in files:
        if not _is_input(file):
            raise InputError(f"{setting}: {file} must end in one of {' '.join(SUFFIXES)}; rename or convert it")
    return files


def input_digest(data_path: str) -> str:
    """The identity of the input: the sha256 of the files' bytes in order, equal to `cat FILES | sha256sum`.

    For `hf://`, the sha256 of the path and the current commit of the data set. Raises InputError as `read_rows` does.
    """
    digest = hashlib.sha256()
    if data_path.startswith(PREFIX):
        digest.update(f"{data_path}@{hub_commit(data_path)}".encode())
    for file in input_files(data_path):
        with blame(_SETTING, file), file.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def _is_input(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


@contextmanager
def blame(setting: str, path: Path | str) -> Iterator[None]:
    """Turn errors of the file itself into an InputError that names the file and the setting."""
    try:
        yield
    except (OSError, EOFError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{setting}: {path} cannot be read: {reason}. Check its permissions, or download it again"
        ) from error


def _file_rows(path: Path, setting: str) -> Iterator[tuple[RowLocation, Row | Reject]]:
    with blame(setting, path):
        if path.suffix.lower() == ".parquet":
            yield from _parquet_rows(path)
        elif path.suffix.lower() == ".json" and _is_array(path):
            yield from _array_rows(path, setting)
        else:
            yield from _line_rows(path)


def _location(path: Path, line: int) -> RowLocation:
    return RowLocation(file=str(path).encode("utf-8", "replace").decode(), line=line)


def open_lines(path: Path) -> IO[bytes]:
    """Open a file of lines, decompressed if its name ends in `.gz` or `.zst`.

    Raises OSError; reading a damaged file raises it later.
    """
    compression = _COMPRESSION.get(path.suffix.lower())
    if compression is None:
        return path.open("rb")
    # Unlike zstandard's streams, those of pyarrow report a truncated file.
    return io.BufferedReader(cast(io.RawIOBase, pa.input_stream(str(path), compression=compression)))


def _line_rows(path: Path) -> Iterator[tuple[RowLocation, Row | Reject]]:
    with open_lines(path) as stream:
        for number, line in numbered_lines(stream):
            location = _location(path, number)
            yield location, _row(parse_object, line, location)


def _row(read: Callable[[T], Row], source: T, location: RowLocation) -> Row | Reject:
    try:
        return read(source)
    except UnusableLineError as unusable:
        return Reject(location=location, reason=unusable.reason, detail=unusable.detail)


def _is_array(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(_CHUNK_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"[")


def _array_rows(path: Path, setting: str) -> Iterator[tuple[RowLocation, Row | Reject]]:
    if path.stat().st_size > MAX_ARRAY_BYTES:
        limit = f"{MAX_ARRAY_BYTES:,} bytes"
        raise InputError(
            f"{setting}: {path} is a JSON array of more than {limit}; convert it to JSONL: jq -c '.[]' {path}"
        )
    try:
        values = json.loads(path.read_bytes().removeprefix(BYTE_ORDER_MARK).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{setting}: {path} begins like a JSON array but is not valid JSON: {error}; repair it"
        ) from error
    for number, value in enumerate(values, start=1):
        location = _location(path, number)
        yield location, _row(as_object, value, location)


def _parquet_rows(path: Path) -> Iterator[tuple[RowLocation, Row | Reject]]:
    number = 0
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for batch in file.iter_batches(batch_size=_PARQUET_BATCH_ROWS):
            for index in range(batch.num_rows):
                number += 1
                location = _location(path, number)
                yield location, _parquet_row(batch.slice(index, 1), location)


def _parquet_row(row: pa.RecordBatch, location: RowLocation) -> Row | Reject:
    try:
        return cast(Row, row.to_pylist()[0])
    except UnicodeDecodeError as error:
        detail = f"A text of the row is not UTF-8 at byte {error.start}, counted from 0; write the file again as UTF-8."
        return Reject(location=location, reason=RejectReason.NOT_UTF8, detail=detail)
    except (ValueError, OverflowError, pa.ArrowException) as error:
        detail = f"A value of the row cannot be read ({error}); remove its column from the file."
        return Reject(location=location, reason=RejectReason.NOT_A_ROW, detail=detail)
