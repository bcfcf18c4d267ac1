"""Reads JSON lines: turns each line into an object, or into an error that says what is wrong and what to do.

Memory holds one line at a time. A line above the limit is skipped without being loaded.
"""

import json
import sys
from collections.abc import Iterator
from typing import IO

from pipeline.core.json_size import MAX_VALUES, has_too_many_values
from pipeline.core.records import RejectReason

Row = dict[str, object]
MAX_LINE_BYTES = 64 * 2**20
"""A longer line is skipped without being loaded into memory."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK_BYTES = 2**20


class UnusableRowError(Exception):
    """A row that cannot be used. `detail` says what is wrong and what to do, for the owner of the file."""

    def __init__(self, reason: RejectReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def numbered_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not blank, with their numbers from 1. A line that is too long is None."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, None
            continue
        content = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        if content.strip():
            yield number, content


def parse_object(line: bytes | None) -> Row:
    """The JSON object on a line. Raises UnusableRowError for any other line, also for None."""
    if line is None or has_too_many_values(line):
        what = f"is longer than {MAX_LINE_BYTES:,} bytes" if line is None else f"holds more than {MAX_VALUES:,} values"
        raise UnusableRowError(RejectReason.TOO_LARGE, f"The line {what}; shorten or split it.")
    try:
        value = json.loads(line.rstrip(b"\r\n").decode("utf-8"))
    except UnicodeDecodeError as error:
        where = f"Byte {error.start} of the line, counted from 0,"
        detail = f"{where} is not UTF-8 ({error.reason}); save the file as UTF-8."
        raise UnusableRowError(RejectReason.NOT_UTF8, detail) from error
    except json.JSONDecodeError as error:
        remedy = "every line must be one JSON object" if "escape" not in error.msg else "write \\\\ for a backslash"
        detail = f"The line is not JSON at column {error.colno} ({error.msg}); {remedy}."
        raise UnusableRowError(RejectReason.NOT_JSON, detail) from error
    except (ValueError, RecursionError) as error:
        raise UnusableRowError(RejectReason.NOT_JSON, f"The line {beyond_python(error)}.") from error
    return as_object(value)


def beyond_python(error: ValueError | RecursionError) -> str:
    """What a JSON text has that `json.loads` refuses although it is JSON, and the remedy."""
    if isinstance(error, RecursionError):
        return "nests lists or objects too deeply; nest them less deeply"
    return f"holds an integer of more than {sys.get_int_max_str_digits():,} digits; write it as a text or shorten it"


def as_object(value: object) -> Row:
    """A JSON value that must be an object. Raises UnusableRowError otherwise."""
    if isinstance(value, dict):
        return value
    detail = f"The row is a JSON {type(value).__name__}; it must be an object with named columns."
    raise UnusableRowError(RejectReason.NOT_A_ROW, detail)
