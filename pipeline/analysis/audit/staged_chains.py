"""Proves the staged chains of a run over chains, of `judge`, `check` or `search`: that they are those of the units, numbered
and counted."""

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, FileVerifier, Ledger, check_sequence, remedy_for
from pipeline.analysis.audit.sequences import staged_record
from pipeline.core.ids import content_id
from pipeline.storage.commits import FOLDER, INPUT, UNIT, RecordSequence, commit_name
from pipeline.storage.storage import Storage
from pipeline.storage.units import CHAINS, UNITS


class StagedChains:
    """See the module. `done`: what the command has done with a chain ("judged"), which is part of the ids of units.
    `counted`: what a chain is to the user, in the plural. `elsewhere`: what to do where the chains are of another run."""

    def __init__(
        self,
        storage: Storage,
        ledger: Ledger,
        verifier: FileVerifier,
        staged_id: str,
        *,
        done: str,
        counted: str,
        elsewhere: str,
    ) -> None:
        self._storage = storage
        self._ledger = ledger
        self._verifier = verifier
        self._done = done
        self._counted = counted
        self._elsewhere = elsewhere
        self._resume = f"start `{ledger.command}` with the same settings again"
        self._seen: set[str] = set()
        self._staged = staged_record(storage, ledger, verifier, staged_id)
        if self._staged is None:
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
        if self._staged is None:
            return
        used = rejected = 0
        intact = True
        for shard in self._staged.shards:
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
        recorded = self._staged.totals
        # Each staging of a grown input rejects its repeated rows again.
        if intact and (recorded.used != used or recorded.rejected > rejected):
            fault = (
                f"records {recorded.used:,} chains and {recorded.rejected:,} rejected rows, but its files hold {used:,} "
                f"and {rejected:,}"
            )
            self._ledger.fault(Check.ROWS, commit_name(self._staged), fault, f"move it away and {self._resume}")

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
