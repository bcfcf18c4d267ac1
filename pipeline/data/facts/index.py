"""Reads a fact table and makes its index, a SQLite file in the cache of this machine, and finds it again.

The index has names in their normal form, sorted, so that a look-up reads a few pages of the file and opening it reads none. It
is made once for each state of a table: by the first process that needs it, while others wait. Rows that give one key different
values are kept as a contradiction.

A table is Parquet, SQLite, CSV or JSON lines, and is read a batch at a time. Its columns: `entity`, `attribute` and `value`; and
where there are any, `unit`, `tolerance` (a number, or a share such as `1%`), `source`, `aliases` (other names of the entity) and
`attribute_aliases`. Other columns are ignored. A cell with several names or values is a list, or a text with `|` between them.
In SQLite the table is called `facts`, or is the only one of the file.
"""

import csv
import fcntl
import hashlib
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config.fields import SAMPLE
from pipeline.core.cache import cache_folder
from pipeline.core.errors import InputError, StoreError
from pipeline.data.facts.names import normal_name, storable
from pipeline.data.facts.quantities import read_quantity, read_tolerance, read_unit

SUFFIXES = (".parquet", ".sqlite", ".sqlite3", ".db", ".csv", ".jsonl")
REQUIRED = ("entity", "attribute", "value")
COLUMNS = (*REQUIRED, "unit", "tolerance", "source", "aliases", "attribute_aliases")
_SEVERAL = ("value", "aliases", "attribute_aliases")
LONGEST_CELL = 2_000
"""Characters of a name, a value, a unit or a source."""
MOST_IN_CELL = 200
"""Names or values in one cell."""
_BATCH = 10_000
_TABLE = "facts"
_BETWEEN = "|"
Cells = Mapping[str, Any]


class TableRow(NamedTuple):
    """A row as its table has it. `values`: one, or several of which each is right."""

    entity: str
    attribute: str
    values: tuple[str, ...]
    unit: str = ""
    tolerance: str = ""
    source: str = ""
    aliases: tuple[str, ...] = ()
    attribute_aliases: tuple[str, ...] = ()


def read_table(path: Path, setting: str) -> Iterator[TableRow]:
    """The rows in their order. Raises InputError for a file that cannot be read, a missing column and a cell that is wrong;
    `setting` is named by the message."""
    where = f"{setting}: {path}"
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{where} must end in one of {' '.join(SUFFIXES)}: rename or convert it")
    if not path.is_file():
        raise InputError(f"{where}: there is no such file: check the path (working folder: {Path.cwd()})")
    try:
        for number, cells in enumerate(_READERS[suffix](path, where), start=1):
            yield _row(cells, f"{where}, row {number}")
    except (OSError, EOFError, pa.ArrowException, sqlite3.Error, csv.Error, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{where} cannot be read: {reason}. Check its permissions and its format, or write it again"
        ) from error


def _check_columns(found: list[str], where: str) -> list[str]:
    """The columns that count. Raises InputError where a required one is missing."""
    if missing := [name for name in REQUIRED if name not in found]:
        raise InputError(
            f"{where} has no column {missing[0]!r}: a fact table needs the columns {', '.join(REQUIRED)}. It has "
            f"{', '.join(found[:20]) or 'none'}; rename one of them"
        )
    return [name for name in COLUMNS if name in found]


def _parquet(path: Path, where: str) -> Iterator[Cells]:
    with pq.ParquetFile(path) as file:
        columns = _check_columns(file.schema_arrow.names, where)
        for batch in file.iter_batches(_BATCH, columns=columns, use_threads=False):
            yield from batch.to_pylist()


def _sqlite(path: Path, where: str) -> Iterator[Cells]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
        tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        if _TABLE not in tables and len(tables) != 1:
            raise InputError(
                f"{where} has {len(tables)} tables, and none is called {_TABLE}: rename the one with the facts, or make a view "
                f"{_TABLE}"
            )
        table = _quoted(_TABLE if _TABLE in tables else tables[0])
        names = [str(row[1]) for row in base.execute(f"PRAGMA table_info({table})")]
        columns = _check_columns(names, where)
        for row in base.execute(f"SELECT {', '.join(map(_quoted, columns))} FROM {table}"):
            yield dict(zip(columns, row, strict=True))


