"""Proves the staged chains of a run over chains: that they are those of the units, numbered and counted."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

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
from pipeline.analysis.audit.result import AuditReport, report_of
from pipeline.analysis.audit.sequences import check_superseded, staged_record
from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import UsageError
from pipeline.core.ids import content_id
from pipeline.storage.commits import (
    EDITION,
    FOLDER,
    INPUT,
    UNIT,
    RecordSequence,
    commit_name,
    record_sequences,
    resolve,
)
from pipeline.storage.editions import current_edition, current_files, current_shards, edition_sequence
from pipeline.storage.run_record import CHECK, JUDGE, NAME, SCORE, SEARCH, STAGED_INPUT
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.stored_critiques import READINGS
from pipeline.storage.units import CHAINS, UNITS

_DONE = {
    JUDGE: ("judged", "chains", "judge under another judge.name"),
    CHECK: ("checked", "chains", "move the folder away and check again"),
    SCORE: ("scored", "chains", "score into another folder"),
    SEARCH: ("searched", "problems", "search again in another run_dir"),
}
"""What a command has done with a chain, which is part of the ids of units; what a chain is to the user; what to do where the
chains are of another run."""
Prove = Callable[[RecordSequence, pa.Table, Sequence[ShardRecord]], None]
"""Finds the faults of a unit with these chains. The files: its newest readings, where an edition has some."""


def audited_chain_run(
    storage: Storage, command: str, proof: Callable[[Settings, FileVerifier, Ledger], Prove]
) -> AuditReport:
    """The audit of a run of `command`. `proof`: makes what proves its units, with the settings of the run."""
    ledger = Ledger(command=command)
    verifier = FileVerifier(storage, ledger)
    settings, count, current = None, 0, None
    try:
        settings = audited_settings(storage, ledger)
    except UsageError as error:
        ledger.fault(Check.SETTINGS, NAME, str(error), f"remove the folder if it is no folder of `{command}`")
    units = {found.sequence_id: found for found in record_sequences(storage, UNIT)}
    wholes = {unit_id: whole for unit_id, found in units.items() if (whole := resolve(found).whole)}
    editions = edition_sequence(storage)
    check_sequence(storage, ledger, editions)
    edition = current_edition(editions, wholes)
    newest = current_shards(wholes, edition, READINGS) if edition else {}
    if settings is not None:
        chains = StagedChains(storage, ledger, verifier, settings)
        prove = proof(settings, verifier, ledger)
        for sequence, of_unit in chains.units(units):
            count += 1
            prove(sequence, of_unit, newest.get(sequence.sequence_id, ()))
        current = current_files((chains.staged, *wholes.values()), edition) if chains.staged else None
    for commit in editions.commits:
        if command != JUDGE:
            ledger.fault(Check.RECORDS, commit_name(commit), f"is no record of `{command}`", "move it away")
        for shard in commit.shards:
            if commit is not edition:
                check_superseded(verifier, shard, editions)
            elif shard.file not in verifier.needed:
                verifier.content(shard, remedy_for(EDITION, command))
    return report_of(storage, ledger, count, find_orphans(storage, ledger, verifier, current))


def again_remedy(sequence: RecordSequence, command: str) -> str:
    """What to do about a unit that is not what its record says."""
    again = f"start `{command}` with the same settings again, which does the unit again"
    return f"move {FOLDER}/{UNIT}-{sequence.sequence_id}-* away and {again}"


class StagedChains:
    """See the module."""

    def __init__(self, storage: Storage, ledger: Ledger, verifier: FileVerifier, settings: Settings) -> None:
        self._storage = storage
        self._ledger = ledger
        self._verifier = verifier
        self._done, self._counted, self._elsewhere = _DONE[ledger.command]
        self._resume = f"start `{ledger.command}` with the same settings again"
        self._seen: set[str] = set()
        self.staged = staged_record(storage, ledger, verifier, str(settings.get(STAGED_INPUT)))
        if self.staged is None:
            ledger.fault(Check.ROWS, f"{CHAINS}/", "the staged chains are missing or damaged", self._resume)

    def units(self, sequences: Mapping[str, RecordSequence]) -> Iterator[tuple[RecordSequence, pa.Table]]:
        """The units, each with its chains. Checks their records, and finds the `sequences` that are of no unit."""
        others = dict(sequences)
        for unit_id, chains in self._units():
            sequence = others.pop(unit_id, RecordSequence(kind=UNIT, sequence_id=unit_id))
            check_sequence(self._storage, self._ledger, sequence)
            yield sequence, chains
        for unit_id, sequence in others.items():
            check_sequence(self._storage, self._ledger, sequence)
            fault = f"belongs to no unit of the {self._counted}"
            self._ledger.fault(Check.ROWS, f"{FOLDER}/{UNIT}-{unit_id}-*", fault, "move these records away")

    def _units(self) -> Iterator[tuple[str, pa.Table]]:
        """The units with their chains. Counts them and the rejects, and compares them with the record."""
        if self.staged is None:
            return
        used = rejected = 0
        intact = True
        for shard in self.staged.shards:
            content = self._verifier.content(shard, remedy_for(INPUT, self._ledger.command))
            intact = intact and content is not None
            if content is None:
                continue
            if shard.table != CHAINS:
                rejected += sum(group.num_rows for group in content.groups)
                continue
            unit_ids = json.loads(content.notes.get(UNITS, "[]"))
            if len(unit_ids) != len(content.groups):
                fault = "does not say which units its chains are"
                self._ledger.fault(Check.ROWS, shard.file, fault, remedy_for(INPUT, self._ledger.command))
                intact = False
                continue
            for unit_id, chains in zip(unit_ids, content.groups, strict=True):
                faults = list(self._row_faults(unit_id, chains, used))
                self._ledger.faults(Check.ROWS, shard.file, faults, self._elsewhere)
                used += chains.num_rows
                yield unit_id, chains
        self._ledger.count(Check.ROWS, used + rejected)
        recorded = self.staged.totals
        # Each staging of a grown input rejects its repeated rows again.
        if intact and (recorded.used != used or recorded.rejected > rejected):
            fault = (
                f"records {recorded.used:,} chains and {recorded.rejected:,} rejected rows, but its files hold {used:,} "
                f"and {rejected:,}"
            )
            self._ledger.fault(Check.ROWS, commit_name(self.staged), fault, f"move it away and {self._resume}")

    def _row_faults(self, unit_id: str, chains: pa.Table, first: int) -> Iterator[str]:
        ids = [str(each) for each in chains["chain_id"].to_pylist()]
        if content_id(self._done, *ids) != unit_id:
            yield f"its chains of unit {unit_id} are those of another unit"
        if chains["row"].to_pylist() != list(range(first, first + len(ids))):
            yield f"its chains of unit {unit_id} are not numbered from {first}"
        for each in ids:
            if each in self._seen:
                yield f"chain {each} is in two units"
            self._seen.add(each)
