"""Compares the output of a program with the expected output, by the usual rules of programming judges.

The texts come in pieces and are compared line by line, so that the memory grows with their longest line alone.
Covered: trailing spaces, blank lines at the end and the kind of line ends are ignored. A line of numbers is compared number by
number. One that the test writes as a decimal may differ by the tolerance (relative, and absolute below 1).
Not covered: problems with several correct outputs. They need a special checker.
"""

import math
import re
from collections.abc import Iterable, Iterator
from itertools import repeat, zip_longest
from typing import Any

PIECE_CHARS = 2**16
"""The length of the pieces of a text."""
_WORD = re.compile(r"\S+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
MAX_NUMBER_CHARS = 400


def same_output(wanted: Iterable[str], found: Iterable[str], *, tolerance: float) -> bool:
    """Whether an output is the expected one; both are texts in pieces. Takes linear time, and ends at the first difference."""
    return all(
        want == got or (want is not None and got is not None and _same_numbers(want, got, tolerance))
        for want, got in zip_longest(_lines(wanted), _lines(found))
    )


def pieces(text: str) -> Iterator[str]:
    """A text in pieces of `PIECE_CHARS`."""
    return (text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS))


def same_value(wanted: Any, found: Any, *, tolerance: float) -> bool:
    """Whether a plain value is the expected one, which comes from JSON: tuples count as lists, and keys as texts.

    The value x also matches the expected list [x], because some data sets wrap the value that a function returns.
    """
    wanted, found = _as_json(wanted), _as_json(found)
    wrapped = isinstance(wanted, list) and len(wanted) == 1
    return _same(wanted, found, tolerance) or (wrapped and _same(wanted[0], found, tolerance))


def _lines(text: Iterable[str]) -> Iterator[str]:
    """The lines of a text without the blanks at their ends and without the empty lines at its end."""
    empty = 0
    for line in _whole_lines(text):
        stripped = line.rstrip()
        if stripped:
            if empty:
                yield from repeat("", empty)
                empty = 0
            yield stripped
        else:
            empty += 1


def _whole_lines(text: Iterable[str]) -> Iterator[str]:
    begun: list[str] = []  # the parts of a line whose end has not come yet
    carried = ""  # a carriage return at the end of a piece, which the next piece may continue
    for piece in text:
        joined = carried + piece
        carried = "\r" if joined.endswith("\r") else ""
        joined = joined.removesuffix("\r")
        lines = joined.splitlines()
        if not lines:
            continue
        unfinished = lines.pop() if joined[-1].splitlines() != [""] else ""
        if lines:
            lines[0] = "".join((*begun, lines[0]))
            begun.clear()
            yield from lines
        begun.append(unfinished)
    yield "".join(begun)


def _same_numbers(wanted: str, found: str, tolerance: float) -> bool:
    return all(
        want is not None and got is not None and _same_number(want, got, tolerance)
        for want, got in zip_longest(_words(wanted), _words(found))
    )


def _words(line: str) -> Iterable[str]:
    return line.split() if len(line) <= PIECE_CHARS else (match[0] for match in _WORD.finditer(line))


def _same_number(wanted: str, found: str, tolerance: float) -> bool:
    if not all(len(text) <= MAX_NUMBER_CHARS and _NUMBER.fullmatch(text) for text in (wanted, found)):
        return False
    exact = wanted.lstrip("+-").isdigit()
    return wanted == found if exact else close(float(wanted), float(found), relative=tolerance, absolute=tolerance)


def close(wanted: float, found: float, *, relative: float, absolute: float) -> bool:
    """Whether two numbers differ by no more than a share of the larger one, or by no more than `absolute`."""
    try:
        return math.isclose(wanted, found, rel_tol=relative, abs_tol=absolute)
    except OverflowError:
        return False


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
        return close(wanted, found, relative=tolerance, absolute=tolerance)
    return isinstance(found, int | float | str | None) and bool(wanted == found)
