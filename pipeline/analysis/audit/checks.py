"""Proves the check of a run by a verifier: its settings, records and files, that each step of each chain has exactly one
finding, that findings are possible ones, and the totals.

It does not ask the verifier again. Memory grows with the number of chains, not with their texts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, FileVerifier, Ledger, audited_settings, find_orphans
from pipeline.analysis.audit.result import AuditReport, report_of
from pipeline.analysis.audit.sequences import content_checked, whole_unit
from pipeline.analysis.audit.staged_chains import StagedChains
from pipeline.core.errors import UsageError
from pipeline.core.records import Totals
from pipeline.storage.commits import EDITION, FOLDER, UNIT, Commit, RecordSequence, commit_name, record_sequences
from pipeline.storage.run_record import CHECK, NAME, STAGED_INPUT
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.stored_findings import TABLE, finding_totals
from pipeline.verifiers.base import Covers, Fault, StepVerdict

_FAULTS = {None, *Fault}


def audited_check(storage: Storage) -> AuditReport:
    """The audit of the run directory of a check."""
    ledger = Ledger(command=CHECK)
    verifier = FileVerifier(storage, ledger)
    try:
        settings = audited_settings(storage, ledger)
    except UsageError as error:
        settings = None
        ledger.fault(Check.SETTINGS, NAME, str(error), "remove the folder if it is no check's")
    for found in record_sequences(storage, EDITION):
        ledger.fault(
            Check.RECORDS, f"{FOLDER}/{EDITION}-{found.sequence_id}-*", "is no record of a check", "move it away"
        )
    count = 0
    if settings is not None:
        chains = StagedChains(
            storage,
            ledger,
            verifier,
            str(settings.get(STAGED_INPUT)),
            done="checked",
            counted="chains",
            elsewhere="move the folder away and check again",
        )
        units = {found.sequence_id: found for found in record_sequences(storage, UNIT)}
        for sequence, of_unit in chains.units(units):
            count += 1
            _Unit(sequence, str(settings.get("verifier.kind")), verifier, ledger).prove(of_unit)
    return report_of(storage, ledger, count, find_orphans(storage, verifier.needed, ()))


class _Unit:
    """The proof of one unit of a check by the verifier of this name."""

    def __init__(self, sequence: RecordSequence, name: str, verifier: FileVerifier, ledger: Ledger) -> None:
        self._sequence = sequence
        self._name = name
        self._verifier = verifier
        self._ledger = ledger
        self._remedy = (
            f"move {FOLDER}/{UNIT}-{sequence.sequence_id}-* away and start `{CHECK}` with the same settings again, which "
            "checks the unit again"
        )

    def prove(self, chains: pa.Table) -> None:
        """Find the faults of the unit."""
        found = whole_unit(self._sequence, self._verifier, self._ledger, self._prove_part)
        if found is None:
            return
        whole, tables = found
        named = [tables[shard] for shard in whole.shards if shard.table == TABLE]
        where = commit_name(whole)
        with content_checked(self._ledger, Check.FINDINGS, where, self._remedy):
            self._ledger.count(Check.FINDINGS, sum(table.num_rows for table in named))
            self._ledger.faults(Check.FINDINGS, where, self._step_faults(chains, named), self._remedy)
            self._ledger.faults(Check.FINDINGS, where, _finding_faults(named), self._remedy)
            self._ledger.count(Check.TOTALS)
            self._prove_totals(named, whole)

    def _step_faults(self, chains: pa.Table, named: Sequence[pa.Table]) -> Iterator[str]:
        """Each step of each chain has one finding, with the right ids."""
        of_chain = zip(*(chains[name].to_pylist() for name in ("row", "chain_id", "problem_id", "steps")), strict=True)
        wanted = {
            (row, at): (chain, problem, self._name)
            for row, chain, problem, steps in of_chain
            for at in range(1, len(steps) + 1)
        }
        for row, at, *ids in _rows(named, "row", "step_index", "chain_id", "problem_id", "verifier"):
            if wanted.pop((row, at), None) != tuple(ids):
                yield f"the finding on step {at} of chain {ids[0]} is there twice, or is none of the unit's"
        for (_, at), (chain, *_) in wanted.items():
            yield f"the finding on step {at} of chain {chain} is missing"

    def _prove_part(self, commit: Commit, tables: Mapping[ShardRecord, pa.Table]) -> None:
        self._prove_totals(tables.values(), commit)

    def _prove_totals(self, tables: Iterable[pa.Table], commit: Commit) -> None:
        counted = sum(map(finding_totals, tables), Totals())
        self._ledger.compare_totals(commit, counted, "the findings have", self._remedy)


def _finding_faults(named: Sequence[pa.Table]) -> Iterator[str]:
    """A verdict has evidence, and a step that was not looked at has none."""
    for chain, at, verdict, covers, evidence, fault in _rows(
        named, "chain_id", "step_index", "verdict", "covers", "evidence", "fault"
    ):
        known = verdict in set(StepVerdict) and covers in set(Covers) and fault in _FAULTS
        says = verdict != StepVerdict.UNKNOWN
        if not known or (says and (fault is not None or not evidence)):
            yield f"the finding on step {at} of chain {chain} is impossible: {verdict}, {covers}, fault {fault}"


def _rows(tables: Sequence[pa.Table], *names: str) -> Iterator[tuple[Any, ...]]:
    for table in tables:
        yield from zip(*(table[name].to_pylist() for name in names), strict=True)
