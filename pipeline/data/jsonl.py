"""Lines of JSONL, one object each: bytes in; objects, or what is wrong and what to do about it, out.

Memory holds one line at a time, whatever the input: a line over the limit is passed over without being held.
"""

import json
from collections.abc import Iterator
from typing import IO

from pipeline.core.records import RejectReason

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is passed over without being held in memory."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK_BYTES = 2**20


class UnusableLineError(Exception):
    """A line is no object. `detail` is a sentence for the person who owns the file."""

    def __init__(self, reason: RejectReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def numbered_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not blank, with their numbers from 1; None for one that is too long."""
    for number, line in enumerate(_lines(stream), start=1):
        content = line.removeprefix(BYTE_ORDER_MARK) if line and number == 1 else line
        if content is None or content.strip():
            yield number, content


def parse_object(line: bytes | None) -> dict[str, object]:
    """The object that a line holds. Raises UnusableLineError for any other line, also for None."""
    if line is None:
        detail = f"The line is longer than {MAX_LINE_BYTES:,} bytes; shorten or split it."
        raise UnusableLineError(RejectReason.TOO_LARGE, detail)
    try:
        value = json.loads(line.rstrip(b"\r\n").decode("utf-8"))
    except UnicodeDecodeError as error:
        detail = (
            f"Byte {error.start} of the line, counted from 0, is not UTF-8 ({error.reason}); save the file as UTF-8."
        )
        raise UnusableLineError(RejectReason.NOT_UTF8, detail) from error
    except json.JSONDecodeError as error:
        detail = f"The line is not JSON at column {error.colno} ({error.msg}); every line must be one JSON object."
        raise UnusableLineError(RejectReason.NOT_JSON, detail) from error
    except (ValueError, RecursionError) as error:
        detail = f"The line cannot be read as JSON ({error}); shorten its numbers or nest its lists less deeply."
        raise UnusableLineError(RejectReason.NOT_JSON, detail) from error
    return as_object(value)


def as_object(value: object) -> dict[str, object]:
    """A value out of JSON that must be an object. Raises UnusableLineError where it is none."""
    if isinstance(value, dict):
        return value
    detail = f"The row is a JSON {type(value).__name__}; it must be an object with named columns."
    raise UnusableLineError(RejectReason.NOT_A_ROW, detail)


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    while line := stream.readline(MAX_LINE_BYTES + 1):
        if len(line) <= MAX_LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        while (rest := stream.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield None
