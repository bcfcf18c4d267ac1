"""Finds what is SMT-LIB in a text: blocks between fences that say so, or the whole text. Pure."""

import re
from dataclasses import dataclass

from pipeline.verifiers.z3.terms import NotRead

_OPENING = re.compile(r"\s{0,3}```\s*(?:smt2|smt|smtlib2?|smt-lib2?)\s*", re.IGNORECASE)
_CLOSING = re.compile(r"\s{0,3}```\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormalPart:
    """The commands in a text. `has_words`: whether there is anything else in it."""

    commands: str
    has_words: bool


def formal_part(text: str) -> FormalPart | None:
    """The commands of a text, None if there are none. Raises NotRead if a block does not end."""
    if "```" not in text:
        is_formal = text.lstrip().startswith(("(", ";")) and "(" in text
        return FormalPart(commands=text, has_words=False) if is_formal else None
    inside: list[str] = []
    outside: list[str] = []
    is_open = found = False
    for line in text.splitlines():
        if not is_open and _OPENING.fullmatch(line):
            is_open = found = True
        elif is_open and _CLOSING.fullmatch(line):
            is_open = False
        else:
            (inside if is_open else outside).append(line)
    if is_open:
        raise NotRead("a block of SMT-LIB does not end")
    return FormalPart(commands="\n".join(inside), has_words=any(map(str.strip, outside))) if found else None