def _quoted(name: str) -> str:
    """An identifier of the user's own table: SQL cannot bind those."""
    return '"' + name.replace('"', '""') + '"'


def _csv(path: Path, where: str) -> Iterator[Cells]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines)
        columns = _check_columns(list(reader.fieldnames or ()), where)
        for row in reader:
            yield {name: row[name] for name in columns}


def _jsonl(path: Path, where: str) -> Iterator[Cells]:
    """Every line must have the required keys; the first one is asked for all of them by name."""
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                cells = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}, line {number}, is not JSON ({error}): repair the line") from error
            if not isinstance(cells, dict):
                raise InputError(f"{where}, line {number}, is not an object: write {{...}} with the columns as keys")
            yield {name: cells.get(name) for name in _check_columns(list(cells), f"{where}, line {number},")}


_READERS = dict(zip(SUFFIXES, (_parquet, _sqlite, _sqlite, _sqlite, _csv, _jsonl), strict=True))


def _row(cells: Cells, where: str) -> TableRow:
    found: dict[str, Any] = {}
    for name in COLUMNS:
        texts = _texts(cells.get(name), name, where)
        if name in REQUIRED and not texts:
            raise InputError(f"{where} has no {name}: fill the cell, or remove the row")
        found[name] = texts if name in _SEVERAL else "".join(texts)
    if found["tolerance"] and read_tolerance(found["tolerance"]) is None:
        tolerance = f"{found['tolerance']!r:.60}"
        raise InputError(f"{where}: the tolerance {tolerance} is no number and no share: write 0.5 or 1%")
    return TableRow(*found.values())


def _texts(cell: object, name: str, where: str) -> tuple[str, ...]:
    """The text of a cell, or the names or values of one that may have several."""
    parts = [cell]
    if name in _SEVERAL:
        parts = list(cell) if isinstance(cell, list | tuple) else list(_plain(cell, name, where).split(_BETWEEN))
    if len(parts) > MOST_IN_CELL:
        raise InputError(f"{where}: {name} has more than {MOST_IN_CELL} entries: divide or shorten it")
    return tuple(text for part in parts if (text := _plain(part, name, where).strip()))


def _plain(cell: object, name: str, where: str) -> str:
    """A cell as text. A number is written as people write it."""
    if cell is None:
        return ""
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        raise InputError(f"{where}: {name} is {cell!r:.60}, of type {type(cell).__name__}: write a text or a number")
    text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 10**15 else str(cell)
    if len(text) > LONGEST_CELL:
        raise InputError(f"{where}: {name} has more than {LONGEST_CELL:,} characters: shorten it")
    return storable(text)


