"""Labels of steps that several chains begin with. Pure.

A PRM is causal: its score of a step depends on the problem and the steps up to it, and on nothing after. So a prefix that
several chains begin with has the same score in all of them, and its label counts once for each.
"""

from collections.abc import Sequence
from typing import Any

from pipeline.core.records import GROWN

Row = dict[str, Any]
_WITHOUT_TARGET = ("value", "unbiased_value", "value_sd", "label")
"""Columns of a step that are null where it has no target."""


def targets_of(rows: Sequence[Row]) -> tuple[int, int]:
    """The steps with a value, and the distinct prefixes among them."""
    prefixes = [prefix for row in rows for prefix, value in _steps(row) if value is not None]
    return len(prefixes), len(set(prefixes))


def counted_once(rows: Sequence[Row]) -> list[Row]:
    """The rows with each prefix's label in the first row alone that has one. Rows without any label are left out."""
    known: set[str] = set()
    found: list[Row] = []
    for row in rows:
        new = [value is not None and prefix not in known for prefix, value in _steps(row)]
        known.update(prefix for (prefix, _), is_new in zip(_steps(row), new, strict=True) if is_new)
        if any(new):
            found.append({**row, **{name: _where(row[name], new) for name in _WITHOUT_TARGET}})
    return found


def is_grown(row: Row) -> bool:
    """Whether `grow` has promoted a chain."""
    return bool(row.get(GROWN))


def promoted_alone(rows: Sequence[Row]) -> list[Row]:
    """The rows; those of promoted chains without the labels of the steps before the promoted one."""
    last = {len(row["value"]): [*[False] * (len(row["value"]) - 1), True] for row in rows}
    return [
        {**row, **{name: _where(row[name], last[len(row["value"])]) for name in _WITHOUT_TARGET}}
        if is_grown(row)
        else row
        for row in rows
    ]


def _steps(row: Row) -> list[tuple[str, float | None]]:
    return list(zip(row["prefix_ids"], row["value"], strict=True))


def _where(values: Sequence[Any], kept: Sequence[bool]) -> list[Any]:
    return [value if keep else None for value, keep in zip(values, kept, strict=True)]
