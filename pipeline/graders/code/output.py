"""Compares the output of a program with the expected output, by the usual rules of programming judges.

Covered: trailing spaces, blank lines at the end and the kind of line ends are ignored. A line of numbers is compared number by
number, whatever white space separates them. A number that the test writes as a decimal may differ by the tolerance (relative,
and absolute below 1). Everything else must be the same text.
Not covered: problems with several correct outputs. They need a special checker.
"""

import math
import re
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
MAX_NUMBER_CHARS = 400


def same_output(wanted: str, found: str, *, tolerance: float) -> bool:
    """Whether an output is the expected one. Takes linear time and never raises."""
    wanted_lines, found_lines = _lines(wanted), _lines(found)
    return len(wanted_lines) == len(found_lines) and all(
        want == got or _same_numbers(want.split(), got.split(), tolerance)
        for want, got in zip(wanted_lines, found_lines, strict=True)
    )


def same_value(wanted: Any, found: Any, *, tolerance: float) -> bool:
    """Whether a plain value is the expected one, which comes from JSON: tuples count as lists, and keys as texts.

    The value x also matches the expected list [x], because some data sets wrap the value that a function returns.
    """
    wanted, found = _as_json(wanted), _as_json(found)
    wrapped = isinstance(wanted, list) and len(wanted) == 1
    return _same(wanted, found, tolerance) or (wrapped and _same(wanted[0], found, tolerance))


def _lines(text: str) -> list[str]:
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n").split("\n")


def _same_numbers(wanted: list[str], found: list[str], tolerance: float) -> bool:
    return len(wanted) == len(found) and all(
        _same_number(want, got, tolerance) for want, got in zip(wanted, found, strict=True)
    )


def _same_number(wanted: str, found: str, tolerance: float) -> bool:
    if not (_is_number(wanted) and _is_number(found)):
        return False
    exact = wanted.lstrip("+-").isdigit()
    return wanted == found if exact else _close(float(wanted), float(found), tolerance)


def _is_number(text: str) -> bool:
    return len(text) <= MAX_NUMBER_CHARS and _NUMBER.fullmatch(text) is not None


def _close(wanted: float, found: float, tolerance: float) -> bool:
    return math.isclose(wanted, found, rel_tol=tolerance, abs_tol=tolerance)


def _as_json(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    return value


def _same(wanted: Any, found: Any, tolerance: float) -> bool:
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(wanted) == len(found)
            and all(_same(want, got, tolerance) for want, got in zip(wanted, found, strict=True))
        )
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and wanted.keys() == found.keys()
            and all(_same(want, found[key], tolerance) for key, want in wanted.items())
        )
    if isinstance(wanted, float) and isinstance(found, int | float):
        return _near(wanted, found, tolerance)
    return isinstance(found, int | float | str | None) and bool(wanted == found)


def _near(wanted: float, found: float, tolerance: float) -> bool:
    try:
        return _close(wanted, float(found), tolerance)
    except OverflowError:
        return False
