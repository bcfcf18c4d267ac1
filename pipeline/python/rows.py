"""Writes the rows of a Python call to a file that `data.path` can name.

A run is known by the content of its input. So the same rows must give the same bytes, whatever holds them in memory.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.core.errors import InputError, UsageError
from pipeline.data.rows import GIVEN_FILE, GIVEN_FOLDER
from pipeline.python.overrides import Setting
from pipeline.storage.temporary import temporary_folder

Rows = Any
"""Mappings in any iterable, or a table: of polars, pandas, PyArrow or the package `datasets`, or whatever else has
`__arrow_c_stream__`."""
_PATH = "data.path"
_BATCH_ROWS = 1000
_TEXT = "text, a number, true or false, None, a list or a dict"


@contextmanager
def input_settings(rows: Rows | str | Path | None, given: Sequence[Setting]) -> Iterator[list[Setting]]:
    """The first argument of a call as a setting. Rows are in a file within the block. `given`: the other settings, which may
    name the input instead.

    Raises UsageError without any input, and as `write_input` does."""
    if rows is None:
        if not any(each.key in ("data", _PATH) for each in given):
            raise UsageError(
                "there are no rows: give the path of a file, a list of dicts or a table as the first argument, or "
                "data='sample' for a few problems that come with stepvalue"
            )
        yield []
        return
    with temporary_folder(GIVEN_FOLDER) as folder:
        if isinstance(rows, list) and rows and all(isinstance(each, str | Path) for each in rows):
            rows = f"[{','.join(map(str, rows))}]"
        path = rows if isinstance(rows, str | Path) else write_input(rows, folder)
        yield [Setting(key=_PATH, value=path, said="the first argument")]


def write_input(rows: Rows, folder: Path) -> Path:
    """Write the rows to a file in this folder, one JSON object per line, and return its path.

    Raises InputError, which names the row (from 1) and the column, for a value that has no JSON; and what the rows raise while
    they are gone through.
    """
    path = folder / GIVEN_FILE
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for count, row in enumerate(_mappings(rows), start=1):
            file.write(_line(row, count))
    if not count:
        raise InputError("there are no rows: give at least one problem, with its answer")
    return path


def _mappings(rows: Rows) -> Iterable[Mapping[str, Any]]:
    if isinstance(rows, Mapping):
        raise InputError("the rows are one mapping: give a list of them, one for each problem or chain")
    table = _table(rows)
    if table is not None:
        return (row for batch in table.to_batches(_BATCH_ROWS) for row in batch.to_pylist())
    if not isinstance(rows, Iterable):
        raise InputError(f"the rows are of type {type(rows).__name__}: give a path, a list of dicts or a DataFrame")
    return rows


def _table(rows: Rows) -> Any:
    """The rows as a PyArrow table, where they are one in memory; else None."""
    import pyarrow as pa

    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if hasattr(rows, "with_format") and hasattr(rows, "column_names"):  # a Dataset of the package `datasets`
        return rows.with_format("arrow")[:]
    return None


def _line(row: object, number: int) -> str:
    if not isinstance(row, Mapping):
        raise InputError(f"row {number} is of type {type(row).__name__}: a row is a dict of column name -> value")
    fields = {}
    for column, value in row.items():
        if not isinstance(column, str):
            raise InputError(f"row {number}: the column name {column!r} is not text")
        try:
            fields[column] = _plain(value)
        except TypeError as error:
            raise InputError(
                f"row {number}, column {column!r}: a value of type {error} has no JSON; give {_TEXT}"
            ) from None
    # As input is commonly written: a lone surrogate stands as an escape, which every encoding can hold.
    return json.dumps(fields, ensure_ascii=True, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    """The value as JSON has it. Raises TypeError with the name of a type that JSON lacks."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy
        return _plain(value.tolist())
    raise TypeError(type(value).__name__)
