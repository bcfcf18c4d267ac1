"""Tables of a page as the terminal shows them."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pipeline.analysis.report.page import Table
from pipeline.core.formatting import plain_lines

_WIDTH = 160
"""No table needs more columns. A narrower terminal wraps the lines, so that no figure is cut."""


def widen(console: Console) -> None:
    """Make the console as wide as the widest table."""
    console.width = max(console.width, _WIDTH)


def print_tables(console: Console, tables: Iterable[tuple[str, Table]]) -> None:
    """Print each table below its title."""
    for title, table in tables:
        console.print()
        console.print(Text(plain_lines(title)), soft_wrap=True)
        console.print(as_rich(table))


def as_rich(table: Table) -> RichTable:
    """The table as the terminal shows it. No cell is cut or wrapped."""
    shown = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at, head in enumerate(table.heads):
        shown.add_column(head, justify="left" if at < table.words else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown
