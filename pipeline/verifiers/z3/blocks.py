"""Finds what is SMT-LIB in a text: blocks between fences that say so, or the whole text. Pure."""

from dataclasses import dataclass

from pipeline.verifiers.blocks import OpenBlockError, blocks_in
from pipeline.verifiers.z3.terms import NotRead

_LANGUAGES = frozenset({"smt2", "smt", "smtlib", "smtlib2", "smt-lib", "smt-lib2"})


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
    try:
        found = blocks_in(text, _LANGUAGES)
    except OpenBlockError as error:
        raise NotRead("a block of SMT-LIB does not end") from error
    return FormalPart(commands="\n".join(found.texts), has_words=found.has_words) if found else None
