"""Reads raw rows from files and data sets, one at a time, so that memory does not grow with the input.

A path is a file, a folder, a glob, a list of those (`[a.jsonl,b.jsonl]`), `sample` or `sample-facts` (the shipped examples) or
`hf://OWNER/NAME[/CONFIG][:SPLIT]`. Files are `.jsonl`, `.jsonl.gz`, `.jsonl.zst`, `.csv` with a header, `.parquet`, `.arrow` as
`save_to_disk` writes it, or `.json` with an array or with one row per line. A row that cannot be read becomes a Reject. A file
that cannot be read raises InputError, also if the damage is found half-way.

Not covered: JSON arrays above MAX_ARRAY_BYTES.
"""

import csv
import glob
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Literal, TypeVar, cast

import pyarrow as pa

from pipeline.core.errors import InputError
from pipeline.core.json_size import MAX_VALUES, has_too_many_values
from pipeline.core.records import Reject, RejectReason, RowLocation
from pipeline.data.jsonl import (
    BYTE_ORDER_MARK,
    MAX_LINE_BYTES,
    Row,
    UnusableRowError,
    as_object,
    beyond_python,
    numbered_lines,
    parse_object,
)
from pipeline.data.parquet import OversizedRow, ParquetReader, UnreadableFileError
from pipeline.data.parquet_child import ARROW

SAMPLE = Path(__file__).parent / "sample.jsonl"
SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".parquet", ".arrow", ".csv")
GIVEN_FOLDER, GIVEN_FILE = "stepvalue-rows-", "rows.jsonl"
"""Where the rows of a Python call are while they are read: how the name of the temporary folder begins, and the file in it. It
is gone afterwards, so no message names it."""
_NO_ROWS = {"dataset_info.json", "dataset_infos.json", "state.json", "dataset_dict.json"}
"""Files that data sets have beside their rows. The last one is in the folder of several splits, a folder each."""
_RUN = "run.json"
"""A folder with this file is a run directory: its files are no input, but for those of a folder of it that is named."""
_OF_SPLIT = re.compile(r"(?P<split>.+)-\d{5}-of-\d{5}\..+")
MAX_ARRAY_BYTES = 64 * 2**20
"""A larger JSON array is refused, because an array is read at once."""
T = TypeVar("T")
_SETTING = "data.path"
PREFIX = "hf://"
_MAX_REASON = 500
_HUB_PATH = re.compile(PREFIX + r"(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:/(?P<config>[\w.-]+))?(?::(?P<split>.+))?")
_NOT_INSTALLED = "hf:// needs the package `datasets`; install it: pip install datasets"
_SHIPPED = {"sample": SAMPLE, "sample-facts": SAMPLE.with_name("facts.jsonl")}
"""Paths that stand for shipped examples: word problems, and factual questions."""
_CHUNK_BYTES = 2**20
_COMPRESSION: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}


def read_rows(data_path: str, limit: int | None, setting: str = _SETTING) -> Iterator[tuple[RowLocation, Row | Reject]]:
    """The first `limit` rows in order, each with its location. Unreadable rows count, blank lines do not.

    `setting` is the setting that named the path, for messages. Raises InputError at once if the path does not exist, and during
    iteration for a damaged file or an unavailable data set.
    """
    if data_path.startswith(PREFIX):
        return islice(_hub_rows(data_path, setting), limit)
    files = input_files(data_path, setting)
    return islice(_rows_of(files, setting), limit)


def input_files(data_path: str, setting: str = _SETTING) -> list[Path]:
    """The files of a path, sorted by name, those of a list in its order; an empty list for `hf://`. Raises InputError if there
    is no file."""
    if data_path.startswith(PREFIX):
        return []
    if (paths := _listed(data_path)) is not None:
        if not paths or any(path.startswith(PREFIX) for path in paths):
            raise InputError(
                f"{setting}: the list {data_path} must have files, folders or globs; {PREFIX} stands alone"
            )
        return list(dict.fromkeys(file for path in paths for file in input_files(path, setting)))
    path = _SHIPPED.get(data_path) or Path(data_path)
    if path.is_dir():
        return _files_below(path, setting)
    named = [path] if path.is_file() else map(Path, _matches(data_path))
    files = sorted({file for file in named if file.is_file()})
    if not files:
        raise InputError(f"{setting}: there is no file or folder {path}; check the path (working folder: {Path.cwd()})")
    for file in files:
        if not _is_input(file):
            raise InputError(f"{setting}: {file} must end in one of {' '.join(SUFFIXES)}; rename or convert it")
    return files


def _listed(data_path: str) -> list[str] | None:
    """The paths of a list; None for another path."""
    if not (data_path.startswith("[") and data_path.endswith("]")) or Path(data_path).exists():
        return None
    return [path for part in data_path[1:-1].split(",") if (path := part.strip(" \"'"))]


