"""A fact table that is open for look-ups, and whether a value that a text states is the one that it has.

A look-up takes some tens of microseconds and little memory, also in a table of millions of rows. Usable from any thread.
"""

import json
import re
import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from pipeline.data.facts.index import index_of
from pipeline.data.facts.names import are_alike, normal_name, storable
from pipeline.data.facts.quantities import EXACT, Tolerance, fit_of, read_quantity, read_tolerance, read_unit
from pipeline.data.numbers import Fit

_NAME = re.compile(
    r"(?:[^\W\d_a-z]|\d)[^\s,;:=]*(?:[ -](?:(?:of|the|and|de|la|du|von|van|da|del|al)[ -])*(?:[^\W\d_a-z]|\d)[^\s,;:=]*){0,6}"
)
"""A proper name: its words begin with capital letters, but for small ones between them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a table says for one key. `other`: what a row says that contradicts it, or None.

    `values`: one, or several of which each is right. `entity` and `attribute`: as the table writes them. `key`: their normal
    forms."""

    key: tuple[str, str]
    values: tuple[str, ...]
    unit: str
    tolerance: str
    source: str
    entity: str
    attribute: str
    other: "Entry | None" = None


@dataclass(frozen=True, slots=True)
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
        index = index_of(given, setting).resolve().as_uri()
        self._base = sqlite3.connect(f"{index}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        self._lock = threading.Lock()

    def attributes(self, name: str) -> list[str]:
        """The normal forms of the attributes that have this name or alias."""
        return [found for (found,) in self.rows("SELECT attribute FROM attributes WHERE name = ?", normal_name(name))]

    def entities(self, name: str) -> list[str]:
        """The normal forms of the entities that have this name or alias, sorted. Several: the name is ambiguous."""
        normal = normal_name(name)
        own = self.rows("SELECT 1 FROM facts WHERE entity = ? LIMIT 1", normal)
        others = self.rows("SELECT entity FROM aliases WHERE name = ?", normal)
        return sorted({entity for (entity,) in others} | ({normal} if own else set()))

    def entry(self, entity: str, attribute: str) -> Entry | None:
        """What the table says of an attribute of an entity, both in their normal form."""
        key = (entity, attribute)
        for row, other in self.rows("SELECT row, other FROM facts WHERE entity = ? AND attribute = ?", *key):
            return _entry(key, row, _entry(key, other) if other else None)
        return None

    def is_known_value(self, attribute: str, value: str) -> bool:
        """Whether a name, in its normal form, is the value of an attribute for any entity."""
        return bool(self.rows("SELECT 1 FROM known WHERE attribute = ? AND value = ?", attribute, value))

    def same_entity(self, one: str, other: str) -> bool:
        """Whether two names mean the same entity, and no other one."""
        found = self.entities(one)
        return len(found) == 1 and found == self.entities(other)

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def rows(self, query: str, *bound: str) -> list[Any]:
        """The answer to a query of the index."""
        with self._lock:
            return self._base.execute(query, [storable(text) for text in bound]).fetchall()


def contents_of(given: str, setting: str) -> Contents:
    """What is known of a table as a whole. Raises as `index_of` does."""
    with closing(Table(given, setting)) as table:
        meta = dict(table.rows("SELECT name, value FROM meta"))
        keys = table.rows("SELECT entity, attribute FROM facts WHERE other IS NOT NULL LIMIT 1")
        examples = [contradiction(entry) for key in keys if (entry := table.entry(*key))]
    return Contents(int(meta["rows"]), int(meta["contradictions"]), "".join(examples), meta["sha256"])


def contradiction(entry: Entry) -> str:
    """In words, which values the table has for one key."""
    return f"{stated(entry)}, and also {_values(entry.other or entry)}"


def stated(entry: Entry) -> str:
    """In words, what a table says for one key: `Peru: capital is Lima`."""
    return f"{entry.entity}: {entry.attribute} is {_values(entry)}"


def _values(entry: Entry) -> str:
    return " or ".join(f"{value} {entry.unit}".rstrip() for value in entry.values)


def _entry(key: tuple[str, str], row: str, other: Entry | None = None) -> Entry:
    values, unit, tolerance, source, entity, attribute = json.loads(row)
    return Entry(key, tuple(values), unit, tolerance, source, entity, attribute, other)


def fit_of_entry(stated: str, entry: Entry, table: Table, *, loosely: bool, refute_new_names: bool = False) -> Fit:
    """How a stated value agrees with an entry. With several values, of which each is right, it is never apart. `loosely`: it is
    stated as an approximate one.

    A name is apart only if the table has it as the value of the same attribute of another entity, or with `refute_new_names` if
    it is a proper name; and if it is not like the right one.
    """
    fits = set()
    for value in entry.values:
        known, claimed = read_quantity(value), read_quantity(stated)
        if known is None:
            fits.add(_fit_of_names(stated, value, entry, table, loosely=loosely, refute_new_names=refute_new_names))
        elif claimed is None:
            fits.add(Fit.EQUAL if normal_name(stated) == normal_name(value) else Fit.DOUBTFUL)
        else:
            tolerance = (read_tolerance(entry.tolerance) if entry.tolerance else None) or EXACT
            unit = entry.unit if entry.unit == "$" else read_unit(entry.unit)
            if set(claimed.unit.split()) <= {*entry.key[1].split(), *normal_name(entry.unit).split()}:
                # A number of days is without a unit where the attribute is one of days.
                claimed = replace(claimed, unit=claimed.unit and read_unit(entry.unit))
            known = replace(known, unit=unit or known.unit)
            fits.add(fit_of(claimed, known, tolerance, loosely=loosely))
    if Fit.EQUAL in fits:
        return Fit.EQUAL
    return Fit.APART if fits == {Fit.APART} and len(entry.values) == 1 else Fit.DOUBTFUL


def _fit_of_names(stated: str, value: str, entry: Entry, table: Table, *, loosely: bool, refute_new_names: bool) -> Fit:
    name, right = normal_name(stated), normal_name(value)
    if not name or not right:
        return Fit.DOUBTFUL
    if name == right or table.same_entity(name, right):
        return Fit.EQUAL
    if loosely or (min(len(name), len(right)) > 3 and are_alike(name, right)):
        return Fit.DOUBTFUL
    new_name = refute_new_names and _NAME.fullmatch(stated) and _NAME.fullmatch(value)
    return Fit.APART if new_name or table.is_known_value(entry.key[1], name) else Fit.DOUBTFUL


def equal_texts(answer: str, gold: str, tolerance: Tolerance) -> bool:
    """Whether an answer is the same number or name as a gold one. A unit that one of them leaves out is that of the other."""
    number, right = read_quantity(answer), read_quantity(gold)
    if number is None or right is None:
        name = normal_name(answer)
        return bool(name) and name == normal_name(gold)
    if not right.unit or not number.unit:
        number, right = replace(number, unit=""), replace(right, unit="")
    return fit_of(number, right, tolerance) is Fit.EQUAL
