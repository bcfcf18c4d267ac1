"""Labels of steps that several chains begin with. Pure.

A PRM is causal: its score of a step depends on the problem and the steps up to it, and on nothing after. So a prefix that
several chains begin with has the same score in all of them, and its label counts once for each.
"""

from collections.abc import Sequence
from typing import Any

from pipeline.core.schemas import GROWN

Row = dict[str, Any]
_WITHOUT_TARGET = ("value", "unbiased_value", "value_sd", "label")
"""Columns of a step that are null where it has no target."""


def targets_of(rows: Sequence[Row]) -> tuple[int, int]:
    """The steps with a value that training takes for targets, and the distinct prefixes among them."""
    prefixes = [prefix for row in rows for prefix, value in _targets(row) if value is not None]
    return len(prefixes), len(set(prefixes))


def counted_once(rows: Sequence[Row]) -> list[Row]:
    """The rows with each prefix's label in the first row alone that has one. Rows without any label are left out."""
    known: set[str] = set()
    found: list[Row] = []
    for row in rows:
        new = [value is not None and prefix not in known for prefix, value in _targets(row)]
        new = [*[False] * (len(row["value"]) - len(new)), *new]
        known.update(prefix for prefix, is_new in zip(row["prefix_ids"], new, strict=True) if is_new)
        if any(new):
            found.append({**row, **{name: _where(row[name], new) for name in _WITHOUT_TARGET}})
    return found


def is_grown(row: Row) -> bool:
    """Whether `grow` has promoted a chain."""
    return bool(row.get(GROWN))


def _targets(row: Row) -> list[tuple[str, float | None]]:
    """Of a promoted chain the last step alone, see `train.targets`."""
    steps = list(zip(row["prefix_ids"], row["value"], strict=True))
    return steps[-1:] if is_grown(row) else steps


def _where(values: Sequence[Any], kept: Sequence[bool]) -> list[Any]:
    return [value if keep else None for value, keep in zip(values, kept, strict=True)]