def _files_below(folder: Path, setting: str) -> list[Path]:
    """The files of a folder and of those in it, sorted. Raises InputError for none, and for those of several splits."""
    if (folder / _RUN).exists():
        raise InputError(f"{setting}: {folder} is a run directory: for its chains give {setting}={folder / 'labels'}")
    files: list[Path] = []
    for place, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if name[0] != "." and not Path(place, name, _RUN).exists()]
        files += (Path(place, name) for name in names if name[0] != "." and name not in _NO_ROWS)
    files = sorted(file for file in files if _is_input(file) and file.is_file())
    if not files:
        raise InputError(f"{setting}: the folder {folder} contains no file that ends in {' '.join(SUFFIXES)}")
    if (folder / "dataset_dict.json").exists():
        splits = {file.parent.name: file.parent for file in files}
    else:
        named = {file: found["split"] for file in files if (found := _OF_SPLIT.fullmatch(file.name))}
        splits = {split: file.with_name(f"{split}-*") for file, split in named.items()}
    if len(splits) > 1:
        split = "train" if "train" in splits else min(splits)
        raise InputError(
            f"{setting}: the folder {folder} has the splits {', '.join(sorted(splits))}: name one, such as "
            f"{setting}={splits[split]}"
        )
    return files


def input_digest(data_path: str, setting: str = _SETTING) -> str:
    """The identity of the input: the sha256 of the files' bytes in order, equal to `cat FILES | sha256sum`.

    For `hf://`, the sha256 of the path and the current commit of the data set. Raises InputError as `read_rows` does.
    """
    digest = hashlib.sha256()
    if data_path.startswith(PREFIX):
        digest.update(f"{data_path}@{_hub_commit(data_path)}".encode())
    for file in input_files(data_path, setting):
        with blame(_SETTING, file), file.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def _matches(pattern: str) -> Iterator[str]:
    """The paths of a glob. `**` stands for any number of folders that are neither hidden nor links: links may form loops, in
    which `glob` itself would go round up to 40 times each."""
    parts = pattern.split("/")
    if "**" not in parts:
        yield from glob.glob(pattern)
        return
    at = parts.index("**")
    before = "/".join(parts[:at]) or ("/" if pattern.startswith("/") else "")
    after = "/".join(parts[at + 1 :]) or "*"
    for top in glob.glob(before) if before else [os.curdir]:
        for folder, inner, _ in os.walk(top):
            inner[:] = [name for name in inner if not name.startswith(".")]
            yield from _matches(os.path.normpath(os.path.join(glob.escape(folder), after)))


def names_input(word: str) -> bool:
    """Whether a word looks like the path of an input."""
    return word.startswith(PREFIX) or _is_input(Path(word)) or _listed(word) is not None


def _is_input(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


@contextmanager
def blame(setting: str, path: Path | str) -> Iterator[None]:
    """Turn errors of the file itself into an InputError that names the file and the setting."""
    try:
        yield
    except (OSError, EOFError, pa.ArrowException) as error:
        wrong = f"{setting}: {path} cannot be read: {' '.join(str(error).split())}"
        raise InputError(f"{wrong}. Check its permissions, or download it again") from error


def _rows_of(files: Sequence[Path], setting: str) -> Iterator[tuple[RowLocation, Row | Reject]]:
    with ParquetReader() as parquet:
        for file in files:
            with blame(setting, file):
                suffix = file.suffix.lower()
                if suffix in (".parquet", ARROW):
                    yield from _parquet_rows(file, setting, parquet)
                elif suffix == ".csv":
                    yield from _csv_rows(file, setting)
                elif suffix == ".json" and _is_array(file):
                    yield from _array_rows(file, setting)
                else:
                    yield from _line_rows(file)


def lasting_path(data_path: str) -> str | None:
    """The path as it can be given later, in any working folder. None for the rows of a Python call, which are gone then."""
    if is_given(data_path):
        return None
    if (paths := _listed(data_path)) is not None:
        return f"[{','.join(filter(None, map(lasting_path, paths)))}]"
    return data_path if data_path.startswith(PREFIX) or data_path in _SHIPPED else os.path.abspath(data_path)


def is_given(data_path: str) -> bool:
    """Whether a path is that of the rows of a Python call."""
    path = Path(data_path)
    return path.name == GIVEN_FILE and path.parent.name.startswith(GIVEN_FOLDER)


def _location(path: Path, line: int) -> RowLocation:
    file = "" if is_given(str(path)) else str(path).encode("utf-8", "replace").decode()
    return RowLocation(file=file, line=line)


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


def _csv_rows(path: Path, setting: str) -> Iterator[tuple[RowLocation, Row | Reject]]:
    """Rows of texts; an empty cell is null. The line of a row is its first one."""
    csv.field_size_limit(MAX_LINE_BYTES)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, strict=True)
        try:
            before = 1
            for row in rows:
                location = _location(path, before + 1)
                before = rows.line_num
                if None in row:
                    detail = "The row has more fields than the header; put quotes around texts with commas."
                    yield location, Reject(location=location, reason=RejectReason.NOT_A_ROW, detail=detail)
                else:
                    yield location, {name: value or None for name, value in row.items()}
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(
                f"{setting}: {path} cannot be read after line {rows.line_num}: {error}; write it as CSV in UTF-8, with quotes "
                "around texts that have commas, quotes or line ends"
            ) from error


