"""Whether a value that is not the wanted one may still be meant: rounded, of another number type, or in another order. Pure."""

import ast
import math
from typing import Any

RELATIVE = 1e-2
"""A number that is off by less may be rounded."""
MAX_TEXT = 10_000


def near(value: Any, wanted: Any) -> bool:
    """Whether two plain values differ in rounding, in the type of numbers or in the order of items alone."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        return bool(value == wanted)
    if isinstance(wanted, int | float) and isinstance(value, int | float):
        exact = isinstance(wanted, int) and isinstance(value, int)
        return value == wanted or (not exact and _close(value, wanted))
    if isinstance(wanted, list | tuple) and isinstance(value, list | tuple) and len(value) == len(wanted):
        return all(map(near, value, wanted))
    if isinstance(wanted, dict) and isinstance(value, dict) and value.keys() == wanted.keys():
        return all(near(value[key], wanted[key]) for key in wanted)
    if isinstance(wanted, str) and isinstance(value, str):
        return " ".join(value.split()).lower() == " ".join(wanted.split()).lower()
    try:
        return bool(value == wanted)
    except Exception:  # noqa: BLE001  an object of a program may raise
        return True


def near_texts(wanted: str, found: str) -> bool:
    """Whether what is printed differs in these ways alone, or is no plain value."""
    values: list[Any] = []
    for text in (wanted, found):
        if len(text) > MAX_TEXT:
            return True
        try:
            values.append(ast.literal_eval(text.strip()))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            values.append(None)
    if values[0] is None or values[1] is None:
        return near(found, wanted) or (values[0] is None and wanted.strip() != "None")
    return near(values[1], values[0])


def _close(value: float, wanted: float) -> bool:
    try:
        return math.isclose(value, wanted, rel_tol=RELATIVE, abs_tol=1e-6)
    except OverflowError:
        return False
