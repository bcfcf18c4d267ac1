"""What an audit found, and how it is printed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.analysis.audit.findings import Check, Finding, Ledger, Orphans
from pipeline.core.formatting import format_count, format_unfinished, listed
from pipeline.core.shown import Shown
from pipeline.storage.run_record import CHECK, JUDGE, LABEL, SCORE, SEARCH
from pipeline.storage.storage import Storage

MAX_SHOWN = 20
"""The largest number of names of a kind that are listed; the others are counted."""
_OF_ANY = {
    Check.RECORDS: ("commit record", ""),
    Check.FILES: ("file", ", with content, schema and rows as recorded"),
}
_OF_LABELS = {
    Check.SETTINGS: ("record", " of the run's settings"),
    **_OF_ANY,
    Check.ROWS: ("input row", ", used or rejected"),
    Check.ROLLOUTS: ("rollout", ", each planned one exactly once and no other"),
    Check.TOTALS: ("unit", " with totals that were computed again from the rollouts"),
    Check.LABELS: ("chain", " with labels that were computed again from the rollouts"),
}
"""What each check of a run of `label` has counted: a noun, and what was checked."""
_OF_A_JUDGE = {
    Check.SETTINGS: ("record", " of the judge's settings"),
    **_OF_ANY,
    Check.ROWS: ("chain", " to judge, or rejected"),
    Check.CRITIQUES: ("critique", ", each vote exactly once and read as its text says"),
    Check.TOTALS: ("unit", " with totals that were computed again from the critiques"),
}
_OF_A_CHECK = {
    Check.SETTINGS: ("record", " of the check's settings"),
    **_OF_ANY,
    Check.ROWS: ("chain", " to check, or rejected"),
    Check.FINDINGS: ("finding", ", one of each step, and verdicts with evidence"),
    Check.TOTALS: ("unit", " with totals that were computed again from the findings"),
}
_OF_SCORES = {
    Check.SETTINGS: ("record", " of the scorer's settings"),
    **_OF_ANY,
    Check.ROWS: ("chain", " to score, or rejected"),
    Check.SCORES: ("score", ", one of each chain, and scores of chains that follow from those of steps"),
    Check.TOTALS: ("unit", " with totals that were computed again from the scores"),
}
_OF_A_SEARCH = {
    Check.SETTINGS: ("record", " of the search's settings"),
    **_OF_ANY,
    Check.ROWS: ("problem", " to search, or rejected"),
    Check.SAMPLES: ("sample", ", each after a known step, with ids, ends and counts that fit its text"),
    Check.STEP_SCORES: ("score", ", each of a prefix that was sampled"),
    Check.SEARCHES: ("search", ", each made again from its log, with the same candidates and the same choice"),
    Check.TOTALS: ("unit", " with totals that were computed again from the searches"),
}
_WHAT = {LABEL: _OF_LABELS, JUDGE: _OF_A_JUDGE, CHECK: _OF_A_CHECK, SCORE: _OF_SCORES, SEARCH: _OF_A_SEARCH}
_SOUND = {
    JUDGE: "the judge is finished",
    CHECK: "all chains are checked",
    SCORE: "all chains are scored",
    SEARCH: "all problems are searched",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AuditReport(Shown):
    """The result of an audit. `units`: number of units of the input; `owed` of them are unfinished. `command`: whose run
    it is. `judges`, `checks`: the audits of those of a run of `label`."""

    run_dir: str
    looked_at: Mapping[Check, int]
    findings: Sequence[Finding]
    units: int
    owed: int
    orphans: Orphans
    pruned: int = 0
    command: str = LABEL
    judges: "tuple[AuditReport, ...]" = ()
    checks: "tuple[AuditReport, ...]" = ()

    @property
    def sound(self) -> bool:
        """Whether the run, its judges and its checks are finished and have no fault, and no folder holds a row twice."""
        return self.proved and not self.orphans.strays and all(part.sound for part in (*self.judges, *self.checks))

    @property
    def proved(self) -> bool:
        """Whether nothing is wrong with what records name, so that garbage can be removed."""
        return not self.findings and not self.owed and all(part.proved for part in (*self.judges, *self.checks))

    def _shown_lines(self) -> Iterator[str]:
        return audit_lines(self)


def report_of(storage: Storage, ledger: Ledger, units: int, orphans: Orphans) -> AuditReport:
    """The report of what a ledger has noted."""
    return AuditReport(
        run_dir=storage.run_dir,
        looked_at=ledger.looked_at,
        findings=ledger.findings,
        units=units,
        owed=len(ledger.owed),
        orphans=orphans,
        command=ledger.command,
    )


def audit_lines(report: AuditReport) -> Iterator[str]:
    """The printed lines: counts, then garbage and foreign files, then faults and unfinished units, or `sound`.

    Control characters in the names of foreign files are replaced.
    """
    wrong = Counter(finding.check for finding in report.findings)
    for check, (noun, what) in _WHAT[report.command].items():
        counted = format_count(report.looked_at.get(check, 0), noun)
        faults = f"; {format_count(wrong[check], 'fault')}, see below" if wrong[check] else ""
        verb = "" if report.sound else "checked: "
        yield f"{check.value:<10} {verb}{counted}{what}{faults}"
    left = report.orphans
    if report.pruned:
        yield f"pruned     {format_count(report.pruned, 'file')} that no record needed"
    elif left.garbage:
        files = format_count(len(left.garbage), "file")
        yield f"garbage    {files} that no record needs; `audit --prune` cleans up if nothing is wrong"
        yield from _indented(left.garbage)
    if left.foreign:
        yield f"foreign    {format_count(len(left.foreign), 'name')} that this program never writes or removes"
        yield from _indented(left.foreign)
    for name in left.strays[:MAX_SHOWN]:
        yield f"{name}: does not count, but its rows are read: start the command again, or remove it with `audit --prune`"
    for finding in report.findings:
        yield f"{finding.where}: {finding.fault}: {finding.remedy}"
    if report.owed:
        again = f"start `{report.command}` with the same settings again"
        yield f"{format_unfinished(report.owed, report.units)}: {again}"
    for name, parts in (("judge", report.judges), ("check", report.checks)):
        for part in parts:
            yield f"{name:<10} {part.run_dir}"
            yield from audit_lines(part)
    if report.sound and report.command == LABEL:
        judges = f"its {format_count(len(report.judges), 'judge')}" if report.judges else ""
        checks = f"its {format_count(len(report.checks), 'check')}" if report.checks else ""
        whole = listed(["the run", *filter(None, (judges, checks))])
        be = "are" if judges or checks else "is"
        yield f"sound      {whole} {be} finished and nothing is wrong"
    elif report.sound:
        yield f"sound      {_SOUND[report.command]} and nothing is wrong"


def _indented(names: Sequence[str]) -> Iterator[str]:
    for name in names[:MAX_SHOWN]:
        yield "  " + "".join(character if character.isprintable() else "�" for character in name)
    if len(names) > MAX_SHOWN:
        yield f"  and {len(names) - MAX_SHOWN:,} more"