def _row(read: Callable[[T], Row], source: T, location: RowLocation) -> Row | Reject:
    try:
        return read(source)
    except UnusableRowError as unusable:
        return Reject(location=location, reason=unusable.reason, detail=unusable.detail)


def _is_array(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(_CHUNK_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"[")


def _array_rows(path: Path, setting: str) -> Iterator[tuple[RowLocation, Row | Reject]]:
    where, remedy = f"{setting}: {path} is a JSON array", f"convert it to JSONL: jq -c '.[]' {path}"
    if path.stat().st_size > MAX_ARRAY_BYTES:
        raise InputError(f"{where} of more than {MAX_ARRAY_BYTES:,} bytes; {remedy}")
    content = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
    if has_too_many_values(content):
        raise InputError(f"{where} of more than {MAX_VALUES:,} values; {remedy}")
    try:
        values = json.loads(content.decode("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        begins = f"{setting}: {path} begins like a JSON array"
        raise InputError(f"{begins} but is not valid JSON: {error}; repair it") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} that {beyond_python(error)}") from error
    for number, value in enumerate(values, start=1):
        location = _location(path, number)
        yield location, _row(as_object, value, location)


def _parquet_rows(path: Path, setting: str, parquet: ParquetReader) -> Iterator[tuple[RowLocation, Row | Reject]]:
    try:
        for number, row in enumerate(parquet.rows(path), start=1):
            location = _location(path, number)
            yield location, row if isinstance(row, dict) else _parquet_reject(row, location)
    except UnreadableFileError as error:
        raise InputError(
            f"{setting}: {path} cannot be read: {error}; write it again with shorter rows, smaller row groups and only the "
            "columns that are needed"
        ) from error


def _parquet_reject(row: OversizedRow | Exception, location: RowLocation) -> Reject:
    match row:
        case OversizedRow(size=size):
            reason, detail = RejectReason.TOO_LARGE, f"The row takes {size:,} bytes of memory; shorten or split it."
        case UnicodeDecodeError(start=start):
            reason = RejectReason.NOT_UTF8
            detail = f"A text of the row is not UTF-8 at byte {start}, counted from 0; write the file again as UTF-8."
        case _:
            reason = RejectReason.NOT_A_ROW
            detail = f"A value of the row cannot be read ({row}); remove its column from the file."
    return Reject(location=location, reason=reason, detail=detail)


def _hub_rows(path: str, setting: str) -> Iterator[tuple[RowLocation, Row]]:
    """All rows of a data set, in order; `setting` named it. Raises InputError if it is unavailable, also during iteration."""
    with _hub(path, setting) as parts:
        from datasets import load_dataset

        rows = load_dataset(parts["name"], parts["config"], split=parts["split"] or "train", streaming=True)
        for number, row in enumerate(rows, start=1):
            yield RowLocation(file=path, line=number), dict(row)


def _hub_commit(path: str) -> str:
    """The current commit of the data set. Raises InputError if the Hub does not return it."""
    with _hub(path, _SETTING) as parts:
        from huggingface_hub import HfApi

        return str(HfApi().dataset_info(parts["name"]).sha)


@contextmanager
def _hub(path: str, setting: str) -> Iterator[re.Match[str]]:
    """The parts of a path on the Hub. Errors of its use become an InputError that says what to do."""
    parts = _HUB_PATH.fullmatch(path)
    if parts is None:
        raise InputError(f"{setting}: {path} is not of the form hf://OWNER/NAME[/CONFIG][:SPLIT]")
    try:
        yield parts
    except Exception as error:  # the network, the Hub and each file format raise their own errors
        if isinstance(error, ImportError) and error.name in ("datasets", "huggingface_hub"):
            raise InputError(f"{setting}: {_NOT_INSTALLED}") from error
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"[:_MAX_REASON]
        remedy = "check its name, configuration and split and the network, or download its files and give their path"
        raise InputError(f"{setting}: {path} is not available ({reason}); {remedy}") from error
