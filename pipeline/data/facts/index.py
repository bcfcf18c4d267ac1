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
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

from pipeline.core.cache import cache_folder
from pipeline.core.errors import InputError, StoreError
from pipeline.data.facts.names import normal_name
from pipeline.data.facts.quantities import read_quantity, read_unit
from pipeline.data.facts.sources import TableRow, read_table

SAMPLE = "sample"
"""The name of the shipped table."""
SHIPPED = Path(__file__).parents[1] / "facts.jsonl"
_NUMBER = re.compile(r"[-+−]?[\d.,]+")
_VERSION = 1
"""Part of the name of an index. Increase it when what is stored changes, also by another normal form of names."""
_BATCH = 10_000
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


def table_path(given: str) -> Path:
    """The file of a table: a path, or `sample` for the shipped one."""
    return SHIPPED if given == SAMPLE else Path(given)


def index_of(given: str, setting: str) -> Path:
    """The index of a table, made if there is none for its present state.

    Raises InputError for a table that cannot be used, and StoreError where the cache cannot be written.
    """
    path = table_path(given)
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
        with _alone(folder / f"{of_path}.lock"):
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


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock, so that one process makes the index."""
    with lock.open("a") as held:
        with suppress(OSError):  # a file system without locks: two processes then make the same file
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _make(path: Path, setting: str, index: Path) -> None:
    descriptor, name = tempfile.mkstemp(prefix="making-", suffix=".sqlite", dir=index.parent)
    os.close(descriptor)
    try:
        with closing(sqlite3.connect(name, isolation_level=None)) as base:
            base.executescript(
                f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-{_CACHE_KIB}; {_SCHEMA} BEGIN;"
            )
            base.create_function("differ", 2, _differ, deterministic=True)
            rows = _fill(base, read_table(path, setting))
            if not rows:
                raise InputError(f"{setting}: {path} has no rows: give a table with facts")
            base.executemany("INSERT INTO meta VALUES (?, ?)", [("rows", str(rows)), ("sha256", _sha256(path))])
            base.execute("INSERT INTO meta SELECT 'contradictions', COUNT(*) FROM facts WHERE other IS NOT NULL")
            base.execute("COMMIT")
        Path(name).chmod(0o644)
        Path(name).rename(index)
    finally:
        Path(name).unlink(missing_ok=True)


def _fill(base: sqlite3.Connection, rows: Iterable[TableRow]) -> int:
    """Write rows. Returns how many there are."""
    count = 0
    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH)):
        adds: dict[str, list[tuple[str, ...]]] = {table: [] for table in _ADD}
        for row in batch:
            _add(row, adds)
        for table, statement in _ADD.items():
            base.executemany(statement, adds[table])
        count += len(batch)
    return count


def _add(row: TableRow, adds: dict[str, list[tuple[str, ...]]]) -> None:
    entity, attribute = normal_name(row.entity), _normal_attribute(row.attribute)
    shown = _as_json([row.values, row.unit, row.tolerance, row.source, row.entity, row.attribute])
    adds["facts"].append((entity, attribute, shown))
    adds["attributes"].append((attribute, attribute))
    adds["attributes"].extend((name, attribute) for each in row.attribute_aliases if (name := normal_name(each)))
    adds["aliases"].extend((name, entity) for each in row.aliases if (name := normal_name(each)) and name != entity)
    adds["known"].extend(
        (attribute, name) for each in row.values if not _NUMBER.fullmatch(each) and (name := normal_name(each))
    )


_normal_attribute = lru_cache(maxsize=1024)(normal_name)
_as_json = json.JSONEncoder(ensure_ascii=False).encode


def _differ(row: str, other: str) -> bool:
    """Whether two rows give different values, and not two spellings of the same ones."""
    return _values(row) != _values(other)


def _values(row: str) -> set[tuple[object, str]]:
    values, unit, *_ = json.loads(row)
    read = ((value, read_quantity(value)) for value in values)
    return {(each.number, each.unit or read_unit(unit)) if each else (normal_name(value), "") for value, each in read}


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
