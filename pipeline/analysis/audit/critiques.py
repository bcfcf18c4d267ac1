"""Proves the run of a judge: its settings, records and files, that each vote on each chain is there exactly once, that
critiques are read as their texts say, and the totals.

It does not ask whether a critique is right. Memory grows with the number of chains, not with their texts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

import pyarrow as pa

from pipeline.analysis.audit.findings import (
    Check,
    FileVerifier,
    Ledger,
    audited_settings,
    check_sequence,
    find_orphans,
    remedy_for,
)
from pipeline.analysis.audit.result import AuditReport
from pipeline.analysis.readings import Reader, reader_of, steps_of
from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import UsageError
from pipeline.core.ids import content_id, critique_id
from pipeline.core.records import Reading, Totals
from pipeline.core.tables import readings_of
from pipeline.storage.commits import (
    EDITION,
    FOLDER,
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
from pipeline.storage.editions import current_edition, current_shards, edition_sequence
from pipeline.storage.run_record import JUDGE, NAME, STAGED_INPUT
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.stored_critiques import READINGS, TABLE, critique_totals
from pipeline.storage.units import CHAINS, UNITS

_RESUME = "start `judge` with the same settings again"
_REREAD = "read the critiques again with `regrade`"
_READS_OTHERWISE = "is read otherwise now than in the record"


def audited_judge(storage: Storage) -> AuditReport:
    """The audit of a judge's run directory. A judge that cannot be used here is a finding."""
    return _JudgeAudit(storage).report()


