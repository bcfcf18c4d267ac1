"""A comparison in the terminal; more, and the prefixes that moved, stand in the page."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.analysis.compare import tables
from pipeline.analysis.compare.compared import Comparison, Side
from pipeline.analysis.compare.verdict import verdict
from pipeline.analysis.report import parts
from pipeline.analysis.report.terminal import print_lines

_SETTINGS = 8
"""So many that differ are named."""
_WIDTH = 160
"""No table is wider; a narrower terminal wraps its lines, and no figure is cut."""


def tell(console: Console, found: Comparison) -> None:
    """What was compared, the verdict, then tables."""
    console.width = max(console.width, _WIDTH)
    print_lines(console, list(_lines(found)))
    for table in (tables.values, tables.positions, tables.labels, tables.flipped, tables.cost):
        console.print()
        console.print(_rich(table(found)))


def _lines(found: Comparison) -> Iterator[str]:
    for name, side in (("a", found.a), ("b", found.b)):
        yield f"{name:<10}{_made(side)}"
    shown = found.differing[:_SETTINGS]
    for at, difference in enumerate(shown):
        yield f"{'' if at else 'differ':<10}{difference.key}: {difference.a} in a, {difference.b} in b"
    if len(found.differing) > len(shown):
        yield f"{'':<10}... and {len(found.differing) - len(shown)} more settings"
    if not found.differing:
        yield f"{'differ':<10}no settings"
    both = found.overlap
    yield (
        f"{'common':<10}{both.problems:,} problems, {both.chains:,} chains ({both.chains_only_a:,} only in a, "
        f"{both.chains_only_b:,} only in b), {both.prefixes:,} distinct prefixes with rollouts"
    )
    for remark in tables.remarks(found):
        yield f"{'':<10}{remark}"
    yield f"{'verdict':<10}{verdict(found.shift, found.noise, found.flips)}"


def _made(side: Side) -> str:
    return f"{side.run_dir}: {side.policy}; {side.estimator}, {side.label_rule}; {side.chains:,} chains"


def _rich(table: parts.Table) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at, head in enumerate(table.heads):
        shown.add_column(head, justify="left" if at < table.words else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown
