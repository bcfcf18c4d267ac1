"""What an audit came to, in lines: counts, then `sound` or what is wrong, then what nothing needs."""

from collections import Counter
from collections.abc import Iterator, Sequence

from pipeline.analysis.audit.ledger import Check
from pipeline.analysis.audit.run import Report

MAX_SHOWN = 20
"""Names of a kind that are listed; the others are counted."""
_WHAT = {
    Check.SETTINGS: "record of the run's settings",
    Check.RECORDS: "commit records",
    Check.FILES: "files: content, pages, schema, rows",
    Check.ROWS: "input rows, used or rejected",
    Check.ROLLOUTS: "rollouts: each planned one exactly once, and no other",
    Check.TOTALS: "units' totals added up anew",
    Check.LABELS: "chains' labels computed anew",
}


def told(report: Report) -> Iterator[str]:
    """The lines for a person; a name that somebody else gave a file is shown without control characters."""
    wrong = Counter(finding.check for finding in report.findings)
    for check, what in _WHAT.items():
        faults = f", {wrong[check]:,} wrong" if wrong[check] else ""
        verb = "" if report.sound else "looked at: "
        yield f"{check.value:<10} {verb}{report.looked_at.get(check, 0):,} {what}{faults}"
    left = report.leftovers
    if report.pruned:
        yield f"pruned     {report.pruned:,} files that nothing needed"
    elif left.garbage:
        yield f"garbage    {len(left.garbage):,} files no record needs; where nothing is wrong `audit --prune` removes them"
        yield from _indented(left.garbage)
    if left.foreign:
        yield f"foreign    {len(left.foreign):,} names that are not of a run; they are left alone"
        yield from _indented(left.foreign)
    for finding in report.findings:
        yield f"{finding.place}: {finding.fault}: {finding.remedy}"
    if report.owed:
        yield (
            f"unfinished: {report.owed:,} of {report.units:,} units are owed: start `label` with the same settings to go on"
        )
    if report.sound:
        yield "sound"


def _indented(names: Sequence[str]) -> Iterator[str]:
    for name in names[:MAX_SHOWN]:
        yield "  " + "".join(character if character.isprintable() else "�" for character in name)
    if len(names) > MAX_SHOWN:
        yield f"  and {len(names) - MAX_SHOWN:,} more"
