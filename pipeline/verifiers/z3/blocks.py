"""Finds what is SMT-LIB in a text: blocks between fences that say so, or the whole text. Pure."""

from pipeline.verifiers import reading
from pipeline.verifiers.reading import FormalPart

_LANGUAGES = frozenset({"smt2", "smt", "smtlib", "smtlib2", "smt-lib", "smt-lib2"})


def formal_part(text: str) -> FormalPart | None:
    """The commands of a text, None if there are none. Raises NotRead if a block does not end."""
    return reading.formal_part(text, _LANGUAGES, _is_script)


def _is_script(text: str) -> bool:
    return text.lstrip().startswith(("(", ";")) and "(" in text
