"""Verifies one unit: its chains against the input, its rollouts by their ids, its totals and labels against the log."""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.audit.consensus import ConsensusProof
from pipeline.analysis.audit.findings import Check, FileVerifier, Ledger, remedy_for
from pipeline.analysis.audit.invariants import (
    AuditedChain,
    LoggedId,
    Measurement,
    draw_faults,
    expected_chains,
    grown_audited,
    id_faults,
    missing_work_faults,
    promotion_faults,
    sampled_prefixes,
    surplus_faults,
    totals_of,
)
from pipeline.analysis.audit.sequences import content_checked, whole_unit
from pipeline.core.formatting import format_count
from pipeline.core.records import (
    Chain,
    InputRow,
    Promotion,
    RolloutOutcome,
    RowLocation,
    SampledSolution,
    Totals,
    Trials,
)
from pipeline.core.tables import LEARNED, PROMOTIONS, SOLUTIONS, TOKEN_IDS
from pipeline.data.grown import grown_id, in_rounds, with_passed
from pipeline.estimators.base import Estimator, RolloutRange
from pipeline.estimators.labelling import (
    labels_of,
    rollout_outcomes_of,
    stored_chains,
    with_verdicts,
)
from pipeline.estimators.tree import trials_of
from pipeline.storage.commits import UNIT, Commit, RecordSequence, commit_name
from pipeline.storage.shards import ShardRecord

_MAKE_AGAIN = "make the labels again with `relabel`"
_THE_LOG_HAS = "the log has"
_LAST_DIGITS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentEdition:
    """The edition with the current labels: the name of its record, its estimator, and its files by unit id. `consensus`: the
    proof of labels by consensus."""

    name: str
    estimator: Estimator
    labels: Mapping[str, Sequence[ShardRecord]]
    states: Mapping[str, Sequence[ShardRecord]]
    verdicts: Mapping[str, Sequence[ShardRecord]]
    consensus: ConsensusProof | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What all units of a run are verified with: the estimator of its own labels, draws per problem, and current edition."""

    estimator: Estimator
    solutions: int
    edition: CurrentEdition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """The stored data of a whole unit. `later`: rollouts committed after the whole record. `mended`: some data was damaged
    once and has been made again."""

    rollouts: Sequence[pa.Table]
    later: Sequence[pa.Table]
    drawn: Sequence[SampledSolution]
    promotions: Sequence[Promotion]
    rejected: frozenset[RowLocation]
    too_long: Mapping[Measurement, int]
    labels: pa.Table | None
    states: Sequence[pa.Table]
    mended: bool


def prove_unit(
    unit_id: str,
    rows: Sequence[InputRow] | None,
    sequence: RecordSequence,
    basis: Basis,
    verifier: FileVerifier,
    ledger: Ledger,
) -> None:
    """Find the faults of a unit. `rows` is None if the input is damaged; then only the unit's files are checked."""
    found = whole_unit(sequence, verifier, ledger, partial(_prove_part, ledger))
    if found is None or rows is None:
        return
    whole, tables = found
    remedy = f"move commits/unit-{unit_id}-* away and start `label` again, which labels the unit again"
    where = commit_name(whole)
    with content_checked(ledger, Check.ROLLOUTS, where, remedy):
        _Proof(rows, whole, _stored(whole, sequence, tables), where, remedy, ledger).prove(unit_id, basis, verifier)


def _prove_part(ledger: Ledger, commit: Commit, tables: Mapping[ShardRecord, pa.Table]) -> None:
    if tables:
        log = [table for shard, table in tables.items() if shard.table == "rollouts"]
        tokens = sum(int(pc.sum(table["n_tokens"]).as_py() or 0) for table in log)
        added = Totals(rollouts=sum(table.num_rows for table in log), tokens=tokens)
        ledger.compare_totals(commit, added, _THE_LOG_HAS, remedy_for(UNIT))


