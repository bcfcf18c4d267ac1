"""Recognizes the choices of a question that a text repeats: A) 3 B) 4 C) 5. They state no answer. Pure, linear time."""

import re
from itertools import pairwise

_AT_BEGINNING = re.compile(r"[ \t*#>-]{0,8}\(?([A-J])[ *]{0,3}[).:]")
_INSIDE = re.compile(r"(?:^|[\s,;\d}$])[ *]{0,3}(?:\(([A-J])\)|([A-J])[).:])")


def has_more_choices(text: str) -> bool:
    """Whether the text of a choice goes on with another choice: in "(A) 3 (B) 4" the text after (A)."""
    return _INSIDE.search(text) is not None


def ends_with_choices(text: str) -> bool:
    """Whether the last line is the last of several choices, in one line or in a line each."""
    lines = [line for line in text[-4_000:].rstrip().split("\n") if line.strip()][-2:]
    if not lines:
        return False
    inside = [mark[1] or mark[2] for mark in _INSIDE.finditer(lines[-1])]
    if len(inside) > 1 and _follow(inside):
        return True
    firsts = [mark[1] for line in lines if (mark := _AT_BEGINNING.match(line))]
    return len(firsts) == 2 and _follow(firsts)


def _follow(letters: list[str]) -> bool:
    """Whether each letter is the one after the letter before it."""
    return all(ord(after) == ord(before) + 1 for before, after in pairwise(letters))
