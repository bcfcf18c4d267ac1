"""A fact table that is open for look-ups: names of entities and attributes to what the table says of them.

A look-up takes some tens of microseconds and little memory, also in a table of millions of rows. Usable from any thread.
"""

import json
import sqlite3
import threading
from dataclasses import dataclass
from typing import Any

from pipeline.data.facts.index import index_of
from pipeline.data.facts.names import normal_name

_BUSY_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a table says for one key. `other`: what a row says that contradicts it, or None.

    `values`: one, or several of which each is right. `entity` and `attribute`: as the table writes them. `key`: their normal
    forms."""

    key: tuple[str, str]
    entity: str
    attribute: str
    values: tuple[str, ...]
    unit: str
    tolerance: str
    source: str
    other: "Entry | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is known of a table as a whole. `contradictions`: keys to which its rows give different values, with an example in
    words. `sha256`: of the file."""

    rows: int
    contradictions: int
    example: str
    sha256: str


class Table:
    """A fact table by the path or name that a setting gives it. Raises as `index_of` does."""

    def __init__(self, given: str, setting: str) -> None:
        self._base = sqlite3.connect(
            f"{index_of(given, setting).resolve().as_uri()}?mode=ro&immutable=1",
            uri=True,
            check_same_thread=False,
            timeout=_BUSY_SECONDS,
        )
        self._lock = threading.Lock()

    def contents(self) -> Contents:
        meta = dict(self._rows("SELECT name, value FROM meta"))
        example = ""
        if int(meta["contradictions"]):
            ((entity, attribute),) = self._rows("SELECT entity, attribute FROM facts WHERE other IS NOT NULL LIMIT 1")
            entry = self.entry(entity, attribute)
            assert entry is not None
            example = contradiction(entry)
        return Contents(
            rows=int(meta["rows"]),
            contradictions=int(meta["contradictions"]),
            example=example,
            sha256=meta["sha256"],
        )

    def attributes(self, name: str) -> list[str]:
        """The normal forms of the attributes that have this name or alias."""
        found = self._rows("SELECT attribute FROM attributes WHERE name = ?", normal_name(name))
        return [attribute for (attribute,) in found]

    def entities(self, name: str) -> list[str]:
        """The normal forms of the entities that have this name or alias, sorted. Several: the name is ambiguous."""
        normal = normal_name(name)
        own = self._rows("SELECT 1 FROM facts WHERE entity = ? LIMIT 1", normal)
        others = self._rows("SELECT entity FROM aliases WHERE name = ?", normal)
        return sorted({entity for (entity,) in others} | ({normal} if own else set()))

    def entry(self, entity: str, attribute: str) -> Entry | None:
        """What the table says of an attribute of an entity, both in their normal form."""
        found = self._rows("SELECT row, other FROM facts WHERE entity = ? AND attribute = ?", entity, attribute)
        if not found:
            return None
        row, other = found[0]
        key = (entity, attribute)
        return _entry(key, row, _entry(key, other) if other else None)

    def is_known_value(self, attribute: str, value: str) -> bool:
        """Whether a name, in its normal form, is the value of an attribute for any entity."""
        return bool(self._rows("SELECT 1 FROM known WHERE attribute = ? AND value = ?", attribute, value))

    def same_entity(self, one: str, other: str) -> bool:
        """Whether two names mean the same entity, and no other one."""
        found = self.entities(one)
        return len(found) == 1 and found == self.entities(other)

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def _rows(self, query: str, *bound: str) -> list[Any]:
        with self._lock:
            return self._base.execute(query, [_storable(text) for text in bound]).fetchall()


def contents_of(given: str, setting: str) -> Contents:
    """What is known of a table as a whole. Raises as `index_of` does."""
    table = Table(given, setting)
    try:
        return table.contents()
    finally:
        table.close()


def contradiction(entry: Entry) -> str:
    """In words, which values the table has for one key."""
    return f"{stated(entry)}, and also {_values(entry.other or entry)}"


def stated(entry: Entry) -> str:
    """In words, what a table says for one key: `Peru: capital is Lima`."""
    return f"{entry.entity}: {entry.attribute} is {_values(entry)}"


def _values(entry: Entry) -> str:
    return " or ".join(f"{value} {entry.unit}".rstrip() for value in entry.values)


def _storable(text: str) -> str:
    """A text as SQLite takes it: without halves of surrogate pairs."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _entry(key: tuple[str, str], row: str, other: Entry | None = None) -> Entry:
    values, unit, tolerance, source, entity, attribute = json.loads(row)
    return Entry(
        key=key,
        entity=entity,
        attribute=attribute,
        values=tuple(values),
        unit=unit,
        tolerance=tolerance,
        source=source,
        other=other,
    )
