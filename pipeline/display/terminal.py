"""A document on a terminal, without what a terminal would execute."""

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pipeline.core.formatting import plain_lines
from pipeline.display.document import ChartKind, Colour, Part, Section, Table

_STYLES = {
    Colour.right: "green",
    Colour.wrong: "red",
    Colour.accent: "blue",
    Colour.uncertain: "yellow",
    Colour.text: "",
}
_READ = (ChartKind.points, ChartKind.lines, ChartKind.bars)
"""Charts whose numbers are few enough to be read."""
_TEXT = 24
"""Columns that a text has at least."""
_WIDTH = 160
"""No table needs more columns. A narrower terminal wraps the lines, so that no figure is cut."""
_NAME = 10
"""Columns of a name, with two blanks at least, before what is said of it; the lines that follow stand below that."""


def terminal(**options: Any) -> Console:
    """A terminal, standard output unless the options of rich's Console say otherwise, which shows texts as they are."""
    return Console(highlight=False, markup=False, **options)


def show(parts: Iterable[Part], console: Console | None = None) -> None:
    """Print the parts of a document, on standard output if no console is given. A terminal gets lines that it need not break in
    the middle of words, a log gets a line for each fact. No cell of a table is cut or wrapped but a text."""
    shown = console or terminal()
    for part in parts:
        if isinstance(part, str):
            lines = plain_lines(part).split("\n")
            whole = [whole_words(line, shown.width) for line in lines] if shown.is_terminal else lines
            shown.print(Text("\n".join(whole)), soft_wrap=True)
        elif isinstance(part, Section):
            show(_tables(part), shown)
        else:
            _print(part, shown)


def whole_words(line: str, width: int) -> str:
    """The line in lines of that many columns, those that follow below what is said of a name."""
    if len(line) <= width:
        return line
    indent = " " * _NAME if line[_NAME - 2 : _NAME] == "  " else ""
    return textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _tables(section: Section) -> Iterator[Part]:
    """The tables of a section, and the numbers of those charts that have a number for each name or group."""
    numbers = [replace(chart.numbers, title=chart.title) for chart in section.charts if chart.kind in _READ]
    tables = [*section.tables, *numbers]
    if tables and not tables[0].title and tables[0].heads[0].lower() != section.heading.lower():
        tables[0] = replace(tables[0], title=section.heading)
    for table in tables:
        if not table.title:
            yield ""
        yield table


def _print(table: Table, shown: Console) -> None:
    if table.title:
        show(["", table.title], shown)
    width = shown.width
    parts = _parts(table, width) if table.text is None and shown.is_terminal else [table]
    if table.text is None:
        shown.width = max(width, _WIDTH)
    for at, part in enumerate(parts):
        show([""] * (at > 0), shown)
        shown.print(_as_rich(part))
    shown.width = width
    if table.caption:
        show([table.caption], shown)


def _parts(table: Table, width: int) -> list[Table]:
    """The table in parts that fit into the width: each has the columns of words, and as many others as fit."""
    columns = zip(table.heads, *table.rows, strict=True)
    widths = [2 + max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    space = left = width + 2 - sum(widths[: table.words])
    parts: list[list[int]] = [[]]
    for at in range(table.words, len(widths)):
        if parts[-1] and widths[at] > left:
            parts.append([])
            left = space
        parts[-1].append(at)
        left -= widths[at]

    def kept(cells: tuple[str, ...], part: list[int]) -> tuple[str, ...]:
        return (*cells[: table.words], *(cells[at] for at in part))

    return [
        replace(table, heads=kept(table.heads, each), rows=tuple(kept(row, each) for row in table.rows))
        for each in parts
    ]


def _as_rich(table: Table) -> RichTable:
    made = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at, head in enumerate(table.heads):
        if at == table.text:
            made.add_column(head, overflow="fold", min_width=_TEXT, ratio=1)
        else:
            made.add_column(head, justify="left" if at < table.words else "right", no_wrap=True)
    for row in table.rows:
        made.add_row(*(Text(plain_lines(cell), style=_STYLES[table.colours.get(cell, Colour.text)]) for cell in row))
    return made
