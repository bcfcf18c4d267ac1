"""The one way through a run directory that an audit goes, whatever its kind of run.

It looks at settings, editions, the staged input, each unit with its rows, records, files and totals, units of no rows, and
files that nothing needs.

`RunAudit` is what a kind of run adds to it.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from pipeline.analysis.audit.findings import AuditReport, Check, Finding, Words, findings, tally_faults
from pipeline.analysis.audit.ledger import Ledger
from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import UsageError
from pipeline.core.ids import content_id
from pipeline.core.records import Tally, Totals
from pipeline.storage.commits import (
    EDITION,
    FOLDER,
    GROWTH,
    INPUT,
    UNIT,
    Commit,
    CommitState,
    RecordSequence,
    commit_name,
    record_sequences,
    resolve,
    shards_in_use,
)
from pipeline.storage.editions import current_edition, current_files, edition_sequence
from pipeline.storage.growths import growth_sequence, growths_needed, growths_of
from pipeline.storage.run_record import NAME, STAGED_INPUT
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import RunFolder
from pipeline.storage.units import CHAINS, UNITS

Tables = defaultdict[str, list[pa.Table]]
"""Files of a unit by their table; none of one that it lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as its records describe it. `wholes`: the records of whole units, by unit id. `edition`: with its current results,
    where these are no longer its own."""

    ledger: Ledger
    settings: Settings
    wholes: Mapping[str, Commit]
    edition: Commit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A whole unit of which all files are as committed. `rows`: what `RunAudit.rows` made of its input. `files`: in use."""

    rows: Any
    sequence: RecordSequence
    whole: Commit
    files: Mapping[ShardRecord, pa.Table]

    @property
    def unit_id(self) -> str:
        return self.sequence.sequence_id

    @property
    def where(self) -> str:
        """The name of the record that completes it."""
        return commit_name(self.whole)

    @property
    def tables(self) -> Tables:
        """The files that the whole record names."""
        return _by_table((shard, self.files[shard]) for shard in self.whole.shards)


class RunAudit:
    """What is only a kind of run's own; an object is of one run. It is written for runs whose units are chains, or problems.

    `table`: that of the staged input. `input`: what units are of; `lost_input`: what is said where it is damaged. `done`: what
    is done with a chain, which is part of the ids of units. `elsewhere`: what to do where the chains are of another run.
    `check`: which has counted the results. `source`: where totals come from, see `tally_faults`. `among`: where such runs are
    in the directory of a run of `label`; None: they have directories of their own. `refuses_other_schemas`: whether a directory
    of another schema version is an error, and no finding.
    """

    words: ClassVar[Words]
    table: ClassVar[str] = CHAINS
    input: ClassVar[str] = "chains"
    lost_input: ClassVar[str] = "the staged chains are missing or damaged"
    done: ClassVar[str]
    elsewhere: ClassVar[str]
    check: ClassVar[str]
    source: ClassVar[str]
    among: ClassVar[RunFolder[Any] | None] = None
    refuses_other_schemas: ClassVar[bool] = False

    def __init__(self, run: Run) -> None:
        self.ledger = run.ledger
        self.settings = run.settings
        self._seen: set[str] = set()

    @classmethod
    def begin(cls, run: Run) -> Self | None:
        """What audits a run. None, and a finding, where its settings do not say how."""
        return cls(run)

    def tally(self, tables: Tables) -> Tally:
        """The counts of the results in the files of a record."""
        return sum(map(self.table_tally, tables[self.check]), Tally())

    def table_tally(self, table: pa.Table, /) -> Tally:
        """The counts of the results in a file."""
        raise NotImplementedError

    def whole_tally(self, unit: Unit, tables: Tables) -> Tally:
        """The counts of a whole unit."""
        return self.tally(tables)

    def faults(self, unit: Unit, tables: Tables) -> Iterator[Finding]:
        """The faults of the results of a unit. `tables`: those that its whole record names."""
        return self.findings(unit, self.result_faults(unit.rows, tables[self.check]))

    def result_faults(self, chains: pa.Table, results: Sequence[pa.Table]) -> Iterator[str]:
        """What is wrong with the results of these chains, as texts."""
        raise NotImplementedError

    def findings(self, unit: Unit, faults: Iterable[str], check: str = "") -> Iterator[Finding]:
        """Faults of what the whole record of a unit names."""
        return findings(check or self.check, unit.where, faults, self.remedy(unit.unit_id))

    def prove(self, unit: Unit) -> Iterator[Finding]:
        """The faults of a unit, its totals included. The ledger notes how much was looked at."""
        tables = unit.tables
        for table in self.words.results:
            self.ledger.looked_at[table] += sum(each.num_rows for each in tables[table])
        yield from self.faults(unit, tables)
        self.ledger.looked_at[Check.TOTALS] += 1
        wrong = tally_faults(unit.whole.tally, self.whole_tally(unit, tables), self.source)
        yield from self.findings(unit, wrong, Check.TOTALS)

    def remedy(self, unit_id: str) -> str:
        """What to do about a unit that is not what its record says."""
        return f"move {FOLDER}/{UNIT}-{unit_id}-* away and {self.words.resume}, which does the unit again"

    def part_remedy(self, unit_id: str) -> str:
        """What to do about the record of a part of a unit."""
        return self.remedy(unit_id)

    def rows(self, group: pa.Table, notes: Mapping[str, str]) -> Any:
        """The input of a unit, from a row group of a file with these notes."""
        return group

    def input_faults(self, sequence: RecordSequence) -> Iterator[Finding]:
        """The faults of the records of the staged input."""
        return iter(())

    def row_faults(self, unit_id: str, rows: Any, first: int, where: str) -> Iterator[Finding]:
        """The faults of the input of a unit, in the file `where`, behind the `first` rows of the run."""
        return findings(Check.ROWS, where, self._chain_faults(unit_id, rows, first), self.elsewhere)

    def _chain_faults(self, unit_id: str, chains: pa.Table, first: int) -> Iterator[str]:
        ids = [str(each) for each in chains["chain_id"].to_pylist()]
        if content_id(self.done, *ids) != unit_id:
            yield f"its chains of unit {unit_id} are those of another unit"
        if chains["row"].to_pylist() != list(range(first, first + len(ids))):
            yield f"its chains of unit {unit_id} are not numbered from {first}"
        for each in ids:
            if each in self._seen:
                yield f"chain {each} is in two units"
            self._seen.add(each)

    def count_fault(self, recorded: Totals, used: int, rejected: int) -> str:
        """What is wrong with the recorded counts of an input that has these rows; empty if nothing is."""
        # Each staging of a grown input rejects its repeated rows again.
        if recorded.used == used and recorded.rejected <= rejected:
            return ""
        return (
            f"records {recorded.used:,} chains and {recorded.rejected:,} rejected rows, but its files hold {used:,} "
            f"and {rejected:,}"
        )

    def edition_faults(self, commit: Commit) -> Iterator[Finding]:
        """The faults of the record of an edition, found after those of all units."""
        fault = f"is no record of `{self.words.command}`"
        return findings(Check.RECORDS, commit_name(commit), [fault], "move it away")


