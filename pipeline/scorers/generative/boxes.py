r"""Verdicts in `\boxed{...}`, found in what a model wrote. Pure, and linear in the length of the text.

Only complete boxes count, with braces inside them paired. What a box says is stripped of `\text{...}`, braces, `$`, stars and
blanks around it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENS = re.compile(r"\\f?boxed[ ]{0,4}\{")
_MOST_CHARACTERS = 128
"""Longest content of a box that is a verdict. A longer one is no verdict, and is not looked at."""
_WRAPPED = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|emph)[ ]{0,4}\{(.*)\}", re.DOTALL)
_BARE = re.compile(r"\{(.*)\}", re.DOTALL)
_MOST_LAYERS = 8
_AROUND = " \t\r\n*_$.\"'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """`says`: its content, stripped. `begin`, `end`: the box in the text."""

    says: str
    begin: int
    end: int


def boxes(text: str) -> Iterator[Box]:
    """The complete boxes of a text, in order. Of boxes within boxes, both are given."""
    for opened in _OPENS.finditer(text):
        closed = _closing(text, opened.end())
        if closed is not None:
            yield Box(says=_stripped(text[opened.end() : closed]), begin=opened.start(), end=closed + 1)


def _closing(text: str, begin: int) -> int | None:
    """Where the brace that was opened before `begin` is closed. None if it is not, or too far away."""
    depth = 1
    for at in range(begin, min(len(text), begin + _MOST_CHARACTERS + 1)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if not depth:
                return at
    return None


def _stripped(content: str) -> str:
    for _ in range(_MOST_LAYERS):
        content = content.strip(_AROUND)
        inner = _WRAPPED.fullmatch(content) or _BARE.fullmatch(content)
        if inner is None:
            return content
        content = inner[1]
    return content
