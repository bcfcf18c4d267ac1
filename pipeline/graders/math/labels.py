r"""Compares the names that equations give to their values: f(x), y, a_1, \alpha, AB. Pure.

Two names differ only if that is certain. An area and S may be the same thing, and so may y and f(x). The functions f and g
differ, and so do f and its inverse, f(2) and f(3), x and y, a_1 and a_2, P(A) and P(B).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LABEL = re.compile(
    r"(?P<base>\\?[A-Za-z]+)(?P<primes>'*)(?:_(?P<index>\w+))?'*(?P<inverse>\^-1)?(?:\((?P<arguments>[\w,]+)\))?"
)
_FIGURE = re.compile(r"(\\(?:angle|overline|vec|mathbf))([A-Za-z]+)")
# Letters that name functions even without an argument.
_FUNCTION_LETTERS = frozenset("fghFGH")

_GREEK = tuple(
    f"\\{name}"
    for name in (
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
        "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
    )
)  # fmt: skip
_UNKNOWNS = frozenset({"x", "y", "z", "t", "r", "u", "w", "\\lambda"})


@dataclass(frozen=True, slots=True)
class _Name:
    base: str
    index: str | None
    inverse: bool
    arguments: tuple[str, ...]

    @property
    def is_symbol(self) -> bool:
        """Whether the name is a letter or a command for one, not a word."""
        return len(self.base) == 1 or self.base.startswith("\\")


def plain_label(label: str) -> str:
    """A label without braces and spaces."""
    return label.replace("{", "").replace("}", "").replace(" ", "")


def differ(label: str, other: str) -> bool:
    """Whether two plain labels that are not equal certainly name different things."""
    both = label, other
    if len({name.count("'") for name in both}) > 1 or all(len(name) == 1 for name in both):
        return True
    if all(name.strip("|").isupper() for name in both):
        return True
    figures = [_FIGURE.fullmatch(name) for name in both]
    if figures[0] and figures[1]:
        return figures[0][1] == figures[1][1] and figures[0][2] != figures[1][2][::-1]
    one, two = _parsed(label), _parsed(other)
    return one is not None and two is not None and _names_differ(one, two)


def are_roots(label: str, other: str) -> bool:
    """Whether two plain labels are an unknown with an index, as the roots x_1 and x_2 of an equation are."""
    base, index, _ = label.partition("_")
    return bool(index) and base in _UNKNOWNS and other.startswith(f"{base}_")


def natural_order(labels: Sequence[str]) -> list[int] | None:
    """The positions of plain labels in alphabetical order: of letters of one case or of Greek letters, or by their indices.

    None if they have no such order, as words.
    """
    names = [_parsed(label) for label in labels]
    keys = [_key(name) for name in names if name is not None]
    if None in keys or len(keys) != len(labels) or len({key[0] for key in keys if key}) != 1:
        return None
    return sorted(range(len(labels)), key=lambda position: keys[position] or ("", 0, 0))


def _key(name: _Name) -> tuple[str, int, int] | None:
    """The alphabet of a letter, its place there, and its index."""
    if name.inverse or name.arguments or (name.index and not (name.index.isdecimal() and name.index.isascii())):
        return None
    index = int(name.index[:9]) if name.index else -1
    if len(name.base) == 1:
        return "A" if name.base.isupper() else "a", ord(name.base), index
    return ("greek", _GREEK.index(name.base), index) if name.base in _GREEK else None


def _parsed(label: str) -> _Name | None:
    match = _LABEL.fullmatch(label)
    if match is None:
        return None
    arguments = tuple((match["arguments"] or "").split(",")) if match["arguments"] else ()
    return _Name(match["base"], match["index"], bool(match["inverse"]), arguments)


def _names_differ(one: _Name, two: _Name) -> bool:
    if one.inverse != two.inverse:
        return True
    if bool(one.arguments) != bool(two.arguments):
        function, bare = (one, two) if one.arguments else (two, one)
        return bare.base in function.arguments or (bare.base in _FUNCTION_LETTERS and bare.base != function.base)
    if one.base != two.base:
        return bool(one.arguments) or (one.is_symbol and two.is_symbol)
    if one.index and two.index and one.index != two.index:
        return True
    return one.arguments != two.arguments and not _are_renamed(one.arguments, two.arguments)


def _are_renamed(arguments: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether two lists of arguments are variables of different names: f(x) and f(t), but not f(x,y) and f(y,x), nor P(A)."""
    named = all(len(name) == 1 and name.islower() for name in arguments + others)
    return named and len(arguments) == len(others) and not set(arguments) & set(others)
