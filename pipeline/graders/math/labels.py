r"""Compares the names that equations give to their values: f(x), y, a_1, \alpha, AB. Pure.

Two names differ only if that is certain. An area and S may be the same thing, and so may y and f(x). The functions f and g
differ, and so do f and its inverse, f(2) and f(3), x and y, a_1 and a_2, P(A) and P(B).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.graders.math.renaming import has_symbol

_LABEL = re.compile(
    r"(?P<base>\\?[A-Za-z]+)(?P<primes>'*)(?:_(?P<index>\w+))?'*(?P<inverse>\^-1)?(?:\((?P<arguments>[\w,\\]+)\))?"
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
# Words for different things. Other words may be two names of one thing, such as cost and price.
_QUANTITIES = frozenset(
    {
        "length", "width", "height", "depth", "area", "perimeter", "volume", "radius", "diameter", "circumference", "sum",
        "product", "difference", "quotient", "remainder", "mean", "median", "mode", "variance", "speed", "time", "distance",
        "slope", "minimum", "maximum", "min", "max", "hypotenuse", "numerator", "denominator", "gcd", "lcm", "domain", "range",
    }
)  # fmt: skip
_VOWELS = frozenset("aeiou")
# Names of arguments of a function that is constant. f(a) = 5 and f(b) = 5 are values at two points.
_ARGUMENTS = frozenset("rstuvwxyz")
_NUMBERS = frozenset({"e", "i"})
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


def spaced_product(side: str) -> str:
    """The side xyz of an equation as x y z, if it is a product of letters. Other texts as they are."""
    return " ".join(side) if _is_product(side) else side


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
    if {name.lower() for name in both} <= _QUANTITIES:
        return True
    if all(name.startswith("(") for name in both):
        # (a,b) = (2,3) says nothing of (x,y).
        return len({frozenset(name[1:-1].split(",")) for name in both}) > 1
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


def renamed_arguments(label: str, value: str, other: str, other_value: str) -> tuple[list[str], list[str]] | None:
    """The arguments of one function that have other names in two equations: f(x) = 2x, f(t) = 2t. None if there are none.

    The index of a sequence is one of them if it occurs in the value: a_n = 2n, a_k = 2k.
    """
    one, two = _parsed(label), _parsed(other)
    if one is None or two is None or (one.base, one.inverse) != (two.base, two.inverse):
        return None
    if one.base.startswith("\\") and one.base not in _GREEK:
        # \sin is known, and \sin(x) = 1 says something of x.
        return None
    if label.count("'") != other.count("'") or len(one.arguments) != len(two.arguments):
        return None
    pairs = list(zip(one.arguments, two.arguments, strict=True))
    if any(a != b and not (_is_argument(a, value) and _is_argument(b, other_value)) for a, b in pairs):
        return None
    if one.index != two.index:
        if not (one.index and two.index and _is_index(one.index, value) and _is_index(two.index, other_value)):
            return None
        pairs.append((one.index, two.index))
    names, other_names = ([pair[side] for pair in pairs] for side in (0, 1))
    distinct = len(set(names)) == len(set(other_names)) == len(names)
    return (names, other_names) if distinct and names != other_names else None


def _is_argument(name: str, value: str) -> bool:
    return name in _ARGUMENTS or (name not in _NUMBERS and has_symbol(value, name))


def _is_index(name: str, value: str) -> bool:
    return len(name) == 1 and name.islower() and has_symbol(value, name)


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
    if one.base != two.base and (_is_product(one.base) or _is_product(two.base)):
        # xy = 6 is no value of x, nor of S.
        return True
    if one.base != two.base:
        return bool(one.arguments) or (one.is_symbol and two.is_symbol)
    if one.index != two.index:
        return True
    return one.arguments != two.arguments


def _is_product(name: str) -> bool:
    """Whether two or more small letters are a product, not a word: xy, abc, mnp, but not sum."""
    if len(name) < 2 or not (name.isascii() and name.isalpha() and name.islower()):
        return False
    consecutive = all(ord(after) == ord(before) + 1 for before, after in pairwise(name))
    return len(name) == 2 or consecutive or not _VOWELS & set(name)
