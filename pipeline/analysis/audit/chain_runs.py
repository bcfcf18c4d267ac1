"""What the audit of a run of `judge`, `check` or `score` adds.

Each vote, step or chain has one row, rows are possible ones, and critiques are read as their texts say. It asks no judge, no
verifier and no scorer again. Memory grows with the number of chains, not with their texts.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, Finding, Words
from pipeline.analysis.audit.walk import Run, RunAudit, Tables, Unit, rows_of
from pipeline.analysis.readings import Reader, reader_of
from pipeline.config.choices import Aggregation
from pipeline.core.errors import UsageError
from pipeline.core.ids import critique_id
from pipeline.core.records import Reading, Tally
from pipeline.core.tables import CHAINS, CRITIQUES, READINGS, SCORES, readings_of
from pipeline.scorers.chain_scores import chain_score
from pipeline.storage.commits import Commit
from pipeline.storage.editions import current_shards
from pipeline.storage.run_record import CHECK, JUDGE, NAME, SCORE
from pipeline.storage.score_files import score_tally
from pipeline.storage.stored_critiques import JUDGE_RUNS, critique_tally
from pipeline.storage.stored_findings import CHECK_RUNS, finding_tally
from pipeline.verifiers.base import Covers, Fault, StepVerdict

_REREAD = "read the critiques again with `regrade`"
_FAULTS = {None, *Fault}
_OF_CHAIN = [name for name in SCORES.schema.names if name in CHAINS.schema.names]


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

    def table_tally(self, table: pa.Table, /) -> Tally:
        return critique_tally(table, self._votes)

    def faults(self, unit: Unit, tables: Tables) -> Iterator[Finding]:
        yield from super().faults(unit, tables)
        if tables[CRITIQUES.name] and self._reader is not None:
            yield from self._reading_faults(unit, pa.concat_tables(tables[CRITIQUES.name]), self._reader)

    def edition_faults(self, commit: Commit) -> Iterator[Finding]:
        return iter(())

    def result_faults(self, chains: pa.Table, results: Sequence[pa.Table]) -> Iterator[str]:
        """Each vote of each chain is there once, with the right ids."""
        wanted = (
            (row, vote, chain, problem, critique_id(self._name, chain, vote), self._name)
            for row, chain, problem in rows_of([chains], "row", "chain_id", "problem_id")
            for vote in range(self._votes)
        )
        found = rows_of(results, "row", "vote", "chain_id", "problem_id", "critique_id", "judge")
        return _each_once(wanted, found, 2, "vote {1} on chain {2}")

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
        votes = zip(rows_of([critiques], "chain_id", "vote"), shown, read, strict=True)
        wrong = [f"vote {vote} on chain {chain}" for (chain, vote), was, now in votes if was != now]
        if wrong:
            # A new parser may read all of them otherwise, so a unit has one finding.
            others = len(wrong) - 1
            more = f", and so {'is' if others == 1 else 'are'} {others:,} more" if others else ""
            fault = f"{wrong[0]} is read otherwise now than in the record{more}"
            yield Finding(check=Check.CRITIQUES, where=where, fault=fault, remedy=_REREAD)


class CheckAudit(RunAudit):
    """Of a run of `check`."""

    words = Words(
        command=CHECK,
        settings="check",
        rows=("chain", " to check, or rejected"),
        results={Check.FINDINGS: ("finding", ", one of each step, and verdicts with evidence")},
        totals="findings",
        sound="all chains are checked",
    )
    among = CHECK_RUNS
    check = Check.FINDINGS
    done = "checked"
    elsewhere = "move the folder away and check again"
    source = "the findings have"

    table_tally = staticmethod(finding_tally)

    def result_faults(self, chains: pa.Table, results: Sequence[pa.Table]) -> Iterator[str]:
        """Each step of each chain has one finding, with the right ids. A verdict has evidence, and a step that was not looked
        at has none."""
        wanted = (
            (row, at, chain, problem, self.settings.get("verifier.kind"))
            for row, chain, problem, steps in rows_of([chains], "row", "chain_id", "problem_id", "steps")
            for at in range(1, len(steps) + 1)
        )
        found = rows_of(results, "row", "step_index", "chain_id", "problem_id", "verifier")
        yield from _each_once(wanted, found, 2, "the finding on step {1} of chain {2}")
        said = rows_of(results, "chain_id", "step_index", "verdict", "covers", "evidence", "fault")
        for chain, at, verdict, covers, evidence, fault in said:
            known = verdict in set(StepVerdict) and covers in set(Covers) and fault in _FAULTS
            says = verdict != StepVerdict.UNKNOWN
            if not known or (says and (fault is not None or not evidence)):
                yield f"the finding on step {at} of chain {chain} is impossible: {verdict}, {covers}, fault {fault}"


class ScoreAudit(RunAudit):
    """Of a run of `score`."""

    words = Words(
        command=SCORE,
        settings="scorer",
        rows=("chain", " to score, or rejected"),
        results={Check.SCORES: ("score", ", one of each chain, and scores of chains that follow from those of steps")},
        totals="scores",
        sound="all chains are scored",
    )
    check = Check.SCORES
    done = "scored"
    elsewhere = "score into another folder"
    source = "the scores have"

    table_tally = staticmethod(score_tally)

    def result_faults(self, chains: pa.Table, results: Sequence[pa.Table]) -> Iterator[str]:
        """Each chain has one row, with its texts. Its scores follow from those of its steps."""
        yield from _each_once(rows_of([chains], *_OF_CHAIN), rows_of(results, *_OF_CHAIN), 1, "the score of chain {1}")
        aggregations = [*Aggregation, Aggregation(self.settings.get("aggregation"))]
        names = [*(f"score_{each.value}" for each in Aggregation), "score"]
        for chain, steps, scores, n_scored, *said in rows_of(
            results, "chain_id", "steps", "step_scores", "n_scored", *names
        ):
            follow = n_scored == sum(score is not None for score in scores) and len(scores) == len(steps)
            if not follow or said != [chain_score(scores, each) for each in aggregations]:
                yield f"the scores of chain {chain} do not follow from those of its steps"


def _each_once(
    wanted: Iterable[tuple[Any, ...]], found: Iterable[tuple[Any, ...]], keys: int, name: str
) -> Iterator[str]:
    """Rows that are not there exactly once. The first `keys` columns identify a row; `name` is a template of what it is."""
    missing = {row[:keys]: row for row in wanted}
    for row in found:
        if missing.pop(row[:keys], None) != row:
            yield f"{name.format(*row)} is there twice, or is none of the unit's"
    for row in missing.values():
        yield f"{name.format(*row)} is missing"
