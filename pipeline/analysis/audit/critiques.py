"""What the audit of a run of `judge` adds.

Each vote on each chain is there exactly once, and critiques are read as their texts say. It does not ask whether a critique is
right. Memory grows with the number of chains, not with their texts.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, Finding, Words
from pipeline.analysis.audit.walk import Run, RunAudit, Tables, Unit
from pipeline.analysis.readings import Reader, reader_of
from pipeline.core.errors import UsageError
from pipeline.core.ids import critique_id
from pipeline.core.records import Reading, Tally
from pipeline.core.tables import CRITIQUES, READINGS, readings_of
from pipeline.storage.commits import Commit
from pipeline.storage.editions import current_shards
from pipeline.storage.run_record import JUDGE, NAME
from pipeline.storage.stored_critiques import JUDGE_RUNS, critique_tally

_REREAD = "read the critiques again with `regrade`"


class JudgeAudit(RunAudit):
    """Of a run of `judge`. A judge that cannot be used here is a finding."""

    words = Words(
        command=JUDGE,
        settings="judge",
        rows=("chain", " to judge, or rejected"),
        results={Check.CRITIQUES: ("critique", ", each vote exactly once and read as its text says")},
        totals="critiques",
        sound="the judge is finished",
        edition="make the edition again with `regrade`",
    )
    among = JUDGE_RUNS
    check = Check.CRITIQUES
    done = "judged"
    elsewhere = "judge under another judge.name"
    source = "the critiques have"

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._newest = current_shards(run.wholes, run.edition, READINGS.name) if run.edition else {}
        self._name = str(run.settings.get("judge.name"))
        self._votes = int(str(run.settings.get("judge.votes", 0)))
        self._reader: Reader | None = None
        try:
            self._reader = reader_of(run.settings)
        except (UsageError, ValueError, TypeError) as error:
            fault = f"names a judge that cannot be used here ({error})"
            self.ledger.fault(Check.SETTINGS, NAME, fault, "install it, or restore the file")

    def tally(self, tables: Tables) -> Tally:
        return sum((critique_tally(table, self._votes) for table in tables[CRITIQUES.name]), Tally())

    def faults(self, unit: Unit, tables: Tables) -> Iterator[Finding]:
        yield from self.findings(unit, self._vote_faults(unit.rows, tables[CRITIQUES.name]))
        if tables[CRITIQUES.name] and self._reader is not None:
            yield from self._reading_faults(unit, pa.concat_tables(tables[CRITIQUES.name]), self._reader)

    def edition_faults(self, commit: Commit) -> Iterator[Finding]:
        return iter(())

    def _vote_faults(self, chains: pa.Table, named: Sequence[pa.Table]) -> Iterator[str]:
        """Each vote of each chain is there once, with the right ids."""
        of_chain = zip(*(chains[name].to_pylist() for name in ("row", "chain_id", "problem_id")), strict=True)
        wanted = {
            (row, vote): (chain, problem, critique_id(self._name, chain, vote), self._name)
            for row, chain, problem in of_chain
            for vote in range(self._votes)
        }
        columns = ("row", "vote", "chain_id", "problem_id", "critique_id", "judge")
        for table in named:
            for row, vote, *ids in zip(*(table[name].to_pylist() for name in columns), strict=True):
                if wanted.pop((row, vote), None) != tuple(ids):
                    yield f"vote {vote} on chain {ids[0]} is there twice, or is none of the unit's"
        for (_, vote), ids in wanted.items():
            yield f"vote {vote} on chain {ids[0]} is missing"

    def _reading_faults(self, unit: Unit, critiques: pa.Table, reader: Reader) -> Iterator[Finding]:
        """The newest readings are those that the texts have now."""
        where, shown = unit.where, readings_of(critiques)
        for shard in self._newest.get(unit.unit_id, ()):
            where, table = shard.file, self.ledger.table(shard, self.words.edition)
            if table is None:
                return
            if table["critique_id"].to_pylist() != critiques["critique_id"].to_pylist():
                fault = "has the readings of other critiques"
                yield Finding(check=Check.CRITIQUES, where=where, fault=fault, remedy=_REREAD)
                return
            shown = readings_of(table)
        read: Sequence[Reading] = reader(critiques, unit.rows)
        ids = zip(critiques["chain_id"].to_pylist(), critiques["vote"].to_pylist(), shown, read, strict=True)
        wrong = [f"vote {vote} on chain {chain}" for chain, vote, was, now in ids if was != now]
        if wrong:
            # A new parser may read all of them otherwise, so a unit has one finding.
            others = len(wrong) - 1
            more = f", and so {'is' if others == 1 else 'are'} {others:,} more" if others else ""
            fault = f"{wrong[0]} is read otherwise now than in the record{more}"
            yield Finding(check=Check.CRITIQUES, where=where, fault=fault, remedy=_REREAD)