SHIPPED = Path(__file__).parents[1] / "facts.jsonl"
_NUMBER = re.compile(r"[-+−]?[\d.,]+")
_VERSION = 1
"""Part of the name of an index. Increase it when what is stored changes, also by another normal form of names."""
_CACHE_KIB = 65_536
_SCHEMA = """
CREATE TABLE facts (entity TEXT, attribute TEXT, row TEXT, other TEXT, PRIMARY KEY (entity, attribute)) WITHOUT ROWID;
CREATE TABLE known (attribute TEXT, value TEXT, PRIMARY KEY (attribute, value)) WITHOUT ROWID;
CREATE TABLE aliases (name TEXT, entity TEXT, PRIMARY KEY (name, entity)) WITHOUT ROWID;
CREATE TABLE attributes (name TEXT, attribute TEXT, PRIMARY KEY (name, attribute)) WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""
_ADD = {
    "facts": """INSERT INTO facts VALUES (?, ?, ?, NULL) ON CONFLICT DO UPDATE SET other = excluded.row
        WHERE other IS NULL AND differ(row, excluded.row)""",
    "known": "INSERT OR IGNORE INTO known VALUES (?, ?)",
    "aliases": "INSERT OR IGNORE INTO aliases VALUES (?, ?)",
    "attributes": "INSERT OR IGNORE INTO attributes VALUES (?, ?)",
}


def index_of(given: str, setting: str) -> Path:
    """The index of a table, made if there is none for its present state.

    Raises InputError for a table that cannot be used, and StoreError where the cache cannot be written.
    """
    path = SHIPPED if given == SAMPLE else Path(given)
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(
            f"{setting}: {path} cannot be read: {error.strerror or error}. Check the path (working folder: {Path.cwd()})"
        ) from error
    folder = cache_folder() / "facts"
    of_path = _short_hash(str(path.resolve()))
    index = folder / f"{of_path}-{_short_hash(f'{_VERSION} {state.st_size} {state.st_mtime_ns}')}.sqlite"
    if index.is_file():
        return index
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{of_path}.lock").open("a") as lock:  # so that one process makes the index
            with suppress(OSError):  # a file system without locks: two processes then make the same file
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not index.is_file():
                _make(path, setting, index)
                for older in folder.glob(f"{of_path}-*.sqlite"):
                    if older != index:
                        older.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"the index of {path} cannot be written to {folder} ({error}): set STEPVALUE_CACHE to a folder with enough space"
        ) from error
    return index


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _make(path: Path, setting: str, index: Path) -> None:
    descriptor, name = tempfile.mkstemp(prefix="making-", suffix=".sqlite", dir=index.parent)
    os.close(descriptor)
    try:
        with closing(sqlite3.connect(name, isolation_level=None)) as base:
            base.executescript(
                f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-{_CACHE_KIB}; {_SCHEMA} BEGIN;"
            )
            base.create_function("differ", 2, lambda row, other: _values(row) != _values(other), deterministic=True)
            rows = _fill(base, read_table(path, setting))
            if not rows:
                raise InputError(f"{setting}: {path} has no rows: give a table with facts")
            with path.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            base.executemany("INSERT INTO meta VALUES (?, ?)", [("rows", str(rows)), ("sha256", sha256)])
            base.execute("INSERT INTO meta SELECT 'contradictions', COUNT(*) FROM facts WHERE other IS NOT NULL")
            base.execute("COMMIT")
        Path(name).chmod(0o644)
        Path(name).rename(index)
    finally:
        Path(name).unlink(missing_ok=True)


def _fill(base: sqlite3.Connection, rows: Iterable[TableRow]) -> int:
    """Write rows. Returns how many there are."""
    count = 0
    for row in rows:
        count += 1
        entity, attribute = normal_name(row.entity), _normal_attribute(row.attribute)
        shown = _as_json([row.values, row.unit, row.tolerance, row.source, row.entity, row.attribute])
        named = [attribute, *map(_normal_attribute, row.attribute_aliases)]
        values = [normal_name(each) for each in row.values if not _NUMBER.fullmatch(each)]
        base.execute(_ADD["facts"], (entity, attribute, shown))
        base.executemany(_ADD["attributes"], [(name, attribute) for name in named if name or name == attribute])
        base.executemany(
            _ADD["aliases"], [(name, entity) for name in map(normal_name, row.aliases) if name not in ("", entity)]
        )
        base.executemany(_ADD["known"], [(attribute, value) for value in values if value])
    return count


_normal_attribute = lru_cache(maxsize=1024)(normal_name)
_as_json = json.JSONEncoder(ensure_ascii=False).encode


def _values(row: str) -> set[tuple[object, str]]:
    """The values of a row, equal for two spellings of the same ones."""
    values, unit, *_ = json.loads(row)
    read = ((value, read_quantity(value)) for value in values)
    return {(each.number, each.unit or read_unit(unit)) if each else (normal_name(value), "") for value, each in read}
