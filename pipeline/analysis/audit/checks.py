"""Proves a run of `check` or `score`: that each step or chain has one row, that rows are possible ones, and the totals.

It asks no verifier and no scorer again. Memory grows with the number of chains, not with their texts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, FileVerifier, Ledger
from pipeline.analysis.audit.result import AuditReport
from pipeline.analysis.audit.sequences import content_checked, whole_unit
from pipeline.analysis.audit.staged_chains import Prove, again_remedy, audited_chain_run
from pipeline.config.choices import Aggregation
from pipeline.config.recorded_settings import Settings
from pipeline.core.records import Totals
from pipeline.core.schemas import CHAINS, SCORES
from pipeline.scorers.chain_scores import chain_score
from pipeline.storage.commits import Commit, RecordSequence, commit_name
from pipeline.storage.run_record import CHECK, SCORE
from pipeline.storage.score_files import score_totals
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.stored_findings import finding_totals
from pipeline.verifiers.base import Covers, Fault, StepVerdict

_FAULTS = {None, *Fault}
_OF_CHAIN = [name for name in SCORES.names if name in CHAINS.names]

Faults = Callable[[pa.Table, Sequence[pa.Table], Settings], Iterator[str]]
"""What is wrong with the rows of a unit with these chains, in a run with these settings."""


def audited_check(storage: Storage) -> AuditReport:
    """The audit of the run directory of a check."""
    return audited_chain_run(storage, CHECK, _Proof(Check.FINDINGS, _finding_faults, finding_totals).of_run)


def audited_score(storage: Storage) -> AuditReport:
    """The audit of a folder of `score`."""
    return audited_chain_run(storage, SCORE, _Proof(Check.SCORES, _score_faults, score_totals).of_run)


@dataclass(frozen=True, slots=True)
class _Proof:
    """How the rows of units are proved, which `check` counts."""

    check: Check
    faults_of: Faults
    totals_of: Callable[[pa.Table], Totals]

    def of_run(self, settings: Settings, verifier: FileVerifier, ledger: Ledger) -> Prove:
        """What finds the faults of the units of a run."""

        def prove(sequence: RecordSequence, chains: pa.Table, _: Sequence[ShardRecord]) -> None:
            remedy = again_remedy(sequence, ledger.command)

            def prove_totals(commit: Commit, tables: Mapping[ShardRecord, pa.Table]) -> None:
                own = (table for shard, table in tables.items() if shard in commit.shards)
                ledger.compare_totals(commit, sum(map(self.totals_of, own), Totals()), f"the {self.check} have", remedy)

            if (found := whole_unit(sequence, verifier, ledger, prove_totals)) is None:
                return
            whole, tables = found
            named = [tables[shard] for shard in whole.shards]
            with content_checked(ledger, self.check, commit_name(whole), remedy):
                ledger.count(self.check, sum(table.num_rows for table in named))
                ledger.faults(self.check, commit_name(whole), self.faults_of(chains, named, settings), remedy)
                ledger.count(Check.TOTALS)
                prove_totals(whole, tables)

        return prove


def _finding_faults(chains: pa.Table, named: Sequence[pa.Table], settings: Settings) -> Iterator[str]:
    """Each step of each chain has one finding, with the right ids. A verdict has evidence, and a step that was not looked at
    has none."""
    wanted = {
        (row, at): (chain, problem, settings.get("verifier.kind"))
        for row, chain, problem, steps in _rows([chains], "row", "chain_id", "problem_id", "steps")
        for at in range(1, len(steps) + 1)
    }
    for row, at, *ids in _rows(named, "row", "step_index", "chain_id", "problem_id", "verifier"):
        if wanted.pop((row, at), None) != tuple(ids):
            yield f"the finding on step {at} of chain {ids[0]} is there twice, or is none of the unit's"
    for (_, at), (chain, *_) in wanted.items():
        yield f"the finding on step {at} of chain {chain} is missing"
    for chain, at, verdict, covers, evidence, fault in _rows(
        named, "chain_id", "step_index", "verdict", "covers", "evidence", "fault"
    ):
        known = verdict in set(StepVerdict) and covers in set(Covers) and fault in _FAULTS
        says = verdict != StepVerdict.UNKNOWN
        if not known or (says and (fault is not None or not evidence)):
            yield f"the finding on step {at} of chain {chain} is impossible: {verdict}, {covers}, fault {fault}"


def _score_faults(chains: pa.Table, named: Sequence[pa.Table], settings: Settings) -> Iterator[str]:
    """Each chain has one row, with its texts. Its scores follow from those of its steps."""
    wanted = {row[0]: row for row in _rows([chains], *_OF_CHAIN)}
    for row in _rows(named, *_OF_CHAIN):
        if wanted.pop(row[0], None) != row:
            yield f"the score of chain {row[1]} is there twice, or is none of the unit's"
    for row in wanted.values():
        yield f"the score of chain {row[1]} is missing"
    aggregations = [*Aggregation, Aggregation(settings.get("aggregation"))]
    names = [*(f"score_{each.value}" for each in Aggregation), "score"]
    for chain, steps, scores, n_scored, *said in _rows(named, "chain_id", "steps", "step_scores", "n_scored", *names):
        follow = n_scored == sum(score is not None for score in scores) and len(scores) == len(steps)
        if not follow or said != [chain_score(scores, each) for each in aggregations]:
            yield f"the scores of chain {chain} do not follow from those of its steps"


def _rows(tables: Sequence[pa.Table], *names: str) -> Iterator[tuple[Any, ...]]:
    for table in tables:
        yield from zip(*(table[name].to_pylist() for name in names), strict=True)
