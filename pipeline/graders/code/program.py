"""Extracts the program from an output: its last fenced Python block, else its last fenced block, else the text if it is code.

If the last Python block defines nothing, it is an example of use, and the earlier Python blocks with definitions are put before
it.

Covered: fences of backticks or tildes, of any length, indented or not, and a last fence that a stop text left open.
Not covered: whether it is Python. The beginning of its first line decides whether a text without a fence is code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_PROGRAM_CHARS = 100_000
"""A longer program is over the limit and is never run."""

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^\n`]*)")
_PYTHON = frozenset({"python", "py", "python3", "py3", "{python}", "{.python}"})
_DEFINITION = re.compile(r"^(?:async def|def|class) ", re.MULTILINE)
_FIRST_LINE_OF_CODE = re.compile(
    r"(?:from\s+[\w.]+\s+import\b|import\s+\w|(?:async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[:(]|@\w|#!|print\(|\"\"\"|'''"
    r"|\w+(?:\s*,\s*\w+)*\s*=[^=]|(?:for\s.+\sin\s|while\s|if\s|with\s).+:\s*$|try:\s*$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The text between two fences. `closed` is false if the last block has no closing fence."""

    language: str
    text: str
    closed: bool


def program_in(output: str, *, complete: bool = True) -> str | None:
    """The program in an output, without the indentation of its fence, or None if there is none.

    In an output that was cut short (`complete` is false) only a closed block counts. Takes linear time and never raises.
    """
    found = list(blocks(output))
    usable = [block for block in found if block.text.strip() and (block.closed or complete)]
    if usable:
        python = [block for block in usable if block.language in _PYTHON]
        return _with_definitions(python) if python else usable[-1].text
    return output if complete and not found and _is_code(output) else None


def _with_definitions(python: list[Block]) -> str:
    """The last block. If it defines nothing, it comes after the earlier blocks that contain definitions."""
    if _DEFINITION.search(python[-1].text):
        return python[-1].text
    return "\n\n".join(block.text for block in python if block is python[-1] or _DEFINITION.search(block.text))


def blocks(output: str) -> Iterator[Block]:
    """The fenced blocks of an output, in order."""
    opening: re.Match[str] | None = None
    lines: list[str] = []
    for line in output.split("\n"):
        fence = _FENCE.fullmatch(line.rstrip("\r"))
        if opening is None:
            if fence:
                opening, lines = fence, []
        elif fence and fence[2].startswith(opening[2]) and not fence[3].strip():
            yield _block(opening, lines, closed=True)
            opening = None
        else:
            lines.append(line)
    if opening is not None:
        yield _block(opening, lines, closed=False)


def _block(opening: re.Match[str], lines: list[str], *, closed: bool) -> Block:
    indent, words = opening[1], opening[3].split()
    text = "\n".join(line.removeprefix(indent) for line in lines)
    return Block(language=words[0].lower() if words else "", text=text, closed=closed)


def _is_code(output: str) -> bool:
    lines = (line for line in output.split("\n") if line.strip() and not re.match(r"#(?!!)", line))
    return _FIRST_LINE_OF_CODE.match(next(lines, "")) is not None
