"""What an audit has looked at, and what it found."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

MAX_NAMED = 20
"""Faults of one kind and one unit that are named one by one; the others are counted."""


class Check(StrEnum):
    """The kinds of checks, in the order in which they are made and shown."""

    SETTINGS = "settings"
    RECORDS = "records"
    FILES = "files"
    ROWS = "rows"
    ROLLOUTS = "rollouts"
    TOTALS = "totals"
    LABELS = "labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Where something is wrong, what, and what to do about it."""

    check: Check
    place: str
    fault: str
    remedy: str


@dataclass(slots=True)
class Ledger:
    """`looked_at` counts what each check has looked at; `owed` are ids of units that are not whole."""

    looked_at: Counter[Check] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    owed: list[str] = field(default_factory=list)

    def count(self, check: Check, number: int = 1) -> None:
        self.looked_at[check] += number

    def fault(self, check: Check, place: str, fault: str, remedy: str) -> None:
        self.findings.append(Finding(check=check, place=place, fault=fault, remedy=remedy))

    def faults(self, check: Check, place: str, faults: Iterable[str], remedy: str) -> bool:
        """Note several faults of one place; whether there were any."""
        some = False
        for number, fault in enumerate(faults):
            some = True
            if number == MAX_NAMED:
                self.fault(check, place, f"and more of the kind, beyond these {MAX_NAMED}", remedy)
                break
            self.fault(check, place, fault, remedy)
        return some
