"""Proves the run of a judge: its settings, records and files, that each vote on each chain is there exactly once, that
critiques are read as their texts say, and the totals.

It does not ask whether a critique is right. Memory grows with the number of chains, not with their texts.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, FileVerifier, Ledger, remedy_for
from pipeline.analysis.audit.result import AuditReport
from pipeline.analysis.audit.sequences import content_checked, whole_unit
from pipeline.analysis.audit.staged_chains import Prove, again_remedy, audited_chain_run
from pipeline.analysis.readings import Reader, reader_of, steps_of
from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import UsageError
from pipeline.core.ids import critique_id
from pipeline.core.records import Reading, Totals
from pipeline.core.tables import readings_of
from pipeline.storage.commits import EDITION, Commit, RecordSequence, commit_name
from pipeline.storage.run_record import JUDGE, NAME
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.stored_critiques import TABLE, critique_totals

_REREAD = "read the critiques again with `regrade`"
_READS_OTHERWISE = "is read otherwise now than in the record"


def audited_judge(storage: Storage) -> AuditReport:
    """The audit of a judge's run directory. A judge that cannot be used here is a finding."""

    def proof(settings: Settings, verifier: FileVerifier, ledger: Ledger) -> Prove:
        reader = _reader(settings, ledger)
        name, votes = str(settings.get("judge.name")), int(str(settings.get("judge.votes", 0)))
        return lambda sequence, chains, newest: _Unit(sequence, name, votes, verifier, ledger).prove(
            chains, reader, newest
        )

    return audited_chain_run(storage, JUDGE, proof)


def _reader(settings: Settings, ledger: Ledger) -> Reader | None:
    try:
        return reader_of(settings)
    except (UsageError, ValueError, TypeError) as error:
        fault = f"names a judge that cannot be used here ({error})"
        ledger.fault(Check.SETTINGS, NAME, fault, "install it, or restore the file")
        return None


class _Unit:
    """The proof of one unit of a judge with this name and this number of votes."""

    def __init__(self, sequence: RecordSequence, name: str, votes: int, verifier: FileVerifier, ledger: Ledger) -> None:
        self._sequence = sequence
        self._name = name
        self._votes = votes
        self._verifier = verifier
        self._ledger = ledger
        self._remedy = again_remedy(sequence, JUDGE)

    def prove(self, chains: pa.Table, reader: Reader | None, newest: Sequence[ShardRecord]) -> None:
        """Find the faults of the unit. `reader`: None where its critiques cannot be read here."""
        found = whole_unit(
            self._sequence, self._verifier, self._ledger, lambda part, tables: self._prove_totals(tables.values(), part)
        )
        if found is None:
            return
        whole, tables = found
        named = [tables[shard] for shard in whole.shards if shard.table == TABLE]
        where = commit_name(whole)
        with content_checked(self._ledger, Check.CRITIQUES, where, self._remedy):
            self._prove_votes(chains, named, where)
            self._ledger.count(Check.TOTALS)
            self._prove_totals(named, whole)
            critiques = pa.concat_tables(named) if named else None
            if critiques is not None and reader is not None:
                self._prove_readings(chains, critiques, reader, newest, where)

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

    def _prove_totals(self, tables: Iterable[pa.Table], commit: Commit) -> None:
        counted = sum((critique_totals(table, self._votes) for table in tables), Totals())
        self._ledger.compare_totals(commit, counted, "the critiques have", self._remedy)

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