def _stored(whole: Commit, sequence: RecordSequence, tables: Mapping[ShardRecord, pa.Table]) -> _Stored:
    def tables_of(name: str) -> list[pa.Table]:
        return [tables[shard] for shard in whole.shards if shard.table == name]

    rejects = [
        (RowLocation(file=row["file"], line=row["line"]), row["step_index"])
        for table in tables_of("rejects")
        for row in table.select(["file", "line", "step_index"]).to_pylist()
    ]
    labels = tables_of("labels")
    return _Stored(
        rollouts=tables_of("rollouts"),
        later=[table for shard, table in tables.items() if shard.table == "rollouts" and shard not in whole.shards],
        drawn=[drawn for table in tables_of("solutions") for drawn in SOLUTIONS.from_table(table)],
        promotions=in_rounds(each for table in tables_of("promotions") for each in PROMOTIONS.from_table(table)),
        rejected=frozenset(location for location, index in rejects if index is None),
        too_long=Counter((location, index) for location, index in rejects if index is not None),
        labels=pa.concat_tables(labels) if labels else None,
        states=[table for name in LEARNED for table in tables_of(name)],
        mended=any(commit.void for commit in sequence.commits),
    )


def _chains_of(labels: pa.Table | None) -> list[Chain]:
    return [] if labels is None else stored_chains(labels)


def _state(estimator: Estimator, tables: Sequence[pa.Table]) -> Any:
    """The state that an estimator had learned, from the state tables of a unit. None for an estimator that does not learn."""
    learner = estimator.learner
    if learner is None:
        return None
    return learner.from_table(tables[0]) if tables else learner.initial()


