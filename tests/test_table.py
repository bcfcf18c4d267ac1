"""A table is declared once, as the record of its rows: its columns, its writer and its reader follow from that."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
import pytest

from pipeline.core.records import Column, Finish, Int64, RowLocation
from pipeline.core.table import TABLES, Table, log_tables


class Span(NamedTuple):
    begin: int
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A record of a plug-in, with every kind of field."""

    row: Int64
    place: RowLocation
    note: Annotated[str, Column(name="text")]
    finish: Finish | None = None
    weights: tuple[float | None, ...]
    marks: Annotated[tuple[int, ...], Column(null_if_empty=True)] = ()
    spans: tuple[Span, ...] = ()
    extra: str = "unknown"


NOTED = [
    Noted(
        row=2**33,
        place=RowLocation(file="f", line=3),
        note="a\ud800",
        finish=Finish.STOP,
        weights=(0.5, None),
        marks=(1, 2),
    ),
    Noted(row=1, place=RowLocation(file="", line=4), note="b", weights=(), spans=(Span(1, 2), Span(3))),
]


@pytest.fixture
def table() -> Iterator[Table[Noted]]:
    yield Table("noted", Noted, key=("row",), ordered=True, extra=[["extra"]], late=["marks"])
    del TABLES["noted"]


def test_the_columns_are_those_of_the_record(table: Table[Noted]) -> None:
    span = pa.struct([pa.field("begin", pa.int32(), nullable=False), pa.field("end", pa.int32())])
    wanted: list[pa.Field[Any]] = [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("finish", pa.dictionary(pa.int8(), pa.string())),
        pa.field("weights", pa.list_(pa.float64()), nullable=False),
        pa.field("marks", pa.list_(pa.int32())),
        pa.field("spans", pa.list_(span), nullable=False),
    ]
    extra = pa.field("extra", pa.string(), nullable=False)
    assert table.schema.equals(pa.schema(wanted))
    assert table.with_extra("extra").schema.equals(pa.schema([*wanted, extra]))
    late = [field for field in wanted if field.name != "marks"]
    others = [[*wanted, extra], wanted, [*late, extra], late]
    assert all(any(pa.schema(each).equals(schema) for schema in table.schemas()) for each in others)
    assert len(table.schemas()) == len(others)


def test_a_declared_table_is_known_and_its_name_is_taken(table: Table[Noted]) -> None:
    assert log_tables()["noted"] is TABLES["noted"] is table
    for name, why in {
        "noted": "there is already a table noted",
        "step_notes": "a to z, ",
        "starts": "no other folder",
    }.items():
        with pytest.raises(ValueError, match=why):
            Table(name, Noted)


def test_rows_are_in_the_order_of_the_key_and_come_back_as_they_went_in(table: Table[Noted]) -> None:
    stored = table.to_table(NOTED)
    stored.validate(full=True)
    assert table.keys(stored) == [(1,), (2**33,)]
    assert stored["text"].to_pylist() == ["b", "a?"]
    assert stored["marks"].to_pylist() == [None, [1, 2]]
    assert table.in_order([table.to_table(NOTED[:1]), table.to_table(NOTED[1:])]).equals(stored)
    (later,) = table.from_table(stored.slice(1).drop_columns(["spans"]))
    assert (later.row, later.place, later.finish) == (2**33, RowLocation(file="f", line=3), Finish.STOP)
    assert (later.weights, later.marks, later.spans, later.extra) == ((0.5, None), (1, 2), (), "unknown")
    broken = pa.table({**stored.to_pydict(), "finish": ["stop", "never"]})
    with pytest.raises(ValueError, match="never"):
        table.from_table(broken)
