"""What the audit of a run of `check` or `score` adds.

Each step or chain has one row, and rows are possible ones. It asks no verifier and no scorer again. Memory grows with the
number of chains, not with their texts.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, Finding, Words
from pipeline.analysis.audit.walk import RunAudit, Tables, Unit
from pipeline.config.choices import Aggregation
from pipeline.config.recorded_settings import Settings
from pipeline.core.records import Tally
from pipeline.core.tables import CHAINS, FINDINGS, SCORES
from pipeline.scorers.chain_scores import chain_score
from pipeline.storage.run_record import CHECK, SCORE
from pipeline.storage.score_files import score_tally
from pipeline.storage.stored_findings import CHECK_RUNS, finding_tally
from pipeline.verifiers.base import Covers, Fault, StepVerdict

_FAULTS = {None, *Fault}
_OF_CHAIN = [name for name in SCORES.schema.names if name in CHAINS.schema.names]


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

    def tally(self, tables: Tables) -> Tally:
        return sum(map(finding_tally, tables[FINDINGS.name]), Tally())

    def faults(self, unit: Unit, tables: Tables) -> Iterator[Finding]:
        return self.findings(unit, _finding_faults(unit.rows, tables[FINDINGS.name], self.settings))


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

    def tally(self, tables: Tables) -> Tally:
        return sum(map(score_tally, tables[SCORES.name]), Tally())

    def faults(self, unit: Unit, tables: Tables) -> Iterator[Finding]:
        return self.findings(unit, _score_faults(unit.rows, tables[SCORES.name], self.settings))


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
