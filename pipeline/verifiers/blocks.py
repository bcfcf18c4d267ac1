"""Finds fenced blocks of some languages in a text, and the words around them. Pure."""

import re
from collections.abc import Collection
from dataclasses import dataclass

_OPENING = re.compile(r"\s{0,3}```\s*([^\s`][^`]*?)\s*")
_CLOSING = re.compile(r"\s{0,3}```\s*")


class OpenBlockError(Exception):
    """A block of the language does not end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The texts of the blocks in their order, and everything else, with the fences of other blocks."""

    texts: tuple[str, ...]
    words: str

    @property
    def has_words(self) -> bool:
        """Whether there is anything but the blocks."""
        return bool(self.words.strip())


def blocks_in(text: str, languages: Collection[str]) -> Blocks | None:
    """The blocks whose fence names one of the languages (in lower case), None if there are none. Raises OpenBlockError."""
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
        raise OpenBlockError
    return Blocks(texts=tuple(map("\n".join, inside)), words="\n".join(outside)) if inside else None
