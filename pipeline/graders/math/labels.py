r"""Compares the names that equations give to their values: f(x), y, a_1, \alpha, AB. Pure, linear time.

Two names differ only if that is certain. An area and S may be the same thing, and so may y and f(x). The functions f and g
differ, and so do f and its inverse, f(2) and f(3), x and y, a_1 and a_2, P(A) and P(B). Arguments of functions may get new
names: f(x) = 2x and f(t) = 2t are one function. The new names occur in neither text, so f(x) = x+t is not f(t) = t+t.
"x = 2 or x = 3" and "x = 2, 3" are two values of one unknown. "x = 2, y = 3" are values of two, and "x = 2 or y = 3" are two
statements of which one holds.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from pipeline.graders.math.forms import Form, FormKind, split_label
from pipeline.graders.math.reader import GREEK

_LABEL = re.compile(
    r"(?P<base>\\?[A-Za-z]+)(?P<primes>'*)(?:_(?P<index>\w+))?'*(?P<inverse>\^-1)?(?:\((?P<arguments>[\w,\\]+)\))?"
)
_FIGURE = re.compile(r"(\\(?:angle|overline|vec|mathbf))([A-Za-z]+)")
# Letters that name functions even without an argument.
_FUNCTION_LETTERS = frozenset("fghFGH")

# Words for different things. Other words may be two names of one thing, such as cost and price.
_QUANTITY_WORDS = (
    "length width height depth area perimeter volume radius diameter circumference sum product difference quotient remainder "
    "mean median mode variance speed time distance slope minimum maximum min max hypotenuse numerator denominator gcd lcm "
    "domain range"
)
_QUANTITIES = frozenset(_QUANTITY_WORDS.split())
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
    if all(name.strip("|").isupper() for name in both) or {name.lower() for name in both} <= _QUANTITIES:
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
    keys = [key for name in map(_parsed, labels) if name and (key := _key(name))]
    if len(keys) != len(labels) or len({alphabet for alphabet, _, _ in keys}) != 1:
        return None
    return sorted(range(len(labels)), key=keys.__getitem__)


def renamed_arguments(label: str, value: str, other: str, other_value: str) -> tuple[list[str], list[str]] | None:
    """The arguments of one function that have other names in two equations: f(x) = 2x, f(t) = 2t. None if there are none.

    The index of a sequence is one of them if it occurs in the value: a_n = 2n, a_k = 2k.
    """
    one, two = _parsed(label), _parsed(other)
    if one is None or two is None or (one.base, one.inverse) != (two.base, two.inverse):
        return None
    if one.base.startswith("\\") and one.base not in GREEK:
        # \sin is known, and \sin(x) = 1 says something of x.
        return None
    if label.count("'") != other.count("'") or len(one.arguments) != len(two.arguments):
        return None
    pairs = list(zip(one.arguments, two.arguments, strict=True))
    if any(a != b and not (_is_argument(a, value) and _is_argument(b, other_value)) for a, b in pairs):
        return None
    if one.index != two.index:
        places = (one.index or "", value), (two.index or "", other_value)
        if not all(len(name) == 1 and name.islower() and _has_symbol(text, name) for name, text in places):
            return None
        pairs.append((places[0][0], places[1][0]))
    names, other_names = ([pair[side] for pair in pairs] for side in (0, 1))
    distinct = len(set(names)) == len(set(other_names)) == len(names)
    return (names, other_names) if distinct and names != other_names else None


def _is_argument(name: str, value: str) -> bool:
    return name in _ARGUMENTS or (name not in _NUMBERS and _has_symbol(value, name))


def _key(name: _Name) -> tuple[str, int, int] | None:
    """The alphabet of a letter, its place there, and its index."""
    if name.inverse or name.arguments or (name.index and not (name.index.isdecimal() and name.index.isascii())):
        return None
    index = int(name.index[:9]) if name.index else -1
    if len(name.base) == 1:
        return "A" if name.base.isupper() else "a", ord(name.base), index
    return ("greek", GREEK.index(name.base), index) if name.base in GREEK else None


def _parsed(label: str) -> _Name | None:
    match = _LABEL.fullmatch(label)
    if match is None:
        return None
    arguments = tuple(match["arguments"].split(",")) if match["arguments"] else ()
    return _Name(match["base"], match["index"], bool(match["inverse"]), arguments)


def _names_differ(one: _Name, two: _Name) -> bool:
    if one.inverse != two.inverse:
        return True
    if bool(one.arguments) != bool(two.arguments):
        function, bare = (one, two) if one.arguments else (two, one)
        return bare.base in function.arguments or (bare.base in _FUNCTION_LETTERS and bare.base != function.base)
    if one.base == two.base:
        return (one.index, one.arguments) != (two.index, two.arguments)
    symbols = all(len(name.base) == 1 or name.base.startswith("\\") for name in (one, two))
    # xy = 6 is no value of x, nor of S.
    return bool(one.arguments) or symbols or _is_product(one.base) or _is_product(two.base)


def _is_product(name: str) -> bool:
    """Whether two or more small letters are a product, not a word: xy, abc, mnp, but not sum."""
    if len(name) < 2 or not (name.isascii() and name.isalpha() and name.islower()):
        return False
    consecutive = all(ord(after) == ord(before) + 1 for before, after in pairwise(name))
    return len(name) == 2 or consecutive or not _VOWELS & set(name)


# Letters that no unit, constant or function has as its name.
_NEW_NAMES = "uvwzyxtkjqrabcnp"
_SYMBOL = re.compile(r"\\[A-Za-z]+|[A-Za-z]+")
_FUNCTION_NAMES = "sin cos tan cot sec csc log exp and arcsin arccos arctan min max mod gcd lcm det sqrt"
FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_NEVER_RENAMED = FUNCTIONS | {"ln", "if", "or", "for", "otherwise", "else", "when", "where", "is"}


def _has_symbol(text: str, name: str) -> bool:
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


class Naming(Enum):
    """How the values of a list are named. STATEMENTS: not all items are values, as x < 3 and x + y = 5."""

    NONE = auto()
    ONE = auto()
    EACH = auto()
    PARTLY = auto()
    STATEMENTS = auto()


def labels_of(items: Sequence[Form]) -> list[str | None]:
    """The plain label of each item, or None where it has none."""
    return [plain_label(found[0]) if (found := split_label(item)) else None for item in items]


def naming_of(items: Sequence[Form]) -> Naming:
    """How items are named. x_1 = 2, x_2 = 3 are values of one unknown."""
    labels = labels_of(items)
    if any(label is None and item.kind is FormKind.RELATION for label, item in zip(labels, items, strict=True)):
        return Naming.STATEMENTS
    roots = [label.partition("_")[0] for label in labels if label]
    if not roots:
        return Naming.NONE
    if len(set(roots)) == 1 and len(roots) in (1, len(items)) and labels[0]:
        return Naming.ONE
    return Naming.EACH if len(set(roots)) == len(items) else Naming.PARTLY


def contradict(wanted: Form, given: Form) -> bool:
    """Whether two lists, sets or single values certainly differ because of the names of their values."""
    labels, others = labels_of(_items(wanted)), labels_of(_items(given))
    if any(label and label.startswith("(") for label in labels + others):
        # (x,y) = (2,3) names a pair.
        return False
    names = naming_of(_items(wanted)), naming_of(_items(given))
    functions = [{label for label in each if label and label.endswith(")")} for each in (labels, others)]
    if names == (Naming.STATEMENTS, Naming.STATEMENTS) and functions[0] != functions[1]:
        # A condition for x says nothing of f(t).
        return True
    if Naming.STATEMENTS in names or names == (Naming.NONE, Naming.NONE):
        return False
    if Naming.EACH in names and ("or" in wanted.marks) != ("or" in given.marks):
        return True
    if names[0] is names[1]:
        one, two = labels[0] or "", others[0] or ""
        return names[0] is Naming.ONE and one != two and "_" not in one + two and differ(one, two)
    if Naming.PARTLY in names:
        return True
    # Values of several unknowns are no set, and no values of one unknown.
    return Naming.EACH in names and (Naming.ONE in names or FormKind.SET in (wanted.kind, given.kind))


def _items(form: Form) -> Sequence[Form]:
    return form.items if form.kind in (FormKind.LIST, FormKind.SET) else (form,)