class _JudgeAudit:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._ledger = Ledger(command=JUDGE)
        self._verifier = FileVerifier(storage, self._ledger)
        self._units = 0
        self._seen: set[str] = set()

    def report(self) -> AuditReport:
        storage, ledger = self._storage, self._ledger
        try:
            settings = audited_settings(storage, ledger)
        except UsageError as error:
            settings = None
            ledger.fault(Check.SETTINGS, NAME, str(error), "remove the folder if it is no judge's")
        units = {found.sequence_id: found for found in record_sequences(storage, UNIT)}
        wholes = {unit_id: whole for unit_id, found in units.items() if (whole := resolve(found).whole)}
        editions = edition_sequence(storage)
        check_sequence(storage, ledger, editions)
        edition = current_edition(editions, wholes)
        newest = {} if edition is None else current_shards(wholes, edition, READINGS)
        if settings is not None:
            self._prove_units(settings, self._reader(settings), units, newest)
        self._look_at_editions(editions, edition)
        return AuditReport(
            run_dir=storage.run_dir,
            looked_at=ledger.looked_at,
            findings=ledger.findings,
            units=self._units,
            owed=len(ledger.owed),
            orphans=find_orphans(storage, self._verifier.needed, ()),
            command=JUDGE,
        )

    def _reader(self, settings: Settings) -> Reader | None:
        try:
            return reader_of(settings)
        except (UsageError, ValueError, TypeError) as error:
            self._ledger.fault(
                Check.SETTINGS,
                NAME,
                f"names a judge that cannot be used here ({error})",
                "install it, or restore the file",
            )
            return None

    def _prove_units(
        self,
        settings: Settings,
        reader: Reader | None,
        units: dict[str, RecordSequence],
        newest: Mapping[str, Sequence[ShardRecord]],
    ) -> None:
        name, votes = str(settings.get("judge.name")), int(str(settings.get("judge.votes", 0)))
        staged = self._staged(str(settings.get(STAGED_INPUT)))
        for unit_id, chains in self._chains(staged) if staged else ():
            self._units += 1
            sequence = units.pop(unit_id, RecordSequence(kind=UNIT, sequence_id=unit_id))
            check_sequence(self._storage, self._ledger, sequence)
            proof = _Unit(unit_id, sequence, name, votes, self._verifier, self._ledger)
            proof.prove(chains, reader, newest.get(unit_id, ()))
        for unit_id, sequence in units.items():
            check_sequence(self._storage, self._ledger, sequence)
            where = f"{FOLDER}/{UNIT}-{unit_id}-*"
            self._ledger.fault(Check.ROWS, where, "belongs to no unit of the chains", "move these records away")

    def _staged(self, staged_id: str) -> Commit | None:
        """The record of the staged chains. Also checks the files of earlier stagings."""
        staged = None
        for found in record_sequences(self._storage, INPUT):
            check_sequence(self._storage, self._ledger, found)
            whole = resolve(found).whole if found.sequence_id == staged_id else None
            staged = whole or staged
            for commit in found.commits:
                for shard in commit.shards if commit is not whole else ():
                    self._superseded(shard, found)
        if staged is None:
            self._ledger.fault(Check.ROWS, f"{CHAINS}/", "the staged chains are missing or damaged", _RESUME)
        return staged

    def _chains(self, staged: Commit) -> Iterator[tuple[str, pa.Table]]:
        """The units with their chains. Counts them and the rejects, and compares them with the record."""
        used = rejected = 0
        intact = True
        for shard in staged.shards:
            content = self._verifier.content(shard, remedy_for(INPUT, JUDGE))
            intact = intact and content is not None
            if content is None:
                continue
            if shard.table != CHAINS:
                rejected += sum(group.num_rows for group in content.groups)
                continue
            for unit_id, chains in zip(json.loads(content.notes[UNITS]), content.groups, strict=True):
                faults = list(self._row_faults(unit_id, chains, used))
                self._ledger.faults(Check.ROWS, shard.file, faults, "judge under another judge.name")
                used += chains.num_rows
                yield unit_id, chains
        self._ledger.count(Check.ROWS, used + rejected)
        recorded = staged.totals
        # Each staging of a grown input rejects its repeated rows again.
        if intact and (recorded.used != used or recorded.rejected > rejected):
            fault = (
                f"records {recorded.used:,} chains and {recorded.rejected:,} rejected rows, but its files hold {used:,} "
                f"and {rejected:,}"
            )
            self._ledger.fault(Check.ROWS, commit_name(staged), fault, f"move it away and {_RESUME}")

    def _row_faults(self, unit_id: str, chains: pa.Table, first: int) -> Iterator[str]:
        ids = [str(each) for each in chains["chain_id"].to_pylist()]
        if content_id("judged", *ids) != unit_id:
            yield f"its chains of unit {unit_id} are those of another unit"
        if chains["row"].to_pylist() != list(range(first, first + len(ids))):
            yield f"its chains of unit {unit_id} are not numbered from {first}"
        for each in ids:
            if each in self._seen:
                yield f"chain {each} is in two units"
            self._seen.add(each)

    def _look_at_editions(self, editions: RecordSequence, current: Commit | None) -> None:
        for commit in editions.commits:
            for shard in commit.shards:
                if commit is not current:
                    self._superseded(shard, editions)
                elif shard.file not in self._verifier.needed:
                    self._verifier.content(shard, remedy_for(EDITION, JUDGE))

    def _superseded(self, shard: ShardRecord, sequence: RecordSequence) -> None:
        void = {name for commit in sequence.commits for name in commit.void}
        if not {shard.file} & (void | self._verifier.needed | self._verifier.superseded):
            self._verifier.superseded_table(shard)


