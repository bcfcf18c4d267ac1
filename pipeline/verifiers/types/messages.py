"""Reads what mypy says, and decides which of its errors are a sure mistake and which may be legal Python. Pure.

Sure are errors about plain types of different kinds (a text where a number is expected), calls that a function of the program
does not take, attributes that a plain type or a module lacks, and names that nothing defines.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_LINE = re.compile(r"program\.py:(\d+): (error|note): (.*?)(?:  \[([\w-]+)\])?")
SURE_CODES = frozenset(
    {
        "arg-type",
        "return-value",
        "list-item",
        "assignment",
        "operator",
        "index",
        "attr-defined",
        "call-arg",
        "name-defined",
    }
)
"""Errors of these codes may be a sure mistake, and may lead to others."""
_ITEM = re.compile(r'No overload variant of "__getitem__" of "(\w+)" matches argument type "(\w+)"')
_QUOTED = re.compile(r'"([^"]*)"')
_NUMBERS = frozenset({"bool", "int", "float", "complex"})
_HOLDERS = frozenset({"list", "dict", "set", "frozenset", "tuple", "str", "bytes"})
PLAIN = _NUMBERS | _HOLDERS
_NEEDS_ITEMS = frozenset({"Sized", "Iterable", "Sequence", "Collection", "Container", "Mapping", "Reversible"})
_POSITIONS = frozenset({"list", "tuple", "str", "bytes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeMistake:
    """An error of mypy in a line of the program. `notes`: what mypy adds on the same line."""

    line: int
    text: str
    code: str
    notes: list[str] = field(default_factory=list)


class UnreadableMessage(Exception):
    """Mypy has said something that is no error or note about the program."""


def mistakes_in(messages: Sequence[str]) -> list[TypeMistake]:
    """The errors, in order. Raises UnreadableMessage."""
    found: list[TypeMistake] = []
    for message in messages:
        match = _LINE.fullmatch(message)
        if match is None:
            raise UnreadableMessage(message)
        line, kind, text, code = int(match[1]), match[2], match[3], match[4] or ""
        if kind == "error":
            found.append(TypeMistake(line=line, text=text, code=code))
        elif found and found[-1].line == line:
            found[-1].notes.append(text)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LineContext:
    """What stands in the line of an error. `functions`: of the program, not decorated and defined once."""

    in_function: bool
    annotates: bool
    functions: frozenset[str]


def is_sure(mistake: TypeMistake, place: LineContext) -> bool:
    """Whether an error is a mistake in any case."""
    if any("operand is of type" in note and "|" in note for note in mistake.notes):
        return False
    quoted = _QUOTED.findall(mistake.text)
    match mistake.code:
        case "arg-type" | "return-value" | "list-item":
            return _are_apart(*_found_and_wanted(mistake.text))
        case "assignment":
            return place.annotates and _are_apart(*_found_and_wanted(mistake.text))
        case "operator":
            return mistake.text.startswith("Unsupported operand types") and _are_apart(*_last_two(mistake.text))
        case "call-overload":
            match = _ITEM.fullmatch(mistake.text)
            return match is not None and match[1] in _POSITIONS and match[2] in {"float", *_POSITIONS}
        case "index":
            return _is_wrong_index(mistake.text, quoted)
        case "attr-defined":
            return mistake.text.startswith("Module has no attribute") or (
                re.match(r'"[^"]+" has no attribute "', mistake.text) is not None and _head(quoted[0]) in PLAIN
            )
        case "call-arg":
            return bool(set(quoted) & place.functions) and " of " not in mistake.text
        case "name-defined":
            return not place.in_function and re.fullmatch(r'Name "\w+" is not defined', mistake.text) is not None
    return False


def undefined_name(mistake: TypeMistake) -> str:
    """The name that an error says is not defined. Empty: it says something else."""
    match = re.match(r'Name "(\w+)" is not defined', mistake.text)
    return match[1] if match else ""


def _found_and_wanted(text: str) -> tuple[str, str]:
    for pattern in (
        r'has incompatible type "([^"]*)"; expected "([^"]*)"',
        r'\(got "([^"]*)", expected "([^"]*)"\)',
        r'\(expression has type "([^"]*)", variable has type "([^"]*)"\)',
    ):
        if match := re.search(pattern, text):
            return match[1], match[2]
    return "", ""


def _last_two(text: str) -> tuple[str, str]:
    match = re.search(r'\("([^"]*)" and "([^"]*)"\)$', text)
    return (match[1], match[2]) if match else ("", "")


def _are_apart(found: str, wanted: str) -> bool:
    """Whether two types are plain, of different kinds, and not both numbers."""
    kinds = _head(found), _head(wanted)
    if kinds[1] in _NEEDS_ITEMS:
        return kinds[0] in _NUMBERS
    return kinds[0] != kinds[1] and all(kind in PLAIN for kind in kinds) and not all(kind in _NUMBERS for kind in kinds)


def _is_wrong_index(text: str, quoted: list[str]) -> bool:
    heads = [_head(each) for each in quoted]
    if text.endswith("is not indexable"):
        return len(heads) == 1 and heads[0] in _NUMBERS
    return text.startswith("Invalid index type") and len(heads) >= 2 and heads[0] in _HOLDERS and heads[1] in _POSITIONS


def _head(name: str) -> str:
    """The kind of a type: `list` of `list[int]`. Empty where it is several types at once."""
    return "" if "|" in name or "Optional" in name else name.rstrip("?").partition("[")[0].removeprefix("builtins.")