def audited(storage: Storage, kind: type[RunAudit], parts: Collection[str]) -> AuditReport:
    """The audit of a run of a `kind`. `parts`: folders of runs in a run directory. Raises Unreachable, and UsageError for a run
    of another schema version, where its kind refuses these."""
    return _Walk(storage, kind).report(parts)


class _Walk:
    def __init__(self, storage: Storage, kind: type[RunAudit]) -> None:
        self._storage = storage
        self._kind = kind
        self._ledger = Ledger(storage, kind.words)
        self._intact = True
        self._units = 0

    def report(self, parts: Collection[str]) -> AuditReport:
        storage, ledger = self._storage, self._ledger
        settings = self._settings()
        units = {found.sequence_id: found for found in record_sequences(storage, UNIT)}
        wholes = {unit_id: whole for unit_id, found in units.items() if (whole := resolve(found).whole)}
        editions = edition_sequence(storage)
        ledger.sequence(editions)
        edition = current_edition(editions, wholes)
        growths = self._growths(wholes)
        own = staged = None
        if settings is not None:
            run = Run(ledger=ledger, settings=settings, wholes=wholes, edition=edition)
            own = self._kind.begin(run)
            if own is not None:
                staged = self._prove_units(own, str(settings.get(STAGED_INPUT)), units)
        self._prove_editions(own, editions, edition)
        current = current_files((staged, *growths, *wholes.values()), edition) if staged else None
        orphans = ledger.orphans(current, parts)
        return AuditReport(
            run_dir=storage.run_dir,
            words=self._kind.words,
            looked_at=ledger.looked_at,
            findings=ledger.findings,
            units=self._units,
            owed=len(ledger.owed),
            orphans=orphans,
        )

    def _settings(self) -> Settings | None:
        try:
            return self._ledger.settings()
        except UsageError as error:
            if self._kind.refuses_other_schemas:
                raise
            remedy = f"remove the folder if it is no folder of `{self._kind.words.command}`"
            self._ledger.fault(Check.SETTINGS, NAME, str(error), remedy)
            return None

    def _growths(self, wholes: Mapping[str, Commit]) -> tuple[Commit, ...]:
        """The growths, checked. A unit that owes one is unfinished."""
        growths = growth_sequence(self._storage)
        self._ledger.sequence(growths)
        found = growths_of(growths)
        for commit in found:
            for shard in commit.shards:
                self._ledger.content(shard, self._ledger.words.remedy(GROWTH))
        needed = growths_needed(found)
        self._ledger.owed += [unit for unit, whole in wholes.items() if whole.unit_target.growths < needed]
        return found

    def _prove_units(self, own: RunAudit, staged_id: str, units: dict[str, RecordSequence]) -> Commit | None:
        """Find the faults of all units. Returns the record of the input."""
        ledger = self._ledger
        inputs = RecordSequence(kind=INPUT, sequence_id=staged_id)
        staged = None
        for found in record_sequences(self._storage, INPUT):
            ledger.sequence(found)
            if found.sequence_id == staged_id:
                inputs, staged = found, resolve(found).whole
            for commit in found.commits:
                if commit is not staged:
                    ledger.replaced(commit.shards, found)
        if staged is None:
            ledger.fault(Check.ROWS, f"{own.table}/", own.lost_input, own.words.resume)
        ledger.findings += own.input_faults(inputs)
        for unit_id, rows in self._input(own, staged) if staged else ():
            self._units += 1
            sequence = units.pop(unit_id, RecordSequence(kind=UNIT, sequence_id=unit_id))
            self._prove_unit(own, sequence, rows)
        for unit_id, sequence in units.items():
            self._prove_unit(own, sequence, None)
            if staged and self._intact:
                where, fault = f"{FOLDER}/{UNIT}-{unit_id}-*", f"belongs to no unit of the {own.input}"
                ledger.fault(Check.ROWS, where, fault, "move these records away")
        return staged

    def _input(self, own: RunAudit, staged: Commit) -> Iterator[tuple[str, Any]]:
        """The units of the input with their rows. Counts them and the rejects, and notes damage."""
        ledger, remedy = self._ledger, self._ledger.words.remedy(INPUT)
        used = rejected = 0
        for shard in staged.shards:
            content = ledger.content(shard, remedy)
            if content is None:
                self._intact = False
                continue
            groups, notes = content
            if shard.table != own.table:
                rejected += sum(group.num_rows for group in groups)
                continue
            unit_ids: list[str] = json.loads(notes.get(UNITS, "[]"))
            if len(unit_ids) != len(groups):
                fault = f"does not say which units its {own.table} are"
                ledger.fault(Check.ROWS, shard.file, fault, remedy)
                self._intact = False
                continue
            for unit_id, group in zip(unit_ids, groups, strict=True):
                rows = own.rows(group, notes)
                ledger.findings += own.row_faults(unit_id, rows, used, shard.file)
                used += group.num_rows
                yield unit_id, rows
        ledger.looked_at[Check.ROWS] += used + rejected
        if self._intact and (fault := own.count_fault(staged.totals, used, rejected)):
            ledger.fault(Check.ROWS, commit_name(staged), fault, f"move it away and {own.words.resume}")

    def _prove_unit(self, own: RunAudit, sequence: RecordSequence, rows: Any) -> None:
        """Find the faults of a unit: those of its records and files, and then of what is in them; only the former without
        `rows`, as the input is damaged. Notes whether the unit is unfinished."""
        ledger, unit_id = self._ledger, sequence.sequence_id
        ledger.sequence(sequence)
        wanted = list(shards_in_use(sequence))
        files = {
            shard: table for shard in wanted if (table := ledger.table(shard, ledger.words.remedy(UNIT))) is not None
        }
        void = {name for commit in sequence.commits for name in commit.void}
        for commit in sequence.commits:
            present = {
                shard: table
                for shard in commit.shards
                if shard.file not in void and (table := self._table(shard, files)) is not None
            }
            if commit.state is CommitState.PART and len(present) == len(commit.shards):
                wrong = tally_faults(commit.tally, own.tally(_by_table(present.items())), own.source)
                ledger.findings += findings(Check.TOTALS, commit_name(commit), wrong, own.part_remedy(unit_id))
        whole = resolve(sequence).whole
        if whole is None:
            ledger.owed.append(unit_id)
        elif rows is not None and len(files) == len(wanted):
            unit = Unit(rows=rows, sequence=sequence, whole=whole, files=files)
            with ledger.content_checked(own.check, unit.where, own.remedy(unit_id)):
                for finding in own.prove(unit):
                    ledger.findings.append(finding)

    def _table(self, shard: ShardRecord, files: Mapping[ShardRecord, pa.Table]) -> pa.Table | None:
        return files.get(shard) if shard.file in self._ledger.needed else self._ledger.superseded_table(shard)

    def _prove_editions(self, own: RunAudit | None, editions: RecordSequence, current: Commit | None) -> None:
        """Check the files of editions that are not current, and the files of the current one that no unit has checked yet."""
        ledger = self._ledger
        for commit in editions.commits:
            if own is not None:
                ledger.findings += own.edition_faults(commit)
            if commit is not current:
                ledger.replaced(commit.shards, editions)
            else:
                for shard in commit.shards:
                    if shard.file not in ledger.needed:
                        ledger.content(shard, ledger.words.remedy(EDITION))


def rows_of(tables: Iterable[pa.Table], *names: str) -> Iterator[tuple[Any, ...]]:
    """The values in these columns, row by row."""
    for table in tables:
        yield from zip(*(table[name].to_pylist() for name in names), strict=True)


def _by_table(files: Iterable[tuple[ShardRecord, pa.Table]]) -> Tables:
    found: Tables = defaultdict(list)
    for shard, table in files:
        found[shard.table].append(table)
    return found