class _Unit:
    """The proof of one unit of a judge with this name and this number of votes."""

    def __init__(
        self, unit_id: str, sequence: RecordSequence, name: str, votes: int, verifier: FileVerifier, ledger: Ledger
    ) -> None:
        self._unit_id = unit_id
        self._sequence = sequence
        self._name = name
        self._votes = votes
        self._verifier = verifier
        self._ledger = ledger
        self._remedy = f"move {FOLDER}/{UNIT}-{unit_id}-* away and {_RESUME}, which judges the unit again"

    def prove(self, chains: pa.Table, reader: Reader | None, newest: Sequence[ShardRecord]) -> None:
        """Find the faults of the unit. `reader`: None where its critiques cannot be read here."""
        tables = self._tables()
        whole = resolve(self._sequence).whole
        if whole is None:
            self._ledger.owed.append(self._unit_id)
            return
        if any(shard not in tables for shard in shards_in_use(self._sequence)):
            return
        named = [tables[shard] for shard in whole.shards if shard.table == TABLE]
        where = commit_name(whole)
        try:
            self._prove_votes(chains, named, where)
            self._prove_totals(named, whole)
            critiques = pa.concat_tables(named) if named else None
            if critiques is not None and reader is not None:
                self._prove_readings(chains, critiques, reader, newest, where)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            # Only a forged checksum lets such content through, and it can break anything.
            self._ledger.fault(Check.CRITIQUES, where, f"names files with invalid content ({error!r})", self._remedy)

    def _tables(self) -> dict[ShardRecord, pa.Table]:
        """The intact files in use. Also checks superseded files, and the totals of each part record."""
        tables = {}
        for shard in shards_in_use(self._sequence):
            if (table := self._verifier.table(shard, remedy_for(UNIT, JUDGE))) is not None:
                tables[shard] = table
        void = {name for commit in self._sequence.commits for name in commit.void}
        for commit in self._sequence.commits:
            own = [shard for shard in commit.shards if shard.file not in void]
            found = [
                tables.get(shard) if shard.file in self._verifier.needed else self._verifier.superseded_table(shard)
                for shard in own
            ]
            if commit.state is CommitState.PART and len(own) == len(commit.shards):
                self._prove_totals(found, commit)
        return tables

    def _prove_votes(self, chains: pa.Table, named: Sequence[pa.Table], where: str) -> None:
        """Each vote of each chain is there once, with the right ids."""
        columns = ("row", "vote", "chain_id", "problem_id", "critique_id", "judge")
        found = [row for table in named for row in zip(*(table[name].to_pylist() for name in columns), strict=True)]
        self._ledger.count(Check.CRITIQUES, len(found))
        of_chain = zip(*(chains[name].to_pylist() for name in ("row", "chain_id", "problem_id")), strict=True)
        wanted = {
            (row, vote): (chain, problem, critique_id(self._name, chain, vote), self._name)
            for row, chain, problem in of_chain
            for vote in range(self._votes)
        }
        faults = []
        for row, vote, *ids in found:
            if wanted.get((row, vote)) != tuple(ids):
                faults.append(f"vote {vote} on chain {ids[0]} is there twice, or is none of the unit's")
            wanted.pop((row, vote), None)
        faults += [f"vote {vote} on chain {ids[0]} is missing" for (_, vote), ids in wanted.items()]
        self._ledger.faults(Check.CRITIQUES, where, faults, self._remedy)

    def _prove_totals(self, tables: Sequence[pa.Table | None], commit: Commit) -> None:
        if any(table is None for table in tables):
            return
        if commit.state is CommitState.WHOLE:
            self._ledger.count(Check.TOTALS)
        counted = sum((critique_totals(table, self._votes) for table in tables if table is not None), Totals())
        if counted != commit.totals:
            differing = [
                f"{part.name} is {getattr(commit.totals, part.name)}, but the critiques have {getattr(counted, part.name)}"
                for part in fields(Totals)
                if getattr(commit.totals, part.name) != getattr(counted, part.name)
            ]
            fault = f"its totals are wrong: {'; '.join(differing)}"
            self._ledger.fault(Check.TOTALS, commit_name(commit), fault, self._remedy)

    def _prove_readings(
        self, chains: pa.Table, critiques: pa.Table, reader: Reader, newest: Sequence[ShardRecord], where: str
    ) -> None:
        """The newest readings are those that the texts have now."""
        shown: list[Reading] = readings_of(critiques)
        if newest:
            table = self._verifier.table(newest[0], remedy_for(EDITION, JUDGE))
            if table is None:
                return
            where = newest[0].file
            if table["critique_id"].to_pylist() != critiques["critique_id"].to_pylist():
                self._ledger.fault(Check.CRITIQUES, where, "has the readings of other critiques", _REREAD)
                return
            shown = readings_of(table)
        read = reader(critiques, steps_of(chains))
        ids = zip(critiques["chain_id"].to_pylist(), critiques["vote"].to_pylist(), shown, read, strict=True)
        faults = [f"vote {vote} on chain {chain} {_READS_OTHERWISE}" for chain, vote, was, now in ids if was != now]
        if faults:
            # A new parser may read all of them otherwise, so a unit has one finding.
            more = f", and so {'is' if len(faults) == 2 else 'are'} {len(faults) - 1:,} more" if len(faults) > 1 else ""
            self._ledger.fault(Check.CRITIQUES, where, f"{faults[0]}{more}", _REREAD)
