r"""Parses the structure of an answer: an expression, list, tuple or interval, set, union, matrix or relation. Pure.

Brackets keep their meaning: `(1,2)` is a pair or an open interval, `[1,2]` is a closed interval, `\{1,2\}` is a set, and `1,2`
and "1 and 2" are values in any order. `a \pm b` is the list of both values. Compared with an interval, `x < 3` is (-\infty,3).
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from itertools import pairwise

from pipeline.graders.math.exact import exact_value
from pipeline.graders.math.limits import MAX_CELLS, MAX_ITEMS


class FormKind(Enum):
    """The structure of an answer."""

    EXPRESSION = auto()
    LIST = auto()
    TUPLE = auto()
    SET = auto()
    UNION = auto()
    MATRIX = auto()
    RELATION = auto()


@dataclass(frozen=True, slots=True)
class Form:
    """A text and its parts. `marks`: brackets of a tuple, operators of a relation, the number of columns of a matrix,
    or "or" for a list of alternatives.
    """

    kind: FormKind
    text: str
    items: tuple["Form", ...] = ()
    marks: tuple[str, ...] = ()


_MARK = re.compile(
    r"\\begin\{[a-z]*\}(?:\{[clr|]*\})?|\\end\{[a-z]*\}|\\[{}]|\\(?:le|ge|ne|approx|cup|in|equiv|mid|setminus|cap|pm|mp)(?![A-Za-z])"
    r"|\\\\|\\.[A-Za-z]*|[{}()\[\],;=<>&]|<=|>=|(?<![A-Za-z])(?:and|or)(?![A-Za-z])"
)
_OPENERS = frozenset({"(", "[", "{", "\\{"})
_CLOSERS = frozenset({")", "]", "}", "\\}"})
_COMMAS = frozenset({",", ";", "and", "or"})
_RELATIONS = frozenset({"=", "<", ">", "\\le", "\\ge", "\\ne", "\\approx"})
_THOUSANDS = re.compile(r"(?<![\d,.])(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d{2})+,\d{3})(?![\d,])")
_MATRIX = re.compile(
    r"(?:\[|\()?\\begin\{(p|b|B|small|array|)(?:matrix)?\}(?:\{[clr|]*\})?(.*)\\end\{\1(?:matrix)?\}(?:\]|\))?",
    re.DOTALL,
)
_NAME = r"(?:\\[A-Za-z]+ ?)?[A-Za-z][A-Za-z' ]*(?:_(?:\w|\{\w+\}))?'*"
_LABEL = re.compile(
    rf"(?:{_NAME}|\\(?:theta|alpha|beta|gamma|lambda|mu|phi|omega|delta)(?:_(?:\w|\{{\w+\}}))?)"
    rf"(?:\^\{{-1\}})?(?:\((?:\\[a-z]+(?![a-z])|[A-Za-z0-9,])+\))?|\|[A-Z]{{2}}\||{_NAME}(?::{_NAME}){{1,5}}|\({_NAME}(?:,{_NAME})+\)"
    r"|\\(?:overline|angle|vec|mathbf) ?\{?[A-Za-z]+\}?"
)
_NOT_NAMES = frozenset({"and", "or"})
_MEMBER = re.compile(r"^(?:[A-Za-z]|\\[a-z]+)\\in ?(?![a-z])")
_BUILDER = re.compile(r"\\\{(?:[A-Za-z] ?(?:\\in ?\\mathbb ?\{?R\}?)?) ?(?:\\mid|\||:)(.*)\\\}")
_SYSTEM = re.compile(r"(?:\\\{)?\\begin\{(cases|aligned|array)\}(?:\{[clr|]*\})?(.*)\\end\{\1\}\.?", re.DOTALL)
_REALS = re.compile(
    r"(?:\\mathbb ?\{?R\}?|(?:the set of )?all real(?: number)?s(?: x)?|any real number|all reals?)", re.I
)
_REALS_WITHOUT = re.compile(
    r"(?:\\mathbb ?\{?R\}?|\\?R(?=\\)) ?(?:\\setminus|-) ?([\[(].*[\])]|\\\{.*\\\}|(?P<braced>\{[^{}]*\}))"
)
_PAIRS = {("(", ")"), ("[", "]")}
# The operators for exchanged sides.
FLIPPED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le", "=": "=", "\\ne": "\\ne"}


@lru_cache(maxsize=4096)
def read_form(normal: str, *, thousands: bool = True) -> Form:
    """The structure of a normal form. A text without a known structure is an EXPRESSION.

    With `thousands`, 1,234 is read as one number, otherwise as two.
    """
    text = _MEMBER.sub("", normal, count=1) if "\\in" in normal else normal
    if _REALS.fullmatch(text):
        return _interval("(", "-\\infty", "\\infty", ")")
    without = _REALS_WITHOUT.fullmatch(text)
    removed = without and (f"\\{without[1][:-1]}\\}}" if without["braced"] else without[1])
    if removed and (rest := _reals_without(read_form(removed, thousands=thousands))):
        return rest
    builder = _BUILDER.fullmatch(text)
    if builder:
        return read_form(builder.group(1), thousands=thousands)
    system = _SYSTEM.fullmatch(text)
    if system and "=" in system.group(2) and "\\begin" not in system.group(2):
        lines = [line.strip(" ,&") for line in system.group(2).replace("&", "").split("\\\\")]
        return _list(text, [line for line in lines if line], thousands)
    matrix = _MATRIX.fullmatch(text)
    if matrix and "\\begin" not in matrix.group(2):
        return _matrix(text, matrix.group(2))
    marks = _top_level(text)
    if marks is None:
        return Form(FormKind.EXPRESSION, text)
    parts = _split(text, marks, _COMMAS, thousands)
    if len(parts) > 1:
        return _list(text, parts, thousands)
    operators = [mark for _, mark in marks if mark in _RELATIONS]
    if operators:
        sides = _split(text, marks, _RELATIONS, thousands, keep_empty=True)
        return _relation(text, sides, operators)
    parts = _split(text, marks, frozenset({"\\cup"}), thousands)
    if len(parts) > 1:
        return Form(FormKind.UNION, text, tuple(read_form(part, thousands=thousands) for part in parts))
    bracketed = _bracketed(text, marks, thousands)
    if bracketed:
        return bracketed
    if "\\pm" in text or "\\mp" in text:
        both = (text.replace("\\pm", "+").replace("\\mp", "-"), text.replace("\\pm", "-").replace("\\mp", "+"))
        return Form(FormKind.LIST, text, tuple(Form(FormKind.EXPRESSION, one) for one in both), ("or",))
    return Form(FormKind.EXPRESSION, text)


def is_label(text: str) -> bool:
    """Whether the left side of an equation only names its right side: x, f(x), AB, (x,y), Area."""
    return bool(_LABEL.fullmatch(text.replace(", ", ","))) and text not in _NOT_NAMES


def split_label(form: Form) -> tuple[str, str] | None:
    """The label and value of `x = 5` or `x = 2+3 = 5` (the last side is the value). None for other forms."""
    if form.kind is not FormKind.RELATION or set(form.marks) != {"="}:
        return None
    sides = [item.text for item in form.items]
    if is_label(sides[0]):
        return sides[0], sides[-1]
    return (sides[1], sides[0]) if len(sides) == 2 and is_label(sides[1]) else None


def interval_of(form: Form) -> Form | None:
    """The interval of `x < 3` or `1 <= x < 2`, or the union of two intervals of `x \\ne 3`. None for other forms."""
    if form.kind is not FormKind.RELATION or not set(form.marks) <= {"<", ">", "\\le", "\\ge", "\\ne"}:
        return None
    sides, marks = [item.text for item in form.items], form.marks
    if marks == ("\\ne",):
        removed = Form(FormKind.SET, "", (Form(FormKind.EXPRESSION, sides[1]),))
        return _reals_without(removed) if is_label(sides[0]) else None
    if set(marks) <= {">", "\\ge"}:
        sides, marks = sides[::-1], tuple(FLIPPED[mark] for mark in reversed(marks))
    if len(sides) == 2 and is_label(sides[0]) != is_label(sides[1]):
        if is_label(sides[0]):
            sides, marks = ["-\\infty", *sides], ("<", *marks)
        else:
            sides, marks = [*sides, "\\infty"], (*marks, "<")
    if len(sides) != 3 or not is_label(sides[1]) or not set(marks) <= {"<", "\\le"}:
        return None
    return _interval("(" if marks[0] == "<" else "[", sides[0], sides[2], ")" if marks[1] == "<" else "]")


def _interval(opener: str, low: str, high: str, closer: str) -> Form:
    ends = (Form(FormKind.EXPRESSION, low), Form(FormKind.EXPRESSION, high))
    return Form(FormKind.TUPLE, f"{opener}{low},{high}{closer}", ends, (opener, closer))


def _reals_without(removed: Form) -> Form | None:
    """The real numbers outside of an interval, or without the points of a set."""
    if removed.kind is FormKind.TUPLE and len(removed.items) == 2:
        (low, high), (opener, closer) = removed.items, removed.marks
        below = _interval("(", "-\\infty", low.text, ")" if opener == "[" else "]")
        pieces: tuple[Form, ...] = below, _interval("(" if closer == "]" else "[", high.text, "\\infty", ")")
    elif removed.kind is FormKind.SET:
        values = {item.text: exact_value(item.text) for item in removed.items}
        if len(values) > 1 and None in values.values():
            return None
        points = sorted(values, key=lambda point: number.value if (number := values[point]) else 0)
        pieces = tuple(_interval("(", *ends, ")") for ends in pairwise(["-\\infty", *points, "\\infty"]))
    else:
        return None
    return Form(FormKind.UNION, "\\cup".join(piece.text for piece in pieces), pieces)


def _top_level(text: str) -> list[tuple[int, str]] | None:
    """Position and text of every mark outside brackets and of the outermost brackets. None if brackets do not match."""
    found, depth = [], 0
    for match in _MARK.finditer(text):
        mark = match.group()
        depth -= mark in _CLOSERS or mark.startswith("\\end")
        if depth < 0:
            return None
        if depth == 0:
            found.append((match.start(), mark))
        depth += mark in _OPENERS or mark.startswith("\\begin")
    return found if depth == 0 else None


def _split(
    text: str, marks: list[tuple[int, str]], separators: frozenset[str], thousands: bool, *, keep_empty: bool = False
) -> list[str]:
    whole = [match.span() for match in _THOUSANDS.finditer(text)] if thousands and "," in separators else []
    parts, start = [], 0
    for position, mark in marks:
        if mark in separators and not any(low < position < high for low, high in whole):
            parts.append(text[start:position].strip())
            start = position + len(mark)
    parts.append(text[start:].strip())
    return parts if keep_empty else [part for part in parts if part]


def _list(text: str, parts: list[str], thousands: bool) -> Form:
    if len(parts) > MAX_ITEMS:
        return Form(FormKind.EXPRESSION, text)
    items: list[Form] = []
    for part in parts:
        form = read_form(part, thousands=thousands)
        # "\\pm 1, \\pm 2" is one list of four values.
        items += form.items if form.kind is FormKind.LIST else (form,)
    words = re.findall("[a-z]+", text)
    intervals = [interval for item in items if (interval := _as_interval(item))]
    # x<2 or y>5 is no set of numbers.
    bounded = {
        next((side.text for side in item.items if is_label(side.text)), None)
        for item in items
        if item.kind is FormKind.RELATION
    }
    if len(intervals) == len(items) > 1 and len(bounded - {None}) <= 1:
        if len(items) == 2 and "and" in words:
            return _intersection(text, intervals)
        if "or" in words:
            return Form(FormKind.UNION, text, tuple(intervals))
    return Form(FormKind.LIST, text, tuple(items), ("or",) if "or" in words else ())


def _intersection(text: str, intervals: list[Form]) -> Form:
    """The intersection (1,5) of x>1 and x<5: one interval has no upper end, and the other has no lower end."""
    for low, high in (intervals, intervals[::-1]):
        pairs = low.kind is high.kind is FormKind.TUPLE and len(low.items) == len(high.items) == 2
        if pairs and low.items[1].text == "\\infty" and high.items[0].text == "-\\infty":
            return Form(FormKind.TUPLE, text, (low.items[0], high.items[1]), (low.marks[0], high.marks[1]))
    return Form(FormKind.EXPRESSION, text)


def _as_interval(form: Form) -> Form | None:
    """The interval that a relation, or a pair in brackets, certainly is."""
    pair = form.kind is FormKind.TUPLE and len(form.items) == 2
    return form if pair and (form.marks not in _PAIRS or "\\infty" in form.text) else interval_of(form)


def _relation(text: str, sides: list[str], operators: list[str]) -> Form:
    if "" in sides:
        return Form(FormKind.EXPRESSION, text)
    if "\\approx" in operators:
        cut = operators.index("\\approx")
        named = cut == 0 and is_label(sides[0])
        sides, operators = (sides[:2], ["="]) if named else (sides[: cut + 1], operators[:cut])
        if not operators:
            return read_form(sides[0])
    return Form(FormKind.RELATION, text, tuple(Form(FormKind.EXPRESSION, side) for side in sides), tuple(operators))


def _bracketed(text: str, marks: list[tuple[int, str]], thousands: bool) -> Form | None:
    """The tuple, interval or set that a text in one pair of brackets denotes, or None."""
    brackets = [(position, mark) for position, mark in marks if mark in _OPENERS | _CLOSERS]
    if len(brackets) != 2 or brackets[0][0] != 0 or brackets[1][0] + len(brackets[1][1]) != len(text):
        return None
    (_, opener), (end, closer) = brackets
    is_set = (opener, closer) == ("\\{", "\\}")
    if not is_set and {"{", "\\{", "\\}"} & {opener, closer}:
        return None
    items = _items(text[len(opener) : end].strip(), thousands)
    if is_set:
        return Form(FormKind.SET, text, items)
    # Brackets around one item have no meaning: (9+1), [53].
    return Form(FormKind.TUPLE, text, items, (opener, closer)) if len(items) > 1 else items[0] if items else None


def _items(inside: str, thousands: bool) -> tuple[Form, ...]:
    marks = _top_level(inside)
    separators = frozenset({",", ";"})
    parts = _split(inside, marks, separators, thousands) if marks is not None else [inside]
    if len(parts) == 1 and marks:
        # (2,102) is a pair, because nobody puts one number into brackets.
        parts = _split(inside, marks, separators, False)
    return tuple(read_form(part, thousands=thousands) for part in parts[: MAX_ITEMS + 1] if part)


def _matrix(text: str, body: str) -> Form:
    rows = [[cell.strip() for cell in row.split("&")] for row in body.split("\\\\") if row.strip()]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or len(rows) * max(widths) > MAX_CELLS:
        return Form(FormKind.EXPRESSION, text)
    cells = tuple(Form(FormKind.EXPRESSION, cell) for row in rows for cell in row)
    return Form(FormKind.MATRIX, text, cells, (str(widths.pop()),))