class _Proof:
    def __init__(
        self, rows: Sequence[InputRow], whole: Commit, stored: _Stored, where: str, remedy: str, ledger: Ledger
    ) -> None:
        self._rows = rows
        self._whole = whole
        self._stored = stored
        self._where = where
        self._remedy = remedy
        self._ledger = ledger

    def prove(self, unit_id: str, basis: Basis, verifier: FileVerifier) -> None:
        stored = self._stored
        chains = list(expected_chains(self._rows, stored.drawn, stored.rejected))
        if stored.promotions or self._whole.unit_target.growths:
            chains = grown_audited(chains, stored.promotions)
        labelled = _chains_of(stored.labels)
        faults = [
            *draw_faults(self._rows, stored.drawn, stored.rejected, basis.solutions),
            *_chain_faults(chains, labelled),
        ]
        self._ledger.count(Check.LABELS, len(chains))
        if self._ledger.faults(Check.LABELS, self._where, faults, self._remedy):
            return
        rollout_outcomes = rollout_outcomes_of(stored.rollouts)
        self._prove_log(chains, [chain.outcome for chain in labelled], rollout_outcomes, basis.estimator)
        state = _state(basis.estimator, stored.states)
        self._prove_labels(stored.labels, labelled, rollout_outcomes, basis.estimator, state, self._where, self._remedy)
        if basis.edition is not None:
            self._prove_edition(unit_id, basis.edition, verifier, chains, labelled, rollout_outcomes)

    def _prove_log(
        self,
        chains: Sequence[AuditedChain],
        outcomes: Sequence[bool | None],
        rollout_outcomes: Mapping[str, RolloutOutcome],
        estimator: Estimator,
    ) -> None:
        stored, ledger = self._stored, self._ledger
        own = [proven for proven in chains if not proven.chain.grown]
        asked = sampled_prefixes(own, outcomes[: len(own)])
        ends = {proven.chain.prefix_ids[-1] for proven in own} - asked.keys()
        promoted = {grown_id(each, len(each.ends)): each.rollouts for each in stored.promotions}
        logged = [row for table in stored.rollouts for row in _logged(table)]
        ledger.count(Check.ROLLOUTS, len(logged))
        rollouts = self._whole.unit_target.rollouts
        shapes = [chain.shape(outcome) for chain, outcome in zip(own, outcomes, strict=False)]
        sampled = {outcome.prefix_id for outcome in rollout_outcomes.values()}
        without = {
            prefix
            for prefix, locations in asked.items()
            if prefix not in sampled and any(location in stored.too_long for location in locations)
        }
        trials = trials_of(rollout_outcomes.values())
        not_promoted = {prefix: have for prefix, have in trials.items() if prefix not in promoted}
        faults = [
            *id_faults(
                [row for row in logged if row.prefix_id not in promoted],
                asked,
                stored.too_long,
                estimator.rollout_range(rollouts),
                spare=ends,
            ),
            *self._promoted_faults(chains, promoted, logged),
            *missing_work_faults(shapes, trials, without, rollouts, estimator),
            *(() if stored.mended else surplus_faults(not_promoted, estimator)),
            *_later_faults(stored.later, rollout_outcomes),
            *_token_faults(stored.rollouts),
        ]
        ledger.faults(Check.ROLLOUTS, self._where, faults, self._remedy)
        totals = replace(
            totals_of(
                chains,
                {**asked, **dict.fromkeys(promoted, ())},
                rollout_outcomes.values(),
                stored.drawn,
                len(stored.rejected),
            ),
            too_long=len(without),
            spent=self._whole.totals.spent,
        )
        ledger.count(Check.TOTALS)
        ledger.compare_totals(self._whole, totals, _THE_LOG_HAS, self._remedy)

    def _promoted_faults(
        self, chains: Sequence[AuditedChain], promoted: Mapping[str, int], logged: Sequence[LoggedId]
    ) -> Iterator[str]:
        """Faults of promotions and of the rollouts that measure them."""
        promotions = self._stored.promotions
        if not promotions:
            return
        known = {prefix for each in chains for prefix in (each.chain.root_prefix_id, *each.chain.prefix_ids)}
        wanted = {rollout for each in promotions for rollout in (each.rollout_id, *each.passed)}
        yield from promotion_faults(promotions, known, _written(self._stored.rollouts, wanted))
        by_size: dict[int, dict[str, list[Measurement]]] = {}
        for prefix, rollouts in promoted.items():
            by_size.setdefault(rollouts, {})[prefix] = []
        for rollouts, asked in by_size.items():
            mine = [row for row in logged if row.prefix_id in asked]
            yield from id_faults(mine, asked, {}, RolloutRange(least=rollouts, most=rollouts))
            there = {row.prefix_id for row in mine}
            for prefix in asked.keys() - there:
                yield f"promoted prefix {prefix} has no rollout"

    def _trials(self, outcomes: Mapping[str, RolloutOutcome]) -> dict[str, Trials]:
        return trials_of(with_passed(outcomes, self._stored.promotions).values())

    def _prove_labels(
        self,
        stored: pa.Table | None,
        chains: Sequence[Chain],
        rollout_outcomes: Mapping[str, RolloutOutcome],
        estimator: Estimator,
        state: Any,
        where: str,
        remedy: str,
    ) -> None:
        if stored is not None and chains:
            computed = labels_of(chains, self._trials(rollout_outcomes), estimator, state)
            self._ledger.faults(Check.LABELS, where, _label_faults(stored, computed), remedy)

    def _prove_edition(
        self,
        unit_id: str,
        edition: CurrentEdition,
        verifier: FileVerifier,
        expected: Sequence[AuditedChain],
        own: Sequence[Chain],
        rollout_outcomes: Mapping[str, RolloutOutcome],
    ) -> None:
        by_unit = (edition.labels, edition.states, edition.verdicts)
        named = [shard for shards in by_unit for shard in shards.get(unit_id, ())]
        tables = {shard.table: verifier.table(shard, _MAKE_AGAIN) for shard in named}
        if None in tables.values():
            return
        labels, verdicts = tables.get("labels"), tables.get("verdicts")
        states = [table for name, table in tables.items() if name in LEARNED and table is not None]
        chains = _chains_of(labels)
        same = own if verdicts is None else [replace(chain, final_answer=None, outcome=None) for chain in own]
        found = chains if verdicts is None else [replace(chain, final_answer=None, outcome=None) for chain in chains]
        if found != same:
            fault = f"its labels of unit {unit_id} belong to other chains than the run's own labels"
            self._ledger.fault(Check.LABELS, edition.name, fault, _MAKE_AGAIN)
        elif faults := list(_outcome_faults(expected, chains)):
            self._ledger.faults(Check.LABELS, edition.name, faults, _MAKE_AGAIN)
        elif verdicts is not None and verdicts["rollout_id"].to_pylist() != sorted(rollout_outcomes):
            fault = f"its verdicts of unit {unit_id} are not exactly one per rollout"
            self._ledger.fault(Check.ROLLOUTS, edition.name, fault, _MAKE_AGAIN)
        else:
            judged, state = with_verdicts(rollout_outcomes, verdicts), _state(edition.estimator, states)
            if edition.consensus is None:
                self._prove_labels(labels, chains, judged, edition.estimator, state, edition.name, _MAKE_AGAIN)
            elif labels is not None and chains:
                computed = edition.consensus.labels(chains, self._trials(judged), state)
                if computed is not None:
                    self._ledger.faults(Check.LABELS, edition.name, _label_faults(labels, computed), _MAKE_AGAIN)


