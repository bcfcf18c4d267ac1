"""Finds what is formal in a text: blocks between fences that name its language, or the whole text. Pure."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pipeline.verifiers.blocks import OpenBlockError, blocks_in


class NotRead(Exception):
    """A text is not read as formal, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormalPart:
    """What is formal in a text. `has_words`: whether there is anything else. `is_fenced`: whether blocks say what it is."""

    commands: str
    has_words: bool
    is_fenced: bool


def formal_part(text: str, languages: Collection[str], is_formal: Callable[[str], bool]) -> FormalPart | None:
    """What is formal in a text, None if nothing is. `languages`: names of fences, in lower case. `is_formal`: whether a text
    without fences is, as a whole.

    Raises NotRead if a block does not end."""
    if "```" not in text:
        return FormalPart(commands=text, has_words=False, is_fenced=False) if is_formal(text) else None
    try:
        found = blocks_in(text, languages)
    except OpenBlockError as error:
        raise NotRead("a formal block does not end") from error
    if found is None:
        return None
    return FormalPart(commands="\n".join(found.texts), has_words=found.has_words, is_fenced=True)
