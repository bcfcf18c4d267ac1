"""A table of a page as the terminal shows it."""

from rich.table import Table as RichTable
from rich.text import Text

from pipeline.analysis.report.page import Table


def as_rich(table: Table) -> RichTable:
    """The table as the terminal shows it. No cell is cut or wrapped."""
    shown = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at, head in enumerate(table.heads):
        shown.add_column(head, justify="left" if at < table.words else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown
