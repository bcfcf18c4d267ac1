"""Shortens towers of powers in which a level is 0 or 1, such as 1^{9^{9^9}}, without evaluating them. Pure.

A tower is a whole number with a tower in braces or a single number as its exponent: a^{b^{c}}, a^{b^9}. A base of 0 or 1 may
have more levels without braces, because both readings of 1^9^9 are 1. 0^0 and towers with signs, letters or fractions stay.
"""

import re
from dataclasses import dataclass
from itertools import islice

MAX_LEVELS = 40
MAX_TOWERS = 200
MAX_BLANKS = 8

# After a digit, letter, point, comma, bracket or power sign, a number is a part of something else.
_BASE = re.compile(r"(?<![\w.,)\]}!'^])\d{1,40}(?=\s{0,2}(?:\^|\*\*))")
_NOT_BEFORE = re.compile(r"(?:[\w.,)\]}!'^]|\*\*|\A)\s+\Z|\*\*\Z")
_POWER = re.compile(r"\s{0,2}(?:\^|\*\*)\s{0,2}")
_NUMBER = re.compile(r"\d{1,40}(?!\d)")
_AFTER = re.compile(r"\s{0,2}(?:[\w.!^{(\\]|\*\*)")
_MANY = 2


@dataclass(frozen=True, slots=True)
class _Tower:
    """Where a tower ends, and its value: 0, 1, `_MANY` for more, None for 0^0. `short` is its text if it became shorter."""

    end: int
    value: int | None
    short: str | None = None


def shorten(text: str) -> str:
    """The text with each level of a tower that is 0 or 1 replaced by that number. Takes linear time."""
    pieces, start = [], 0
    for base in islice(_BASE.finditer(text), MAX_TOWERS):
        if base.start() < start or _NOT_BEFORE.search(text[max(0, base.start() - MAX_BLANKS) : base.start()]):
            continue
        tower = _tower(text, base.start(), 0)
        if tower is None or tower.short is None or _AFTER.match(text, tower.end):
            continue
        pieces += [text[start : base.start()], f"({tower.short})" if tower.value in (0, 1) else tower.short]
        start = tower.end
    return "".join([*pieces, text[start:]])


def _tower(text: str, at: int, level: int) -> _Tower | None:
    """The tower at a position, or None."""
    number = _NUMBER.match(text, at)
    if number is None or level > MAX_LEVELS:
        return None
    base, power = min(int(number.group()), _MANY), _POWER.match(text, number.end())
    if power is None:
        return _Tower(number.end(), base)
    above = _group(text, power.end(), level + 1) or _bare(text, power.end(), base)
    if above is None:
        return None
    value = _value(base, above.value)
    if value in (0, 1):
        return _Tower(above.end, value, str(value))
    return _Tower(above.end, value, None if above.short is None else f"{number.group()}^{{{above.short}}}")


def _value(base: int, top: int | None) -> int | None:
    if top is None or (base == 0 and top == 0):
        return None
    if base == 1 or top == 0:
        return 1
    return 0 if base == 0 else _MANY


def _group(text: str, at: int, level: int) -> _Tower | None:
    """The tower in braces at a position."""
    found = _tower(text, at + 1, level) if text[at : at + 1] == "{" else None
    return _Tower(found.end + 1, found.value, found.short) if found and text[found.end : found.end + 1] == "}" else None


def _bare(text: str, at: int, base: int) -> _Tower | None:
    """The number without braces at a position. After a base of 0 or 1, positive numbers may follow as more levels."""
    number = _NUMBER.match(text, at)
    if number is None:
        return None
    value = min(int(number.group()), _MANY)
    for _ in range(MAX_LEVELS):
        end = number.end()
        power = _POWER.match(text, end)
        if power is None:
            return _Tower(end, value)
        if len(number.group()) > 1 and number.group()[1] != "0":
            # LaTeX prints 1^99^9 as a product.
            return None
        number = _NUMBER.match(text, power.end())
        if number is None or base == _MANY or value == 0 or int(number.group()) == 0:
            return None
    return None
