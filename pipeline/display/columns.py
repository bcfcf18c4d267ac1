"""Records as rows of tables: a field that says how it is shown is a column. Pure.

    auc: Annotated[Interval, Column("AUC")]

So a new figure is one field: JSON has it as it has all fields, and the terminal and the page have its column.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pipeline.core.statistics import Interval
from pipeline.display.document import Table
from pipeline.display.numbers import count, interval, number


@dataclass(frozen=True, slots=True)
class Column:
    """How a field is shown: its head, the decimals of what is no whole number (None: it is a count that is expected, and not
    counted), and `+` as the sign of a difference."""

    head: str
    digits: int | None = 2
    sign: str = ""

    def cell(self, value: Any) -> str:
        """The text of a value: a count, a number, or a figure with its interval."""
        if self.digits is None or isinstance(value, int):
            return count(value)
        if isinstance(value, Interval):
            return interval(value, self.digits, self.sign)
        return number(value, self.digits, self.sign)


@cache
def columns(record: Any) -> Mapping[str, Column]:
    """The columns of the class `record`, by field."""
    found = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        for extra in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
            if isinstance(extra, Column):
                found[name] = extra
    return found


def heads(record: Any) -> tuple[str, ...]:
    """The heads of the columns of the class `record`."""
    return tuple(column.head for column in columns(record).values())


def cells(record: Any) -> tuple[str, ...]:
    """The texts of a record, column by column."""
    return tuple(column.cell(getattr(record, name)) for name, column in columns(record.__class__).items())


def table_of(head: str, record: Any, named: Mapping[str, Any], *, title: str = "", caption: str = "") -> Table:
    """A table with a row for each of the `named` records of the class `record`."""
    rows = tuple((name, *cells(each)) for name, each in named.items())
    return Table(heads=(head, *heads(record)), rows=rows, title=title, caption=caption)
