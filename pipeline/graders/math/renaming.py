r"""Gives the arguments of two functions the same new names: f(x) = 2x and f(t) = 2t are one function. Pure, linear time.

The new names occur in neither text, so no other variable is captured: f(x) = x+t is not f(t) = t+t.
"""

import re
from collections.abc import Sequence

# Letters that no unit, constant or function has as its name.
_NEW_NAMES = "uvwzyxtkjqrabcnp"
_SYMBOL = re.compile(r"\\[A-Za-z]+|[A-Za-z]+")
_NEVER_RENAMED = frozenset(
    {
        "sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "exp", "arcsin", "arccos", "arctan", "min", "max", "mod", "gcd",
        "lcm", "det", "sqrt", "if", "or", "and", "for", "otherwise", "else", "when", "where", "is",
    }
)  # fmt: skip


def has_symbol(text: str, name: str) -> bool:
    """Whether a letter or a command is a symbol of a text, also as a subscript."""
    return any(name == symbol for _, symbol in _symbols(text))


def renamed(text: str, names: Sequence[str], other: str, other_names: Sequence[str]) -> tuple[str, str] | None:
    """Two texts in which the names of the first and the second list have become the same new names, one by one.

    None if too few letters are left for that.
    """
    written = "".join(word for side in (text, other) for word in _SYMBOL.findall(side) if word[0] != "\\")
    free = [letter for letter in _NEW_NAMES if letter not in written]
    if len(free) < len(names):
        return None
    one, two = (dict(zip(old, free, strict=False)) for old in (names, other_names))
    return _replaced(text, one), _replaced(other, two)


def _symbols(text: str) -> list[tuple[int, str]]:
    """The position and the name of each symbol: commands, and letters that belong to no known word and have no subscript."""
    found = []
    for match in _SYMBOL.finditer(text):
        run = match.group()
        if run[0] == "\\":
            found.append((match.start(), run))
        elif run not in _NEVER_RENAMED:
            found += [(match.start() + place, letter) for place, letter in enumerate(run)]
    # x_1 is another symbol than x.
    return [(at, symbol) for at, symbol in found if text[at + len(symbol) : at + len(symbol) + 1] != "_"]


def _replaced(text: str, names: dict[str, str]) -> str:
    pieces, start = [], 0
    for at, symbol in _symbols(text):
        if symbol in names:
            # \sin\theta becomes \sin u.
            gap = " " if symbol[0] == "\\" and text[at - 1 : at].isalpha() else ""
            pieces += [text[start:at], gap, names[symbol]]
            start = at + len(symbol)
    return "".join([*pieces, text[start:]])
