"""Tables. Each is declared once, as a class whose annotated fields are its columns, in their order.

Only a field of `T | None` may be null. An `int` has 32 bits, a `StrEnum` is a text with a dictionary, a tuple is a list, and a
record in a tuple a struct, which is read as a dict. A field that is a record itself stands for the fields of that record, which
are all null where it is None. `records.Column` in an annotation says what is otherwise.
"""

import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import is_dataclass
from enum import StrEnum
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

Record = TypeVar("Record")
_ENUM = pa.dictionary(pa.int8(), pa.string())
_SCALARS: dict[type, pa.DataType] = {str: pa.string(), int: pa.int32(), float: pa.float64(), bool: pa.bool_()}
_NAMED = {"coded": _ENUM, "string": pa.string(), "int8": pa.int8(), "int64": pa.int64()}
"""See `Column.type`."""

_NAME = re.compile(r"[a-z]+")
FOLDERS = {"aside", "checks", "commits", "damaged", "flushed", "judges", "starts"}
"""Folders of a run directory that are of no table."""
TABLES: dict[str, "Table[Any]"] = {}
"""All tables by name: a plug-in's too, once it is declared."""


class Table(Generic[Record]):
    """A table of records. `schema`: its columns; no writer adds others.

    `columns`: those of the record that are stored, in this order; None: all. `key`: the columns that identify a row of the log
    and define the order; empty for a table outside the log. `ordered`: rows are written in that order, because records come in
    any. `extra`: groups of columns that only some files have, see `with_extra`. `late`: columns that files of earlier versions
    lack. `read`: the record of `from_table`, if it has only some of the columns. The name is that of a folder: raises
    ValueError for one that another table or folder of a run has, and for other signs than the letters a to z.
    """

    def __init__(
        self,
        name: str,
        record: type[Record],
        *,
        columns: Sequence[str] | None = None,
        key: tuple[str, ...] = (),
        ordered: bool = False,
        extra: Sequence[Sequence[str]] = (),
        late: Sequence[str] = (),
        read: type[Any] | None = None,
    ) -> None:
        if name in TABLES or name in FOLDERS or _NAME.fullmatch(name) is None:
            why = "there is already a table" if name in TABLES else "letters a to z, and no other folder of a run: not"
            raise ValueError(f"{why} {name}")
        self.name, self.key = name, key
        self._ordered, self._extra, self._late = ordered, extra, late
        fields = _fields(record)
        # The first of several places of a column counts.
        own = {kind.column: (path, kind) for path, kind in reversed([*_columns(fields)])}
        self._columns = {column: own[column] for column in columns or reversed(own)}
        self._read = read or record
        self._read_fields = _fields(read) if read else fields
        self.schema = self._without({column for group in extra for column in group})
        TABLES[name] = self

    def schemas(self) -> list[pa.Schema]:
        """The columns that a file of the table may have."""
        absent: list[set[str]] = [set()]
        for group in (*self._extra, self._late):
            absent += [{*each, *group} for each in absent if group]
        return [self._without(each) for each in absent]

    def with_extra(self, *names: str) -> "Table[Record]":
        """The table with these extra columns."""
        found = copy(self)
        found.schema = self._without({column for group in self._extra for column in group} - {*names})
        return found

    def to_table(self, records: Sequence[Record]) -> pa.Table:
        """The rows of records."""
        if self._ordered:
            records = sorted(records, key=attrgetter(*self.key))
        columns: dict[str, list[Any]] = {}
        for name in self.schema.names:
            path, kind = self._columns[name]
            values = map(attrgetter(*path) if len(path) == 1 else partial(_at, path), records)
            columns[name] = [value or None for value in values] if kind.null_if_empty else list(values)
        return self.of_columns(columns)

    def of_columns(self, columns: Mapping[str, Any]) -> pa.Table:
        """The rows with these values, by column. Values of other columns are left out."""
        return pa.Table.from_arrays([_array(columns[field.name], field) for field in self.schema], schema=self.schema)

    def from_table(self, table: pa.Table) -> list[Any]:
        """The records of rows. Where the table lacks a column, the field has its default, or None. Raises ValueError for values
        that no record has."""
        return list(_records(self._read, self._read_fields, table))

    def keys(self, table: pa.Table) -> list[tuple[Any, ...]]:
        """The key of each row."""
        return list(zip(*(table[column].to_pylist() for column in self.key), strict=True))

    def in_order(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Tables as one, in the order of the key."""
        one = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        return one.sort_by([(column, "ascending") for column in self.key])

    def _without(self, absent: set[str]) -> pa.Schema:
        return pa.schema([kind.field for name, (_, kind) in self._columns.items() if name not in absent])


def records_of(record: type[Record], table: pa.Table) -> list[Record]:
    """Records whose fields are among the columns of a table, as `Table.from_table` reads them."""
    return list(_records(record, _fields(record), table))


def log_tables() -> dict[str, Table[Any]]:
    """The tables of the log by name: those with a key."""
    return {name: table for name, table in TABLES.items() if table.key}


def storable(text: str) -> str:
    """The text with lone surrogates replaced by `?`. Model output may contain them, and Parquet cannot store them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


class _Kind(NamedTuple):
    """How the values of a field are stored. `read` makes them from stored ones; None: they are the same. `record` and `fields`:
    of a field that is a record itself."""

    arrow: pa.DataType
    nullable: bool = False
    read: Callable[[Any], Any] | None = None
    column: str = ""
    null_if_empty: bool = False
    record: type[Any] | None = None
    fields: Mapping[str, "_Kind"] = {}

    @property
    def field(self) -> "pa.Field[Any]":
        return pa.field(self.column, self.arrow, nullable=self.nullable)


def _kind(hint: Any) -> _Kind:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind, column = _kind(parts[0]), parts[1]
        return kind._replace(
            arrow=_NAMED[column.type] if column.type else kind.arrow,
            nullable=kind.nullable or column.null_if_empty,
            column=column.name,
            null_if_empty=column.null_if_empty,
        )
    if origin in (Union, types.UnionType):
        (kind,) = [_kind(part) for part in parts if part is not types.NoneType]
        return kind._replace(nullable=True, read=kind.read and partial(_unless_none, kind.read))
    if origin is tuple:
        item = _kind(parts[0])
        return _Kind(pa.list_(item.arrow), read=partial(_tuple_of, item.read))
    if hint in _SCALARS:
        return _Kind(_SCALARS[hint])
    if issubclass(hint, StrEnum):
        return _Kind(_ENUM, read=hint)
    fields = _fields(hint)
    return _Kind(pa.struct([kind.field for _, kind in _columns(fields)]), record=hint, fields=fields)


def _unless_none(read: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else read(value)


def _tuple_of(read: Callable[[Any], Any] | None, stored: list[Any] | None) -> tuple[Any, ...]:
    return tuple(stored or ()) if read is None else tuple(map(read, stored or ()))


def _fields(record: type[Any]) -> dict[str, _Kind]:
    """The fields of a record by their names there."""
    found = {name: _kind(hint) for name, hint in get_type_hints(record, include_extras=True).items()}
    return {name: kind._replace(column=kind.column or name) for name, kind in found.items()}


def _columns(
    fields: Mapping[str, _Kind], path: tuple[str, ...] = (), *, nullable: bool = False
) -> Iterator[tuple[tuple[str, ...], _Kind]]:
    """The columns of a record's fields, each with the place of its value there."""
    for name, kind in fields.items():
        kind = kind._replace(nullable=kind.nullable or nullable)
        if kind.record is not None:
            yield from _columns(kind.fields, (*path, name), nullable=kind.nullable)
        else:
            yield (*path, name), kind


def _at(path: tuple[str, ...], record: Any) -> Any:
    for name in path:
        record = None if record is None else getattr(record, name)
    return record


def _records(
    record: type[Record], fields: Mapping[str, _Kind], table: pa.Table, *, nullable: bool = False
) -> Iterator[Any]:
    """`nullable`: None where the first column is null."""
    columns: dict[str, Iterable[Any]] = {}
    for name, kind in fields.items():
        if kind.record is not None:
            columns[name] = _records(kind.record, kind.fields, table, nullable=kind.nullable)
        elif kind.column in table.column_names:
            stored = table[kind.column].to_pylist()
            columns[name] = stored if kind.read is None else map(kind.read, stored)
        elif not is_dataclass(record):
            columns[name] = repeat(getattr(record, "_field_defaults", {}).get(name), table.num_rows)
    if not is_dataclass(record):
        return map(record, *columns.values())
    # Its fields may be for keywords only.
    return (
        None if nullable and values[0] is None else record(**dict(zip(columns, values, strict=True)))
        for values in zip(*columns.values(), strict=True)
    )


def _array(values: Any, field: "pa.Field[Any]") -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(values, field.type)
    except UnicodeEncodeError:
        return pa.array([storable(value) if isinstance(value, str) else value for value in values], field.type)
