"""Finds what is formal in a text: blocks between fences that name its language, or the whole text. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

_CLOSING = re.compile(r"\s{0,3}```\s*")


class NotRead(Exception):
    """A text is not read as formal, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormalPart:
    """What is formal in a text. `has_words`: whether there is anything else. `is_fenced`: whether blocks say what it is."""

    commands: str
    has_words: bool
    is_fenced: bool


def opening(*languages: str) -> re.Pattern[str]:
    """A pattern for the first line of a block in one of the languages, which are patterns themselves."""
    return re.compile(rf"\s{{0,3}}```\s*(?:{'|'.join(languages)})\s*", re.IGNORECASE)


def formal_part(text: str, opens: re.Pattern[str], is_formal: Callable[[str], bool]) -> FormalPart | None:
    """What is formal in a text, None if nothing is. `is_formal`: whether a text without fences is, as a whole.

    Raises NotRead if a block does not end."""
    if "```" not in text:
        return FormalPart(commands=text, has_words=False, is_fenced=False) if is_formal(text) else None
    inside: list[str] = []
    outside: list[str] = []
    is_open = found = False
    for line in text.splitlines():
        if not is_open and opens.fullmatch(line):
            is_open = found = True
        elif is_open and _CLOSING.fullmatch(line):
            is_open = False
        else:
            (inside if is_open else outside).append(line)
    if is_open:
        raise NotRead("a formal block does not end")
    if not found:
        return None
    return FormalPart(commands="\n".join(inside), has_words=any(map(str.strip, outside)), is_fenced=True)
