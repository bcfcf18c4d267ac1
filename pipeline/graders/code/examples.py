"""Examples of use in a text: `>>> f(2)` and the lines below it, which are what it prints. Pure, in linear time.

An expected output ends at an empty line, at the next example, and at a line that closes a docstring or a fenced block.
"""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_PROMPT = re.compile(r"([ \t]*)>>> ?(.*)")
_OTHER = re.compile(r"#\s*doctest:(?!(?:[+,\s]|ELLIPSIS|NORMALIZE_WHITESPACE|IGNORE_EXCEPTION_DETAIL)*$)", re.MULTILINE)
"""A directive after which an example is not compared as others are."""
_ENDS = ('"""', "'''", "```", "~~~")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocExample:
    """`source`: what is typed. `wanted`: what is printed, empty if nothing is given."""

    source: str
    wanted: str

    @property
    def exception(self) -> str | None:
        """The name of the exception that is expected, or None."""
        if not re.match(
            r"Traceback \(most recent call last\)|(?:[Rr]aises? )?[\w.]+(?:Error|Exception)\b", self.wanted
        ):
            return None
        last = self.wanted.splitlines()[-1].partition(":")[0].strip()
        return last.rpartition(".")[2] if re.fullmatch(r"[\w.]+", last) else ""


def examples_in(text: str) -> Iterator[DocExample]:
    """The examples of a text, in order, without those that a directive such as `# doctest: +SKIP` leaves out."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        prompt = _PROMPT.fullmatch(lines[at].rstrip())
        at += 1
        if prompt is None:
            continue
        indent, typed, wanted = prompt[1], [prompt[2]], []
        while at < len(lines) and re.match(r"[ \t]*\.\.\.( |$)", lines[at]):
            typed.append(re.sub(r"^[ \t]*\.\.\. ?", "", lines[at].rstrip(), count=1))
            at += 1
        while (
            at < len(lines) and lines[at].strip() and not (_PROMPT.fullmatch(lines[at].rstrip()) or _mark_in(lines[at]))
        ):
            wanted.append(lines[at].removeprefix(indent).rstrip())
            at += 1
        if at < len(lines) and (mark := _mark_in(lines[at])) and lines[at].partition(mark)[0].strip():
            wanted.append(lines[at].partition(mark)[0].removeprefix(indent).rstrip())
        source = "\n".join(typed)
        if not _OTHER.search(source):
            yield DocExample(source=source, wanted="\n".join(wanted))


def literal(source: str | ast.expr) -> list[Any]:
    """The value that is written out, alone in a list. Empty if it is none."""
    with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return [ast.literal_eval(source)]
    return []


def _mark_in(line: str) -> str | None:
    return next((mark for mark in _ENDS if mark in line), None)
