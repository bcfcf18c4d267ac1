"""What an audit found, and how it is printed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.core.formatting import format_count, format_unfinished, listed
from pipeline.core.records import Tally
from pipeline.core.shown import Shown
from pipeline.storage.commits import EDITION, GROWTH, INPUT, UNIT

MAX_NAMED = 20
"""The largest number of faults of one kind and one unit that are listed one by one."""
MAX_SHOWN = 20
"""The largest number of names of a kind that are listed; the others are counted."""
_AGAIN = {
    INPUT: "which stages the input again",
    UNIT: "which repeats the work that is lost",
    GROWTH: "which goes on without it: what has been promoted stays",
}
"""What a start of the command does about damage."""


class Check(StrEnum):
    """The kinds of checks. Those of results have the names of tables; a kind of run may have others."""

    SETTINGS = "settings"
    RECORDS = "records"
    FILES = "files"
    ROWS = "rows"
    ROLLOUTS = "rollouts"
    CRITIQUES = "critiques"
    FINDINGS = "findings"
    SCORES = "scores"
    SAMPLES = "samples"
    STEP_SCORES = "stepscores"
    SEARCHES = "searches"
    TOTALS = "totals"
    LABELS = "labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault: where it is (a file or record), what is wrong, and what to do about it."""

    check: str
    where: str
    fault: str
    remedy: str


def findings(check: str, where: str, faults: Iterable[str], remedy: str) -> Iterator[Finding]:
    """The faults of one file or record."""
    for number, fault in enumerate(faults):
        if number == MAX_NAMED:
            fault = f"has more faults of this kind than these {MAX_NAMED}"
        yield Finding(check=check, where=where, fault=fault, remedy=remedy)
        if number == MAX_NAMED:
            break


def tally_faults(recorded: Tally, counted: Tally, source: str) -> Iterator[str]:
    """What is wrong with the totals of a record that differ from those `counted` in the `source`, such as "the log has"."""
    differing = [
        f"{name} is {recorded[name]}, but {source} {counted[name]}"
        for name in {**recorded, **counted}
        if recorded[name] != counted[name]
    ]
    if differing:
        yield f"its totals are wrong: {'; '.join(differing)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What an audit says of a kind of run. `command`: that makes such a run, and `there`: where it is started again.

    A check is printed with a noun, and with what was checked: of the `rows`, of each of the `results`, and of the `labels` that
    are proved last. `settings`: what the settings are of; `totals`: what was counted for these. `sound`: what a run is that is
    finished and has no fault. `edition`: what to do about a damaged edition.
    """

    command: str
    there: str = ""
    settings: str
    rows: tuple[str, str]
    results: Mapping[str, tuple[str, str]]
    totals: str
    labels: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    sound: str
    edition: str = "move it away"

    @property
    def again(self) -> str:
        """What to do about damage."""
        return f"start `{self.command}`{self.there} again"

    def remedy(self, kind: str) -> str:
        """What to do about damaged data of a record sequence of this kind."""
        return self.edition if kind == EDITION else f"{self.again}, {_AGAIN[kind]}"

    @property
    def resume(self) -> str:
        """What to do about an unfinished run."""
        return f"start `{self.command}` with the same settings again"

    @property
    def counted(self) -> Mapping[str, tuple[str, str]]:
        """All checks in the order in which they run and are printed."""
        return {
            Check.SETTINGS: ("record", f" of the {self.settings}'s settings"),
            Check.RECORDS: ("commit record", ""),
            Check.FILES: ("file", ", with content, schema and rows as recorded"),
            Check.ROWS: self.rows,
            **self.results,
            Check.TOTALS: ("unit", f" with totals that were computed again from the {self.totals}"),
            **self.labels,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """`garbage`: our own files, to be removed. `foreign`: those of others, which are never touched. `strays`:
    the garbage of a finished run that is in folders that people read, where it doubles rows."""

    garbage: tuple[str, ...]
    foreign: tuple[str, ...]
    strays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AuditReport(Shown):
    """The result of an audit. `units`: number of units of the input; `owed` of them are unfinished. `parts`: the audits of the
    runs in its folders, by what each of them is."""

    run_dir: str
    words: Words
    looked_at: Mapping[str, int]
    findings: Sequence[Finding]
    units: int
    owed: int
    orphans: Orphans
    pruned: int = 0
    parts: "Mapping[str, Sequence[AuditReport]]" = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether the run and its parts are finished and have no fault, and no folder holds a row twice."""
        return self.proved and not self.orphans.strays and all(part.sound for part in self._all_parts())

    @property
    def proved(self) -> bool:
        """Whether nothing is wrong with what records name, so that garbage can be removed."""
        return not self.findings and not self.owed and all(part.proved for part in self._all_parts())

    def _all_parts(self) -> "Iterator[AuditReport]":
        return (part for parts in self.parts.values() for part in parts)

    def lines(self) -> Iterator[str]:
        """The printed lines: counts, then garbage and foreign files, then faults and unfinished units, or `sound`.

        Control characters in the names of foreign files are replaced.
        """
        words = self.words
        wrong = Counter(finding.check for finding in self.findings)
        for check, (noun, what) in words.counted.items():
            faults = f"; {format_count(wrong[check], 'fault')}, see below" if wrong[check] else ""
            verb = "" if self.sound else "checked: "
            yield f"{check:<10} {verb}{format_count(self.looked_at.get(check, 0), noun)}{what}{faults}"
        left = self.orphans
        if self.pruned:
            yield f"pruned     {format_count(self.pruned, 'file')} that no record needed"
        elif left.garbage:
            files = format_count(len(left.garbage), "file")
            yield f"garbage    {files} that no record needs; `audit --prune` cleans up if nothing is wrong"
            yield from _indented(left.garbage)
        if left.foreign:
            yield f"foreign    {format_count(len(left.foreign), 'name')} that this program never writes or removes"
            yield from _indented(left.foreign)
        for name in left.strays[:MAX_SHOWN]:
            yield f"{name}: does not count, but its rows are read: start the command again, or remove it with `audit --prune`"
        for finding in self.findings:
            yield f"{finding.where}: {finding.fault}: {finding.remedy}"
        if self.owed:
            yield f"{format_unfinished(self.owed, self.units)}: {words.resume}"
        for name, parts in self.parts.items():
            for part in parts:
                yield f"{name:<10} {part.run_dir}"
                yield from part.lines()
        if self.sound:
            with_parts = [f"its {format_count(len(parts), name)}" for name, parts in self.parts.items() if parts]
            said = f"{listed(['the run', *with_parts])} are finished" if with_parts else words.sound
            yield f"sound      {said} and nothing is wrong"

    _shown_lines = lines


def _indented(names: Sequence[str]) -> Iterator[str]:
    for name in names[:MAX_SHOWN]:
        yield "  " + "".join(character if character.isprintable() else "�" for character in name)
    if len(names) > MAX_SHOWN:
        yield f"  and {len(names) - MAX_SHOWN:,} more"
