"""Finds what is formal in a text: blocks whose fences name its language, or the whole text; and the words around. Pure."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

_OPENING = re.compile(r"\s{0,3}```\s*([^\s`][^`]*?)\s*")
_CLOSING = re.compile(r"\s{0,3}```\s*")


class NotRead(Exception):
    """A text is not read as formal, and why."""


def blocks_in(text: str, languages: Collection[str], whose: str = "") -> tuple[list[str], str] | None:
    """The blocks whose fence names one of the languages (in lower case), and everything else. None if there are no such blocks.

    `whose` begins a reason. Raises NotRead if a block does not end."""
    inside: list[list[str]] = []
    outside: list[str] = []
    is_open = False
    for line in text.splitlines():
        opening = None if is_open else _OPENING.fullmatch(line)
        if opening is not None and opening[1].lower() in languages:
            is_open = True
            inside.append([])
        elif is_open and _CLOSING.fullmatch(line):
            is_open = False
        else:
            (inside[-1] if is_open else outside).append(line)
    if is_open:
        raise NotRead(f"{whose}a formal block does not end")
    return (list(map("\n".join, inside)), "\n".join(outside)) if inside else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormalPart:
    """What is formal in a text. `has_words`: whether there is anything else. `is_fenced`: whether blocks say what it is."""

    commands: str
    has_words: bool
    is_fenced: bool


def has_words(part: FormalPart | None, text: str) -> bool:
    """Whether a text has anything but its formal part."""
    return bool(text.strip()) if part is None else part.has_words


def formal_part(
    text: str, languages: Collection[str], is_formal: Callable[[str], bool], whose: str = ""
) -> FormalPart | None:
    """What is formal in a text, None if nothing is. `languages`: names of fences, in lower case. `is_formal`: whether a text
    without fences is, as a whole. `whose`: "step 1: ", as a reason begins.

    Raises NotRead if a block does not end."""
    if "```" not in text:
        return FormalPart(commands=text, has_words=False, is_fenced=False) if is_formal(text) else None
    if (found := blocks_in(text, languages, whose)) is None:
        return None
    return FormalPart(commands="\n".join(found[0]), has_words=bool(found[1].strip()), is_fenced=True)
