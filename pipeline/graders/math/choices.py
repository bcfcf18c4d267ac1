"""Recognizes enumerations at the end of a text: the choices of a question, or the parts of an answer. Pure, linear time.

A) 3 B) 4 C) 5 are choices, and state no answer. a) 3 b) 4 c) 5 and (1) 3 (2) 4 (3) 5 may be either. As a whole they are the
answer to a question with parts, and none of them alone is an answer.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

_ALPHABETS = (tuple("abcdefgh"), ("i", "ii", "iii", "iv", "v", "vi"), tuple("12345678"))


def are_consecutive(labels: Sequence[str]) -> bool:
    """Whether labels are the first ones of an alphabet, in order."""
    return any(tuple(labels) == alphabet[: len(labels)] for alphabet in _ALPHABETS)


MAX_CHOICES = 1_000
"""The last two choices are within this number of characters at the end of a text."""

_AT_BEGINNING = re.compile(r"[ \t*#>-]{0,8}\(?([A-J])[ *]{0,3}[).:]")
_INSIDE = re.compile(r"(?:(?<=[\s,;\d}$*])|^)(?:\(([A-J])\)|([A-J])[).:])")


_LABEL = r"(?:\((?P<in>[a-h]|[1-9]|i{1,3}|iv|vi?)\)|(?P<letter>[a-h]|i{1,3}|iv|vi?)[).:]|(?P<digit>[1-9])\))[ *]{1,3}"
_PART_INSIDE = re.compile(rf"(?:^|(?<=[\s,;:*])){_LABEL}(?=\S)")
_PART_LINE = re.compile(rf"[ \t*#>-]{{0,8}}(?:{_LABEL}|(?P<point>[1-9])[.:][ *]{{1,3}})(?=\S)(?P<item>.*)")
# Every part has one of these. They are quicker to look for.
_ENDS_OF_LABELS = (") ", ". ", ": ", ")*", ".*", ":*")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_VALUE = re.compile(r"[-+$\\(\[{|.\d∞π√]|[A-Za-z]\w? ?[=<>]|[A-Za-z]\b|(?:[Tt]rue|[Ff]alse|[Yy]es|[Nn]o|[Nn]one)\b")
MAX_ITEM = 60
MAX_ITEM_WORDS = 2


def has_more_choices(text: str) -> bool:
    """Whether the text of a choice goes on with another choice: in "(A) 3 (B) 4" the text after (A)."""
    return _INSIDE.search(text) is not None


def ends_with_choices(text: str) -> bool:
    """Whether the last line is the last of several choices, in one line or in a line each."""
    above, _, last = text[-MAX_CHOICES:].rstrip().rpartition("\n")
    inside = [mark[1] or mark[2] for mark in _INSIDE.finditer(last)]
    if len(inside) > 1 and _follow(inside):
        return True
    first = _AT_BEGINNING.match(last)
    before = _AT_BEGINNING.match(above.rstrip().rpartition("\n")[2]) if first else None
    return first is not None and before is not None and _follow([before[1], first[1]])


def parts_at_end(text: str) -> str | None:
    """The parts that the last line or the last lines enumerate, as "(a) 3, (b) 4". None for a text that ends otherwise.

    Steps of a solution are no parts: a part has at most two words, and a numbered line no equation.
    """
    tail = text[-MAX_CHOICES:].rstrip()
    last = tail[tail.rfind("\n") + 1 :]
    if not any(end in last for end in _ENDS_OF_LABELS):
        return None
    marks = list(_PART_INSIDE.finditer(last))
    if len(marks) > 1:
        ends = [*(mark.start() for mark in marks[1:]), len(last)]
        items = [last[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]
        return _joined([_label(mark) for mark in marks], items)
    labels, items = list[str](), list[str]()
    for line in reversed(tail.split("\n")):
        found = _PART_LINE.fullmatch(line)
        if found is None:
            if line.strip():
                break
            continue
        label = _label(found)
        if label.isdigit() and "=" in found["item"]:
            return None
        labels.insert(0, label)
        items.insert(0, found["item"])
    return _joined(labels, items)


def _label(mark: re.Match[str]) -> str:
    return next(label for name, label in mark.groupdict().items() if label and name != "item")


def _joined(labels: Sequence[str], items: Sequence[str]) -> str | None:
    contents = [item.strip(" \t,;.*") for item in items]
    if len(labels) < 2 or not are_consecutive(labels) or not all(map(_is_short, contents)):
        return None
    return ", ".join(f"({label}) {content}" for label, content in zip(labels, contents, strict=True))


def _is_short(item: str) -> bool:
    """Whether an item is a value with at most a unit or two, not the words between "From (1) and (2) we get"."""
    words = len(_WORD.findall(item)) if 0 < len(item) <= MAX_ITEM else MAX_ITEM
    return words <= MAX_ITEM_WORDS and _VALUE.match(item) is not None


def _follow(letters: list[str]) -> bool:
    """Whether each letter is the one after the letter before it."""
    return all(ord(after) == ord(before) + 1 for before, after in pairwise(letters))
