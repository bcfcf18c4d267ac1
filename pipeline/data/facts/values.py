"""Whether a value that a text states is the value that a fact table has."""

import re
from dataclasses import dataclass

from pipeline.data.facts.names import are_alike, normal_name
from pipeline.data.facts.quantities import (
    EXACT,
    Quantity,
    Tolerance,
    fit_of,
    read_quantity,
    read_tolerance,
    read_unit,
)
from pipeline.data.facts.table import Entry, Table
from pipeline.data.numbers import Fit

_NAME = re.compile(
    r"(?:[^\W\d_a-z]|\d)[^\s,;:=]*(?:[ -](?:(?:of|the|and|de|la|du|von|van|da|del|al)[ -])*(?:[^\W\d_a-z]|\d)[^\s,;:=]*){0,6}"
)
"""A proper name: its words begin with capital letters, but for small ones between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A value as a text states it. `loosely`: as an approximate one."""

    text: str
    loosely: bool = False


def fit_of_entry(stated: Stated, entry: Entry, table: Table, *, refute_new_names: bool = False) -> Fit:
    """How a stated value agrees with an entry. With several values, of which each is right, it is never apart.

    A name is apart only if the table has it as the value of the same attribute of another entity, or with `refute_new_names` if
    it is a proper name; and if it is not like the right one.
    """
    fits = {_fit(stated, value, entry, table, refute_new_names=refute_new_names) for value in entry.values}
    if Fit.EQUAL in fits:
        return Fit.EQUAL
    return Fit.APART if fits == {Fit.APART} and len(entry.values) == 1 else Fit.DOUBTFUL


def known_quantity(text: str, unit: str) -> Quantity | None:
    """The number of a cell, with the unit of its row."""
    quantity = read_quantity(text)
    if quantity is None or not unit:
        return quantity
    return Quantity(quantity.number, quantity.digit, read_unit(unit) if unit != "$" else unit)


def _fit(stated: Stated, value: str, entry: Entry, table: Table, *, refute_new_names: bool) -> Fit:
    known = known_quantity(value, entry.unit)
    claimed = read_quantity(stated.text)
    if known is not None:
        if claimed is None:
            return Fit.EQUAL if normal_name(stated.text) == normal_name(value) else Fit.DOUBTFUL
        tolerance = (read_tolerance(entry.tolerance) if entry.tolerance else None) or EXACT
        return fit_of(_of_attribute(claimed, entry), known, tolerance, loosely=stated.loosely)
    return _fit_of_names(stated, value, entry, table, refute_new_names=refute_new_names)


def _of_attribute(claimed: Quantity, entry: Entry) -> Quantity:
    """A number of days is without a unit where the attribute is one of days."""
    if claimed.unit and set(claimed.unit.split()) <= set(entry.key[1].split()) | set(normal_name(entry.unit).split()):
        return Quantity(claimed.number, claimed.digit, read_unit(entry.unit))
    return claimed


def _fit_of_names(stated: Stated, value: str, entry: Entry, table: Table, *, refute_new_names: bool) -> Fit:
    name, right = normal_name(stated.text), normal_name(value)
    if not name or not right:
        return Fit.DOUBTFUL
    if name == right or table.same_entity(name, right):
        return Fit.EQUAL
    if stated.loosely or (min(len(name), len(right)) > 3 and are_alike(name, right)):
        return Fit.DOUBTFUL
    if table.is_known_value(entry.key[1], name):
        return Fit.APART
    both_names = _NAME.fullmatch(stated.text) and _NAME.fullmatch(value)
    return Fit.APART if refute_new_names and both_names else Fit.DOUBTFUL


def equal_texts(answer: str, gold: str, tolerance: Tolerance) -> bool:
    """Whether an answer is the same number or name as a gold one. A unit that one of them leaves out is that of the other."""
    number, right = read_quantity(answer), read_quantity(gold)
    if number is None or right is None:
        name = normal_name(answer)
        return bool(name) and name == normal_name(gold)
    if not right.unit or not number.unit:
        number, right = Quantity(number.number, number.digit), Quantity(right.number, right.digit)
    return fit_of(number, right, tolerance) is Fit.EQUAL