def _chain_faults(expected: Sequence[AuditedChain], stored: Sequence[Chain]) -> Iterator[str]:
    if len(expected) != len(stored):
        yield f"labels exist for {format_count(len(stored), 'chain')}, but the input and its draws give {len(expected):,}"
        return
    for proven, row in zip(expected, stored, strict=True):
        # Labels have no tokens, and do not say that a limit cut a sampled chain.
        solution = proven.chain.solution
        given = replace(
            proven.chain, solution=replace(solution, token_ids=(), token_ends=(), complete=not solution.as_written)
        )
        if given != replace(row, final_answer=None, outcome=None, policy=""):
            yield f"the labels of chain {row.solution.chain_id} do not belong to the chain from the input or a draw"
    yield from _outcome_faults(expected, stored)


def _outcome_faults(expected: Sequence[AuditedChain], stored: Sequence[Chain]) -> Iterator[str]:
    for proven, row in zip(expected, stored, strict=True):
        if row.final_answer is None and row.outcome is not proven.given_outcome:
            yield (
                f"chain {row.solution.chain_id} states no answer, so its outcome is the one in the input, "
                f"{json.dumps(proven.given_outcome)}, but the labels have {json.dumps(row.outcome)}"
            )


def _logged(rollouts: pa.Table) -> Iterator[LoggedId]:
    columns = (rollouts[name].to_pylist() for name in ("rollout_id", "prefix_id", "issue_index"))
    for rollout, prefix, issue in zip(*columns, strict=True):
        yield LoggedId(rollout_id=rollout, prefix_id=prefix, issue_index=issue)


def _later_faults(later: Sequence[pa.Table], rollout_outcomes: Mapping[str, RolloutOutcome]) -> Iterator[str]:
    """Faults of rollouts committed after the whole record. They begin an extension, so none may exist already."""
    found = Counter(row.rollout_id for table in later for row in _logged(table))
    for rollout, count in found.items():
        if count > 1 or rollout in rollout_outcomes:
            yield f"rollout {rollout} is stored {count + (rollout in rollout_outcomes)} times"


def _token_faults(rollouts: Sequence[pa.Table]) -> Iterator[str]:
    """Rollouts whose tokens are stored, but not all of them. A server may have named none."""
    for table in rollouts:
        if TOKEN_IDS in table.column_names:
            columns = table["rollout_id"], table["n_tokens"], pc.list_value_length(table[TOKEN_IDS])
            for rollout, tokens, stored in zip(*(column.to_pylist() for column in columns), strict=True):
                if stored and stored != tokens:
                    yield f"rollout {rollout} has {tokens} tokens, but {stored} are stored"


def _written(rollouts: Sequence[pa.Table], wanted: Collection[str]) -> dict[str, tuple[str, str, Sequence[int]]]:
    """Rollout id -> prefix, text and tokens, of some rollouts."""
    found: dict[str, tuple[str, str, Sequence[int]]] = {}
    for table in rollouts:
        if TOKEN_IDS in table.column_names:
            columns = (table[name].to_pylist() for name in ("rollout_id", "prefix_id", "text", TOKEN_IDS))
            found |= {
                rollout: (prefix, text, ids)
                for rollout, prefix, text, ids in zip(*columns, strict=True)
                if rollout in wanted
            }
    return found


def _label_faults(stored: pa.Table, computed: pa.Table) -> Iterator[str]:
    if stored.equals(computed.select(stored.column_names)):
        return
    differing = [name for name in stored.column_names if not stored[name].equals(computed[name])]
    columns = zip(*(zip(stored[name], computed[name], strict=True) for name in differing), strict=True)
    for chain_id, cells in zip(stored["chain_id"].to_pylist(), columns, strict=True):
        wrong = [
            name
            for name, (left, right) in zip(differing, cells, strict=True)
            if not _alike(left.as_py(), right.as_py())
        ]
        if wrong:
            yield f"the labels of chain {chain_id} differ from those computed from the log, in {', '.join(wrong)}"


def _alike(left: object, right: object) -> bool:
    """Whether both are equal, except for the last digits, which may differ between processors."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_alike, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_alike(left[key], right[key]) for key in left)
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=0, abs_tol=_LAST_DIGITS)
    return left == right
