"""Documents on a terminal: lines and tables, without what a terminal would execute."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pipeline.core.formatting import plain_lines
from pipeline.display.document import Section, Table

_WIDTH = 160
"""No table needs more columns. A narrower terminal wraps the lines, so that no figure is cut."""


def terminal(**options: Any) -> Console:
    """A terminal, standard output unless the options of rich's Console say otherwise, which shows texts as they are."""
    return Console(highlight=False, markup=False, **options)


def print_lines(console: Console, lines: Iterable[str]) -> None:
    """Print lines without control characters and without wrapping."""
    for line in lines:
        console.print(Text(plain_lines(line)), soft_wrap=True)


def print_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print each table below its title. No cell is cut or wrapped."""
    console.width = max(console.width, _WIDTH)
    for table in tables:
        console.print()
        if table.title:
            print_lines(console, [table.title])
        console.print(_as_rich(table))
        if table.caption:
            print_lines(console, [table.caption])


def print_sections(console: Console, sections: Iterable[Section]) -> None:
    """Print the tables of sections, and the numbers of their charts."""
    for section in sections:
        titled = [table if table.title else replace(table, title=section.heading) for table in section.tables[:1]]
        numbers = [replace(chart.numbers, title=chart.title) for chart in section.charts]
        print_tables(console, [*titled, *section.tables[1:], *numbers])


def _as_rich(table: Table) -> RichTable:
    shown = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at, head in enumerate(table.heads):
        shown.add_column(head, justify="left" if at < table.words else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(plain_lines(cell)) for cell in row))
    return shown
