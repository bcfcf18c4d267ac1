r"""Verdicts in `\boxed{...}`, found in what a model wrote. Pure, and linear in the length of the text.

Only complete boxes count, with braces inside them paired. What a box says is stripped of `\text{...}`, braces, `$`, stars and
blanks around it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BRACES = re.compile(r"\\f?boxed[ ]{0,4}\{|[{}]")
_MOST_CHARACTERS = 128
"""Longest content of a box that is a verdict. A longer one is no verdict."""
_WRAPPED = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|emph)[ ]{0,4}\{(.*)\}", re.DOTALL)
_BARE = re.compile(r"\{(.*)\}", re.DOTALL)
_MOST_LAYERS = 8
AROUND = " \t\r\n*_$.\"'"
"""Characters around a verdict that are no part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """`says`: its content, stripped. `begin`, `end`: the box in the text."""

    says: str
    begin: int
    end: int


def boxes(text: str) -> Iterator[Box]:
    """The complete boxes of a text, in the order in which they end. Of boxes within boxes, both are given."""
    opened: list[tuple[int, int] | None] = []
    """Of each open brace: begin of its box and of the content, or None if it is no box's."""
    for found in _BRACES.finditer(text):
        if found[0] != "}":
            opened.append((found.start(), found.end()) if len(found[0]) > 1 else None)
        elif opened and (box := opened.pop()) and found.start() - box[1] <= _MOST_CHARACTERS:
            yield Box(says=_stripped(text[box[1] : found.start()]), begin=box[0], end=found.end())


def _stripped(content: str) -> str:
    for _ in range(_MOST_LAYERS):
        content = content.strip(AROUND)
        inner = _WRAPPED.fullmatch(content) or _BARE.fullmatch(content)
        if inner is None:
            return content
        content = inner[1]
    return content
