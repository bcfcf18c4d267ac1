"""A finding of the preflight: a line of its table."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from pipeline.core.formatting import format_count


class Level(Enum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A line of the table. `remedy` is empty where all is well, and where the text names it."""

    check: str
    level: Level
    text: str
    remedy: str = ""


def ok(check: str, text: str) -> Finding:
    return Finding(check=check, level=Level.OK, text=text)


def warning(check: str, text: str, remedy: str) -> Finding:
    return Finding(check=check, level=Level.WARNING, text=text, remedy=remedy)


def failed(check: str, text: str, remedy: str = "") -> Finding:
    return Finding(check=check, level=Level.FAILED, text=text, remedy=remedy)


def counted(findings: Sequence[Finding]) -> Iterator[str]:
    """The last line of the table, in parts."""
    numbers = Counter(finding.level for finding in findings)
    if numbers[Level.FAILED]:
        yield f"{numbers[Level.FAILED]} failed"
    if numbers[Level.WARNING]:
        yield format_count(numbers[Level.WARNING], "warning")
