"""Recognizes the choices of a question that a text repeats: A) 3 B) 4 C) 5. They state no answer. Pure, linear time."""

import re
from itertools import pairwise

MAX_CHOICES = 1_000
"""The last two choices are within this number of characters at the end of a text."""

_AT_BEGINNING = re.compile(r"[ \t*#>-]{0,8}\(?([A-J])[ *]{0,3}[).:]")
_INSIDE = re.compile(r"(?:(?<=[\s,;\d}$*])|^)(?:\(([A-J])\)|([A-J])[).:])")


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


def _follow(letters: list[str]) -> bool:
    """Whether each letter is the one after the letter before it."""
    return all(ord(after) == ord(before) + 1 for before, after in pairwise(letters))
