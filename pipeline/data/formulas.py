r"""Finds the formulas, diagrams, programs and tables of a text, so that no step is cut inside one.

Known delimiters: `$...$`, `$$...$$`, `\(...\)`, `\[...\]` and `\begin{x}...\end{x}`, nested in any way. Model output is often
not valid LaTeX. A delimiter that is opened and never closed is therefore not a formula:

- `$` and `$$` do not extend across a blank line.
- A `$` opens only before a non-space. It closes only after a non-space and not before a digit (`$5 and $7` is money, as in
  Pandoc). The first `$` after an opening one either closes it or shows that the opening one is a single dollar sign.
- A `$` before a digit is money if plain words are between it and its partner: `$5 per day ($x$ days)`.
- A closing `\)`, `\]` or `\end{x}` belongs to the nearest open partner; delimiters opened in between are dropped.

Blocks are `[asy]...[/asy]`, fenced code, `<table>...</table>`, `<pre>...</pre>` and tables of Markdown.
What looks like a formula in one is none.

Not covered: over-escaped text (`\\[ x \\]`), because `\\[` looks the same as a line break with spacing.
"""

import re
from collections import Counter

_TOKEN = re.compile(
    r"\\\\|\\\$"  # skipped: a line break (so that `\\[2pt]` opens nothing) and a literal dollar
    r"|\\[()\[\]]|\\(?:begin|end)\{[^{}\n]{1,40}\}|\$\$|\$|\n[^\S\n]*+\n"
)
_COMMANDS = re.compile(r"\\[A-Za-z]++|\{[^{}]*+\}")
_UNCLOSED = re.compile(r"\{[^{}]*\Z")
_PLAIN_WORD = re.compile(r"\s[A-Za-z]{2}")
_MARK = re.compile(
    r"^[ \t]*+(?P<fence>```|~~~)[`~]*+(?P<info>[^`\n]*+)$|(?P<tag>\[/?asy\]|</?(?:table|pre)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_ROW = r"[^\n|]*+\|[^\n]*+"
_TABLE = re.compile(
    rf"^{_ROW}\n(?=[-: \t]*+\|)(?=[|: \t]*+-)[-|: \t]++(?:\n|\Z)(?:{_ROW}(?:\n|\Z))*+"
    r"|(?:^[ \t]*+\| [^\n]*+(?<= \|)(?:\n|\Z)){2,}+",
    re.MULTILINE,
)
_TABLE_BEGINS = re.compile(rf"^{_ROW}(?:\n[-|: \t]*+)?\Z", re.MULTILINE)
_SIGNS = re.compile(r"[$\\|]|```|~~~|\[asy|<(?:table|pre)", re.IGNORECASE)
_OPENS = {r"\)": r"\(", r"\]": r"\["}


def may_have_formulas(text: str) -> bool:
    """Whether a text has a sign with which formulas begin or end. False: it has no formula, open ones included."""
    return _SIGNS.search(text) is not None


def formulas(text: str) -> list[tuple[int, int]]:
    """Start and end of every outermost formula including its delimiters, in order and without overlap, in linear time."""
    return _read(text)[0]


def open_formula(text: str) -> int | None:
    """Where the first formula begins that is open at the end of a text: one that some continuation closes. None without one."""
    _, begins = _read(text)
    return min(begins, default=None)


def _read(text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """The formulas, and where those begin that a continuation may close."""
    if not may_have_formulas(text):
        return [], []
    spans, begun = _blocks(text)
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], "\n" * (end - start))
        at = end
    text = "".join((*parts, text[at:]))
    open_: list[tuple[str, int]] = []
    waiting: Counter[str] = Counter()
    dollar = display = -1
    for token in _TOKEN.finditer(text):
        word, at = token.group(), token.start()
        if word in (r"\\", r"\$"):
            continue
        if word[0] == "\n":
            dollar = display = -1
        elif word == "$":
            if dollar >= 0 and _is_inline(text, dollar, at):
                spans.append((dollar, at + 1))
                dollar = -1
            else:
                dollar = at if _opens_inline(text, at) else -1
        elif word == "$$":
            if display >= 0:
                spans.append((display, at + 2))
                dollar = display = -1
            elif dollar >= 0 and _is_inline(text, dollar, at):  # `$x$$y$`: one formula ends, the next begins
                spans.append((dollar, at + 1))
                dollar = at + 1 if _opens_inline(text, at + 1) else -1
            else:
                dollar, display = -1, at
        elif word in (r"\(", r"\[") or word.startswith(r"\begin"):
            open_.append((word, at))
            waiting[word] += 1
        else:
            partner = _OPENS.get(word) or word.replace("end", "begin", 1)
            while waiting[partner]:
                kind, start = open_.pop()
                waiting[kind] -= 1
                if kind == partner:
                    spans.append((start, token.end()))
                    break
    begins = [*begun, *(start for _, start in open_[:1])]
    begins += [display] if display >= 0 else []
    begins += [dollar] if dollar >= 0 and not _is_money(_UNCLOSED.sub("", text[dollar + 1 :])) else []
    return _outermost(spans), begins


def _blocks(text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """The blocks, and where those begin that a continuation may close or lengthen."""
    marks = [(mark["fence"] or mark["tag"].lower().replace("/", ""), mark) for mark in _MARK.finditer(text)]
    last = {kind: mark.start() for kind, mark in marks if _closes(mark)}
    spans: list[tuple[int, int]] = []
    begins: list[int] = []
    opened, begin = "", 0
    for kind, mark in marks:
        if opened == kind and _closes(mark):
            spans.append((begin, mark.end()))
            opened = ""
        elif not opened and "/" not in (mark["tag"] or ""):
            opened, begin = kind if last.get(kind, -1) > mark.start() else "", mark.start()
            begins += [] if opened else [begin]
    begins += [start for start, end in spans[-1:] if end == len(text) and text[-1] in "`~"]
    if "|" in text:
        tables = [table.span() for table in _TABLE.finditer(text)]
        begins += [start for start, end in tables[-1:] if "\n" not in text[end:]]
        begins += [begun.start() for begun in [_TABLE_BEGINS.search(text)] if begun]
        spans = _outermost(spans + tables)
    return spans, begins


def _closes(mark: re.Match[str]) -> bool:
    return "/" in mark["tag"] if mark["tag"] else not mark["info"].strip()


def _opens_inline(text: str, at: int) -> bool:
    return at + 1 < len(text) and not text[at + 1].isspace()


def _is_inline(text: str, start: int, end: int) -> bool:
    """Whether the dollars at `start` and `end`, without a dollar between them, enclose a formula."""
    apart = text[end - 1].isspace() or text[end + 1 : end + 2].isdigit()
    return not apart and start + 1 < end and not _is_money(text[start + 1 : end])


def _is_money(content: str) -> bool:
    """Whether the dollar before this is one, because plain words follow its number."""
    return content[:1].isdigit() and _PLAIN_WORD.search(_COMMANDS.sub("", content)) is not None


def _outermost(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
