"""Extracts the program from an output: its fenced Python blocks in order, else the part of the text that begins like code.

Several blocks are joined by a line `BLOCK_END`; `composition` makes one program of them, in the process that runs it.
Covered: fences of any kind; a last fence that a stop text left open; a first fence that the prompt opened; the body of a
function alone. Thinking that does not end has no program. Not covered: whether it is Python.
"""

import re
from collections.abc import Iterator

from pipeline.data.thinking import outside_thinking

MAX_PROGRAM_CHARS = 100_000
"""A longer program is over the limit and is never run."""
MAX_LINE_CHARS = 500
CODE_INDENT = 4
"""A fence that stands so much deeper than the one that is open is code, such as that of a docstring."""
BLOCK_END = "\n# ---- the next block of the answer ----\n"

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,}(?!~))([^\n`]*)")
_PYTHON = re.compile(r"(?:\{\.?)?(?:py(?:thon|py)?[\d.]*|sage|ipython[\d.]*)(?![\w-])", re.IGNORECASE)
_STARTS = (
    r"(?:from\s+[\w.]+\s+import\b|import\s+\w|(?:async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[:(]|@\w|#!|print\(|\"\"\"|'''"
    r"|\w+(?:\s*,\s*\w+)*\s*=[^=]|(?:for\s.+\sin\s|while\s|if\s|with\s).+:\s*(?:#.*)?$|try:\s*$)"
)
_FIRST_LINE_OF_CODE = re.compile(_STARTS)
_FIRST_LINE_OF_BODY = re.compile(
    rf"(?:{_STARTS}|(?:return|raise|assert|yield|pass|global|nonlocal|del|try)\b|(?:for|while|if|with)\s.+:|\w[\w.]*(?:\[.{{1,80}}\])?\s*[-+*/%|&^]?=[^=]"
    r"|\w[\w.]*\(.*\)\s*$|\w+\s*:\s*[\w\[\], .]{1,80}=)"
)
_AFTER_WORDS = re.compile(
    r"^[ \t]{0,8}(?:from [\w.]+ import [\w*(]|import \w+(?:$|,| as )|(?:async )?def \w+\(.{0,200}:|class \w+(?:\(.{0,80}\))?:"
    r"|@\w[\w.]*(?:\(.{0,80}\))?$|\w+(?:, ?\w+){0,9} ?= ?(?:\w+\(){0,3}(?:input\(|sys\.stdin))",
    re.MULTILINE,
)

_STOP = re.compile(
    r"^(?:\[/?(?:DONE|END|PYTHON|ANSWER)\]|(?:#{2,6} )?(?:Time|Space|Complexity|Explanation|Note)\b[^\n=]{0,40}(?::|$))",
    re.MULTILINE,
)
"""Ends a program without fences, though it may be Python, too."""


Block = tuple[str, str, bool]
"""The language and the text between two fences, or before a first one, and whether the block has a closing fence."""


def program_in(output: str, *, complete: bool = True) -> str | None:
    """The program in an output, without the indentation of its fence, or None if there is none.

    In an output that was cut short (`complete` is false) only a closed block counts. Takes linear time and never raises.
    """
    parts = outside_thinking(output)
    if parts is None:
        return None
    text = "\n".join(part for part in parts if part.strip()).removeprefix("\ufeff")
    found = list(blocks(text))
    if not found:
        return _unfenced(text) if complete else None
    usable: list[str] = []
    size = 0
    for language, block, closed in reversed(found):
        if block.strip() and (closed or complete) and (not language or _PYTHON.match(language)):
            size += len(block) + len(BLOCK_END)
            if usable and size > MAX_PROGRAM_CHARS:
                break
            usable.append(block)
    return BLOCK_END.join(reversed(usable)) if usable else None


def blocks(output: str) -> Iterator[Block]:
    """The fenced blocks of an output, in order. Code before the first fence is one too, which that fence may close."""
    lines = output.split("\n")
    fences = {number: fence for number, line in enumerate(lines) if (fence := _FENCE.fullmatch(line.rstrip("\r")))}
    opening: re.Match[str] | None = None
    start = 0
    if fences and (before := _unfenced("\n".join(lines[: (first := next(iter(fences)))]))):
        yield "", before, True
        if not fences[first][3].strip() and len(fences) % 2:
            del fences[first]
    for number, fence in fences.items():
        if opening is None:
            opening, start = fence, number + 1
        elif fence[2].startswith(opening[2]) and not fence[3].strip() and len(fence[1]) < len(opening[1]) + CODE_INDENT:
            yield _block(opening, lines[start:number], closed=True)
            opening = None
    if opening is not None:
        yield _block(opening, lines[start:], closed=False)


def _block(opening: re.Match[str], lines: list[str], *, closed: bool) -> Block:
    indent, words = opening[1], opening[3].split()
    text = "\n".join(line.removeprefix(indent) for line in lines).removeprefix("\ufeff")
    text = text if closed else text.partition(opening[2])[0]
    return words[0].lower() if words else "", text, closed


def _unfenced(text: str) -> str | None:
    """The text from where it begins like code: at its first line, at a line of code after words, or as an indented body."""
    lines = (line[:MAX_LINE_CHARS] for line in text.split("\n"))
    first = next((line for line in lines if line.strip() and not re.match(r"\s*#(?!!)", line)), "")
    if _FIRST_LINE_OF_CODE.match(first) or (
        (first[:1] in " \t" or first.startswith("return ")) and _FIRST_LINE_OF_BODY.match(first.strip())
    ):
        start = 0
    elif after := _AFTER_WORDS.search(text):
        start = after.start()
    else:
        return None
    end = _STOP.search(text, start)
    return text[start : end.start() if end else None]
