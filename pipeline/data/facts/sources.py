"""Reads the rows of a fact table: Parquet, SQLite, CSV or JSON lines, a batch at a time, so that memory does not grow with it.

Columns: `entity`, `attribute` and `value`; and where there are any, `unit`, `tolerance` (a number, or a share such as `1%`),
`source`, `aliases` (other names of the entity) and `attribute_aliases`. Other columns are ignored. A cell with several names or
values is a list, or a text with `|` between them. In SQLite the table is called `facts`, or is the only one of the file.
"""

import csv
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.errors import InputError
from pipeline.data.facts.names import storable
from pipeline.data.facts.quantities import read_tolerance

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
