"""What the audit of a run of `label` adds.

Chains are those of the input and its draws, rollouts those that were planned, and totals and labels those that follow from the
log. It does not check whether verdicts and outcomes are correct; `regrade` does.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.audit import invariants
from pipeline.analysis.audit.consensus import ConsensusProof
from pipeline.analysis.audit.findings import Check, Finding, Words, findings, tally_faults
from pipeline.analysis.audit.invariants import LoggedId, Measurement
from pipeline.analysis.audit.walk import Run, RunAudit, Tables, Unit, rows_of
from pipeline.analysis.consensus import TABLE as RELIABILITIES
from pipeline.config.consensus import is_consensus
from pipeline.config.label import EstimatorConfig, SamplingConfig
from pipeline.config.recorded_settings import Settings, chosen_settings, settings_section
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.core.records import (
    Chain,
    InputRow,
    Promotion,
    RolloutOutcome,
    RowLocation,
    SampledSolution,
    Tally,
    Totals,
    Trials,
)
from pipeline.core.tables import INPUTS, LEARNED, PROMOTIONS, SOLUTIONS, TOKEN_IDS
from pipeline.data.grown import grown_chains, grown_id, in_rounds, with_passed
from pipeline.estimators.base import Estimator, RolloutRange
from pipeline.estimators.labelling import labels_of, rollout_outcomes_of, stored_chains, with_verdicts
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.estimators.tree import trials_of
from pipeline.storage.commits import FOLDER, UNIT, Commit, RecordSequence, commit_name, completions
from pipeline.storage.editions import LABELS, VERDICTS, current_shards, current_states, edition_settings
from pipeline.storage.run_record import LABEL, NAME
from pipeline.storage.shards import ShardRecord
from pipeline.storage.units import TABLE, again_of, content_of, noted_rows, unit_id_of

_MAKE_AGAIN = "make the labels again with `relabel`"
_LAST_DIGITS = 1e-9
Rows = Sequence[InputRow | None]
"""The rows of chains; None of those that `grow` promoted."""


class LabelAudit(RunAudit):
    """Of a run of `label`, with its current edition."""

    words = Words(
        command=LABEL,
        there=" on this run directory",
        settings="run",
        rows=("input row", ", used or rejected"),
        results={Check.ROLLOUTS: ("rollout", ", each planned one exactly once and no other")},
        totals="rollouts",
        labels={Check.LABELS: ("chain", " with labels that were computed again from the rollouts")},
        sound="the run is finished",
        edition="make the edition again with `relabel` or `regrade`",
    )
    table = TABLE
    input = "input"
    lost_input = "the staged input is missing or damaged"
    check = Check.ROLLOUTS
    source = "the log has"
    refuses_other_schemas = True

    def __init__(self, run: Run) -> None:
        """Raises ValueError, TypeError and UsageError for invalid settings."""
        super().__init__(run)
        self._estimator = estimator_for(chosen_settings(run.settings, EstimatorConfig, ESTIMATORS))
        self._solutions = settings_section(run.settings, "sampling", SamplingConfig).solutions
        self._move_away = f"move it away and {self.words.resume}"
        self._grown = False
        self._contents: set[str] = set()
        self._units: Counter[str] = Counter()
        self._current = run.edition
        self._of_edition = _edition_files(run)
        self._relabelling: Estimator | None = None
        """What has made the labels of the current edition, where its settings are valid."""
        self._consensus: ConsensusProof | None = None

    @classmethod
    def begin(cls, run: Run) -> Self | None:
        try:
            own = cls(run)
        except (ValueError, TypeError, UsageError) as error:
            _refuse_without_plugin(run.settings, error)
            fault = f"holds invalid settings ({error})"
            run.ledger.fault(Check.SETTINGS, NAME, fault, "restore it from a backup")
            return None
        if run.edition is not None:
            own._read_edition(run.edition)
        return own

    def _read_edition(self, edition: Commit) -> None:
        """Find out what has made the labels of the current edition. Invalid settings are a finding."""
        remedy, settings = self.words.edition, edition_settings(edition)
        try:
            estimator = estimator_for(chosen_settings(settings, EstimatorConfig, ESTIMATORS))
            if is_consensus(settings):
                learned = [self.ledger.table(each, remedy) for each in edition.shards if each.table == RELIABILITIES]
                self._consensus = ConsensusProof(self.ledger.storage, settings, learned[0] if learned else None)
                estimator = self._consensus.estimator
        except (ValueError, TypeError, UsageError) as error:
            _refuse_without_plugin(settings, error)
            self.ledger.fault(Check.RECORDS, commit_name(edition), f"holds invalid settings ({error})", remedy)
        else:
            self._relabelling = estimator

    def input_faults(self, sequence: RecordSequence) -> Iterator[Finding]:
        """A record names all files of the record before it. Records after damage name other files, and are not compared."""
        completed = [commit for commit, _ in completions(sequence)]
        self._grown = len(completed) > 1
        if any(commit.void for commit in sequence.commits):
            return
        for before, commit in pairwise(completed):
            for shard in before.shards:
                if shard not in commit.shards:
                    fault = f"lacks {shard.file}, which the record before it has"
                    yield Finding(check=Check.ROWS, where=commit_name(commit), fault=fault, remedy=self._move_away)

    def rows(self, group: pa.Table, notes: Mapping[str, str]) -> Sequence[InputRow]:
        return noted_rows(INPUTS.from_table(group), again_of(notes))

    def row_faults(self, unit_id: str, rows: Sequence[InputRow], first: int, where: str) -> Iterator[Finding]:
        if self._grown:
            yield from findings(Check.ROWS, where, self._growth_faults(rows), self._move_away)
        if unit_id_of(rows) != unit_id:
            fault = f"its rows of unit {unit_id} are those of another unit"
            remedy = "start a new run in another run_dir"
            yield Finding(check=Check.ROWS, where=where, fault=fault, remedy=remedy)

    def _growth_faults(self, rows: Sequence[InputRow]) -> Iterator[str]:
        """The faults of the next unit of a grown run: chains that an earlier unit has, and wrong counts of earlier units."""
        for row in rows:
            content = content_of(row)
            if content in self._contents:
                yield f"chain {content} is in two units"
            self._contents.add(content)
        for problem_id, again in {row.problem.problem_id: row.again for row in rows}.items():
            if again != self._units[problem_id]:
                yield f"problem {problem_id} has {self._units[problem_id]} earlier units, but {again} are noted"
        self._units.update({row.problem.problem_id for row in rows})

    def count_fault(self, recorded: Totals, used: int, rejected: int) -> str:
        held = replace(recorded, rows=used + rejected, used=used, rejected=rejected)
        return "" if held == recorded else f"records {recorded}, but its files hold {held}"

    def remedy(self, unit_id: str) -> str:
        return f"move {FOLDER}/{UNIT}-{unit_id}-* away and start `{LABEL}` again, which labels the unit again"

    def part_remedy(self, unit_id: str) -> str:
        return self.ledger.words.remedy(UNIT)

    def tally(self, tables: Tables) -> Tally:
        log = tables["rollouts"]
        tokens = sum(int(pc.sum(table["n_tokens"]).as_py() or 0) for table in log)
        return Totals(rollouts=sum(table.num_rows for table in log), tokens=tokens).tally

    def prove(self, unit: Unit) -> Iterator[Finding]:
        stored = _Stored.of(unit)
        rows, chains = _expected(unit, stored)
        wrong = [
            *invariants.draw_faults(unit.rows, stored.drawn, stored.rejected, self._solutions),
            *_chain_faults(rows, chains, stored.chains),
        ]
        self.ledger.looked_at[Check.LABELS] += len(chains)
        yield from self.findings(unit, wrong, Check.LABELS)
        if wrong:
            return
        outcomes = rollout_outcomes_of(stored.rollouts)
        yield from self._log_faults(unit, stored, rows, outcomes)
        if stored.labels is not None and stored.chains:
            state = _state(self._estimator, stored.states)
            computed = labels_of(stored.chains, stored.trials(outcomes), self._estimator, state)
            yield from self.findings(unit, _label_faults(stored.labels, computed), Check.LABELS)
        if self._current is not None and self._relabelling is not None:
            check, faults = self._relabelled_faults(unit.unit_id, self._relabelling, stored, rows, outcomes)
            yield from findings(check, commit_name(self._current), faults, _MAKE_AGAIN)

    def _log_faults(
        self, unit: Unit, stored: "_Stored", rows: Rows, outcomes: Mapping[str, RolloutOutcome]
    ) -> Iterator[Finding]:
        own = [(row, chain) for row, chain in zip(rows, stored.chains, strict=True) if row is not None]
        asked = invariants.sampled_prefixes(own)
        ends = {chain.prefix_ids[-1] for _, chain in own} - asked.keys()
        promoted = {grown_id(each, len(each.ends)): each.rollouts for each in stored.promotions}
        logged = [LoggedId(*row) for row in rows_of(stored.rollouts, *LoggedId._fields)]
        self.ledger.looked_at[Check.ROLLOUTS] += len(logged)
        target = unit.whole.unit_target.rollouts
        sampled = {outcome.prefix_id for outcome in outcomes.values()}
        without = {
            prefix
            for prefix, locations in asked.items()
            if prefix not in sampled and any(location in stored.too_long for location in locations)
        }
        trials = trials_of(outcomes.values())
        not_promoted = {prefix: have for prefix, have in trials.items() if prefix not in promoted}
        unpromoted = [row for row in logged if row.prefix_id not in promoted]
        shapes = [chain.shape for _, chain in own]
        wrong = [
            *invariants.id_faults(
                unpromoted, asked, stored.too_long, self._estimator.rollout_range(target), spare=ends
            ),
            *_promoted_faults(stored, promoted, logged),
            *invariants.missing_work_faults(shapes, trials, without, target, self._estimator),
            *(() if stored.mended else invariants.surplus_faults(not_promoted, self._estimator)),
            *_later_faults(stored.later, outcomes),
            *_token_faults(stored.rollouts),
        ]
        yield from self.findings(unit, wrong)
        counted = replace(
            invariants.totals_of(stored.chains, outcomes.values(), stored.drawn),
            used=-len(stored.rejected),
            rejected=len(stored.rejected),
            prefixes=len({*asked, *promoted}),
            too_long=len(without),
            spent=unit.whole.totals.spent,
        )
        self.ledger.looked_at[Check.TOTALS] += 1
        yield from self.findings(unit, tally_faults(unit.whole.tally, counted.tally, self.source), Check.TOTALS)

    def _relabelled_faults(
        self,
        unit_id: str,
        estimator: Estimator,
        own: "_Stored",
        rows: Rows,
        outcomes: Mapping[str, RolloutOutcome],
    ) -> tuple[str, Iterable[str]]:
        """What is wrong with the labels, and perhaps verdicts, of a unit in the current edition, and which check it is."""
        found = {shard.table: self.ledger.table(shard, _MAKE_AGAIN) for shard in self._of_edition[unit_id]}
        tables = {name: table for name, table in found.items() if table is not None}
        if len(tables) < len(found):
            return Check.LABELS, ()
        labels, verdicts = tables.get(LABELS), tables.get(VERDICTS)
        chains = [] if labels is None else stored_chains(labels)
        if _compared(chains, verdicts) != _compared(own.chains, verdicts):
            return Check.LABELS, [f"its labels of unit {unit_id} belong to other chains than the run's own labels"]
        if wrong := list(_outcome_faults(rows, chains)):
            return Check.LABELS, wrong
        if verdicts is not None and verdicts["rollout_id"].to_pylist() != sorted(outcomes):
            return Check.ROLLOUTS, [f"its verdicts of unit {unit_id} are not exactly one per rollout"]
        if labels is None or not chains:
            return Check.LABELS, ()
        trials = own.trials(with_verdicts(outcomes, verdicts))
        state = _state(estimator, [table for name, table in tables.items() if name in LEARNED])
        if self._consensus is None:
            return Check.LABELS, _label_faults(labels, labels_of(chains, trials, estimator, state))
        computed = self._consensus.labels(chains, trials, state)
        return Check.LABELS, () if computed is None else _label_faults(labels, computed)

    def edition_faults(self, commit: Commit) -> Iterator[Finding]:
        if commit is not self._current:
            return
        where = commit_name(commit)
        if self._consensus is not None:
            yield from findings(Check.LABELS, where, self._consensus.faults(), _MAKE_AGAIN)
        known = {shard for of_unit in self._of_edition.values() for shard in of_unit}
        for shard in commit.shards:
            if shard not in known and shard.table != RELIABILITIES:
                fault = f"names {shard.file}, which belongs to no unit"
                yield Finding(check=Check.RECORDS, where=where, fault=fault, remedy=self.words.edition)


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
    chains: Sequence[Chain]
    states: Sequence[pa.Table]
    mended: bool

    @classmethod
    def of(cls, unit: Unit) -> "_Stored":
        tables = unit.tables
        rejects = [
            (RowLocation(file=file, line=line), index)
            for file, line, index in rows_of(tables["rejects"], "file", "line", "step_index")
        ]
        labels = pa.concat_tables(tables[LABELS]) if tables[LABELS] else None
        return cls(
            rollouts=tables["rollouts"],
            later=[
                table
                for shard, table in unit.files.items()
                if shard.table == "rollouts" and shard not in unit.whole.shards
            ],
            drawn=[drawn for table in tables["solutions"] for drawn in SOLUTIONS.from_table(table)],
            promotions=in_rounds(each for table in tables["promotions"] for each in PROMOTIONS.from_table(table)),
            rejected=frozenset(location for location, index in rejects if index is None),
            too_long=Counter((location, index) for location, index in rejects if index is not None),
            labels=labels,
            chains=[] if labels is None else stored_chains(labels),
            states=[table for name in LEARNED for table in tables[name]],
            mended=any(commit.void for commit in unit.sequence.commits),
        )

    def trials(self, outcomes: Mapping[str, RolloutOutcome]) -> dict[str, Trials]:
        return trials_of(with_passed(outcomes, self.promotions).values())


def _edition_files(run: Run) -> Mapping[str, Sequence[ShardRecord]]:
    """Unit id -> the files of its labels, states and verdicts in the current edition."""
    if run.edition is None:
        return {}
    labels, verdicts = (current_shards(run.wholes, run.edition, name) for name in (LABELS, VERDICTS))
    states = current_states(run.wholes, run.edition)
    return {unit_id: (*labels[unit_id], *states[unit_id], *verdicts[unit_id]) for unit_id in run.wholes}


def _refuse_without_plugin(settings: Settings, error: Exception) -> None:
    """Raise the error if the run needs a plug-in that is not installed: such a run cannot be audited, but is not damaged."""
    if isinstance(error, UsageError) and settings.get("estimator.plugin"):
        raise error


def _state(estimator: Estimator, tables: Sequence[pa.Table]) -> Any:
    """The state that an estimator had learned, from the state tables of a unit. None for an estimator that does not learn."""
    learner = estimator.learner
    if learner is None:
        return None
    return learner.from_table(tables[0]) if tables else learner.initial()


def _compared(chains: Sequence[Chain], verdicts: pa.Table | None) -> Sequence[Chain]:
    """The chains as those of two editions are compared: new verdicts may have given them other outcomes."""
    return chains if verdicts is None else [replace(chain, final_answer=None, outcome=None) for chain in chains]


def _promoted_faults(stored: _Stored, promoted: Mapping[str, int], logged: Sequence[LoggedId]) -> Iterator[str]:
    """Faults of promotions and of the rollouts that measure them."""
    if not stored.promotions:
        return
    known = {prefix for each in stored.chains for prefix in (each.root_prefix_id, *each.prefix_ids)}
    wanted = {rollout for each in stored.promotions for rollout in (each.rollout_id, *each.passed)}
    with_tokens = (table for table in stored.rollouts if TOKEN_IDS in table.column_names)
    written = {
        rollout: (prefix, text, ids)
        for rollout, prefix, text, ids in rows_of(with_tokens, "rollout_id", "prefix_id", "text", TOKEN_IDS)
        if rollout in wanted
    }
    yield from invariants.promotion_faults(stored.promotions, known, written)
    for rollouts in dict.fromkeys(promoted.values()):
        asked: dict[str, list[Measurement]] = {prefix: [] for prefix, most in promoted.items() if most == rollouts}
        mine = [row for row in logged if row.prefix_id in asked]
        yield from invariants.id_faults(mine, asked, {}, RolloutRange(least=rollouts, most=rollouts))
        for prefix in asked.keys() - {row.prefix_id for row in mine}:
            yield f"promoted prefix {prefix} has no rollout"


def _expected(unit: Unit, stored: _Stored) -> tuple[Rows, Sequence[Chain]]:
    """The chains that the labels of a unit must have, and their rows."""
    given = list(invariants.expected_chains(unit.rows, stored.drawn, stored.rejected))
    rows, chains = [row for row, _ in given], [chain for _, chain in given]
    if not stored.promotions and not unit.whole.unit_target.growths:
        return rows, chains
    grown = grown_chains(chains, stored.promotions)
    return [*rows, *(None for _ in grown[len(rows) :])], grown


def _chain_faults(rows: Rows, expected: Sequence[Chain], stored: Sequence[Chain]) -> Iterator[str]:
    if len(expected) != len(stored):
        yield f"labels exist for {format_count(len(stored), 'chain')}, but the input and its draws give {len(expected):,}"
        return
    for chain, labelled in zip(expected, stored, strict=True):
        # Labels have no tokens, and do not say that a limit cut a sampled chain.
        text = replace(chain.solution, token_ids=(), token_ends=(), complete=not chain.solution.as_written)
        if replace(chain, solution=text) != replace(labelled, final_answer=None, outcome=None, policy=""):
            yield f"the labels of chain {labelled.solution.chain_id} do not belong to the chain from the input or a draw"
    yield from _outcome_faults(rows, stored)


def _outcome_faults(rows: Rows, stored: Sequence[Chain]) -> Iterator[str]:
    for row, chain in zip(rows, stored, strict=True):
        given = None if row is None else row.given_outcome
        if chain.final_answer is None and chain.outcome is not given:
            yield (
                f"chain {chain.solution.chain_id} states no answer, so its outcome is the one in the input, "
                f"{json.dumps(given)}, but the labels have {json.dumps(chain.outcome)}"
            )


def _later_faults(later: Sequence[pa.Table], rollout_outcomes: Mapping[str, RolloutOutcome]) -> Iterator[str]:
    """Faults of rollouts committed after the whole record. They begin an extension, so none may exist already."""
    for rollout, count in Counter(rollout for (rollout,) in rows_of(later, "rollout_id")).items():
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


def _label_faults(stored: pa.Table, computed: pa.Table) -> Iterator[str]:
    if stored.equals(computed.select(stored.column_names)):
        return
    differing = [name for name in stored.column_names if not stored[name].equals(computed[name])]
    columns = zip(*(zip(stored[name], computed[name], strict=True) for name in differing), strict=True)
    for chain_id, cells in zip(stored["chain_id"].to_pylist(), columns, strict=True):
        wrong = [
            name
            for name, (left, right) in zip(differing, cells, strict=True)
            if not invariants.alike(left.as_py(), right.as_py(), abs_tol=_LAST_DIGITS)
        ]
        if wrong:
            yield f"the labels of chain {chain_id} differ from those computed from the log, in {', '.join(wrong)}"
