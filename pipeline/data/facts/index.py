"""Makes the index of a fact table, a SQLite file in the cache of this machine, and finds it again.

The index has names in their normal form, sorted, so that a look-up reads a few pages of the file and opening it reads none. It
is made once for each state of a table: by the first process that needs it, while others wait. Rows that give one key different
values are kept as a contradiction.
"""

import fcntl
import hashlib
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path

from pipeline.config.fields import SAMPLE
from pipeline.core.cache import cache_folder
from pipeline.core.errors import InputError, StoreError
from pipeline.data.facts.names import normal_name
from pipeline.data.facts.quantities import read_quantity, read_unit
from pipeline.data.facts.sources import TableRow, read_table

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
