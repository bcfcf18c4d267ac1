"""The `relabel` and `regrade` commands: they make a new edition of a run's labels.

`relabel` makes labels by another rule, interval or estimator from the existing verdicts. `regrade` makes verdicts with other
settings of the grader from stored texts, and labels from these verdicts. Verdicts that take microseconds are made in this
process; the others are made by `grader.processes` threads, each of which waits for a child process. `regrade` does not select
again among the draws of problems without a chain: their first verdicts decided which draws are kept.

An edition is made unit by unit and then published as a whole. Label files are written into `aside/`, where no reader of
`labels/*.parquet` looks. When the record is published, they become the current files and are moved. A crash before the record
leaves files that no record names. A crash after it leaves a move, which the next command on the directory completes.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.consensus import TABLE, Consensus, Measured, learned_table, settled
from pipeline.analysis.reread import reread_judges, reread_lines
from pipeline.config.changes import RegradeConfig, RelabelConfig
from pipeline.config.consensus import RULE, ConsensusChange, is_consensus
from pipeline.config.label import EstimatorConfig, GraderConfig
from pipeline.config.recorded_settings import Settings, chosen_settings, given_settings, with_source
from pipeline.consensus.evidence import ChainEvidence
from pipeline.consensus.kept import COLUMNS, ConsensusCounter, summary_lines
from pipeline.consensus.reliability import reliability_lines
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.ids import content_id
from pipeline.core.progress import RelabelResult
from pipeline.core.records import Chain, Finish, Grade, InputRow, Promotion, SampledSolution, Solution, Trials
from pipeline.core.tables import promotions_of, sampled_solutions, verdicts_table
from pipeline.data.grown import in_rounds, with_passed
from pipeline.data.prompts import stem
from pipeline.estimators.base import Estimator, objection
from pipeline.estimators.labelling import labels_of, rollout_outcomes_of, stored_chains, with_verdicts
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.estimators.tree import trees_of, trials_of
from pipeline.graders.base import Checker
from pipeline.graders.question import grade_at_once, grade_in_time, outcome_of
from pipeline.graders.registry import GRADERS, checker_for, grader_version
from pipeline.storage.commits import Commit, publish_or_refuse
from pipeline.storage.editions import LABELS, VERDICTS, arrange_labels, current_label_files, current_shards, new_edition
from pipeline.storage.location import storage_at
from pipeline.storage.lock import hold_lock
from pipeline.storage.shards import ASIDE, ShardRecord, read_shard, write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, finished_run, refuse_unfinished
from pipeline.storage.units import UnitRef, unit_rows
from pipeline.witnesses.base import Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUnit:
    """The stored data of a whole unit: its draws, its log, and the current chains and verdicts. `rows`: reads its input, which
    only new verdicts need."""

    drawn: Sequence[SampledSolution]
    rollouts: Sequence[pa.Table]
    promotions: Sequence[Promotion]
    chains: Sequence[Chain]
    rows: Callable[[], Sequence[InputRow]]
    verdicts: pa.Table | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegradedUnit:
    """The chains and verdicts of a unit for the new labels. `verdicts` is None if those of the log count."""

    chains: Sequence[Chain]
    verdicts: pa.Table | None


Judging = Callable[[StoredUnit], RegradedUnit]
"""Makes the verdicts of an edition."""
Stem = tuple[tuple[str, ...], str]
"""The gold answers of a prefix's problem, and the text that precedes its completions."""
CERTAINTY = "estimator.certainty"
_HOW_MANY = "grader.processes"


def relabel(config: RelabelConfig) -> RelabelResult:
    """Make labels with the estimator of the settings. Raises UsageError for a missing or unfinished run, StoreError and
    RunConflict."""
    named = given_settings("estimator", config.estimator)
    return _edited(config, named, lambda _: nullcontext(_as_judged), config.consensus)


def regrade(config: RegradeConfig) -> RelabelResult:
    """Grade all stored completions and chains again, and read the critiques of judges again. Raises UsageError for a missing or
    unfinished run, StoreError, RunConflict, and StepvalueError if the checker cannot work on this machine."""
    storage = storage_at(config.run_dir)
    refuse_unfinished(storage)
    # Before the labels: those by consensus are made from the newest readings.
    reread = tuple(reread_lines(reread_judges(storage, lock=config.lock)))
    named = {**given_settings("grader", config.grader), **given_settings("estimator", config.estimator)}
    named.pop(_HOW_MANY, None)
    processes = getattr(config.grader, "processes", None) or 1
    edited = _edited(
        config, {**named, "grader_version": grader_version()}, lambda settings: _regrading(settings, processes)
    )
    return replace(edited, notes=(*edited.notes, *reread))


def _edited(
    config: RelabelConfig | RegradeConfig,
    named: Settings,
    judging: Callable[[Settings], AbstractContextManager[Judging]],
    consensus: ConsensusChange | None = None,
) -> RelabelResult:
    """Make a new edition with the `named` settings, unless they are those of the current labels. `consensus`: its settings that
    change, if labels are made by one."""
    storage = storage_at(config.run_dir)
    refuse_unfinished(storage)
    with hold_lock(storage, lock=config.lock):
        run = finished_run(storage)
        # Each rule has its own default.
        anew = {} if named.get(RULE, run.settings[RULE]) == run.settings[RULE] else {CERTAINTY: None}
        settings: Settings = {**run.settings, **anew, **named}
        settings = with_source(run.settings, settings, EstimatorConfig, ESTIMATORS)
        settings = with_source(run.settings, settings, GraderConfig, GRADERS)
        settings, witnesses = settled(storage, run, settings, consensus or ConsensusChange())
        if settings == run.settings:
            # Complete a move that a crash has interrupted.
            arrange_labels(storage, current_label_files(run.wholes, run.edition))
            return RelabelResult(run_dir=storage.run_dir)
        with judging(settings) as judge:
            return _make_edition(storage, run, settings, judge, witnesses)


def _as_judged(unit: StoredUnit) -> RegradedUnit:
    return RegradedUnit(chains=unit.chains, verdicts=unit.verdicts)


@contextmanager
def _regrading(settings: Settings, processes: int) -> Iterator[Judging]:
    grader = replace(chosen_settings(settings, GraderConfig, GRADERS), processes=processes)
    threads = ThreadPoolExecutor(processes)
    with checker_for(grader) as checker:
        try:
            yield _Regrader(checker, threads)
        finally:
            # After a failure the waiting grades are not needed; running ones end at the checker's deadline.
            threads.shutdown(cancel_futures=True)


def _make_edition(
    storage: Storage, run: StoredRun, settings: Settings, judge: Judging, witnesses: Sequence[Witness]
) -> RelabelResult:
    """Make and publish an edition of a finished run; the caller holds its lock. Raises StoreError, RunConflict, and UsageError
    for settings that contradict each other or an estimator that cannot use the run's log."""
    try:
        consensus = Consensus(settings, witnesses, run.identity) if is_consensus(settings) else None
        wanted = (
            consensus.values if consensus else estimator_for(chosen_settings(settings, EstimatorConfig, ESTIMATORS))
        )
        sampled = estimator_for(chosen_settings(run.identity, EstimatorConfig, ESTIMATORS))
    except ValueError as error:
        raise UsageError(f"{storage.run_dir} cannot be labelled with these settings: {error}") from error
    why = objection(sampled, wanted)
    if why:
        raise UsageError(f"{storage.run_dir} cannot be labelled with estimator.name={wanted.settings.name}: {why}")
    writer = _Writer(storage, run, wanted, judge)
    if consensus is None:
        for ref in run.units:
            if (unit := writer.prepare(ref)) is not None:
                writer.write(ref, labels_of(unit.chains, unit.trials, wanted, unit.state))
    else:
        with _without_collection():
            _write_consensus(writer, run.units, consensus)
    edition = new_edition(run.editions, run.wholes, settings, writer.shards)
    publish_or_refuse(storage, edition)
    arrange_labels(storage, current_label_files(run.wholes, edition))
    return replace(writer.edited, number=edition.number)


@contextmanager
def _without_collection() -> Iterator[None]:
    """No search for cycles of garbage: there are none, and with millions of small objects it takes an eighth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _write_consensus(writer: "_Writer", units: Sequence[UnitRef], consensus: Consensus) -> None:
    """Write the labels of all units by consensus. What Monte Carlo says waits on disk until all units are measured."""
    with TemporaryDirectory(prefix="stepvalue-relabel-") as folder:
        evidence: list[tuple[UnitRef, Sequence[ChainEvidence]]] = []
        for ref in units:
            if (unit := writer.prepare(ref)) is not None:
                measured = consensus.measure(unit.chains, unit.trials, unit.state)
                _set_aside(f"{folder}/{len(evidence)}", measured.labels)
                evidence.append((ref, measured.evidence))
        chains = [each for _, of_unit in evidence for each in of_unit]
        learned = consensus.learn(chains)
        if learned is not None:
            writer.write_learned(learned_table(learned, len(chains)))
        places, done, counted = consensus.places(chains, learned), 0, ConsensusCounter()
        for number, (ref, of_unit) in enumerate(evidence):
            alone = pa.ipc.open_file(f"{folder}/{number}").read_all()
            own = None if places is None else places[done : done + len(of_unit)]
            labels = consensus.labels(Measured(labels=alone, evidence=of_unit), own, learned)
            counted.add(pl.DataFrame(labels.select(COLUMNS)))
            writer.write(ref, labels)
            done += len(of_unit)
    summary = counted.summary()
    notes = [*(summary_lines(summary) if summary else ()), *(reliability_lines(learned) if learned else ())]
    notes += consensus.cap_lines(learned)
    advice = [f"advice    {consensus.advice}"] if consensus.advice else []
    writer.edited = replace(writer.edited, notes=(*notes, *advice))


def _set_aside(path: str, table: pa.Table) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedUnit:
    """What the new labels of a unit are made from. `state`: what the estimator has learned."""

    chains: Sequence[Chain]
    trials: Mapping[str, Trials]
    state: Any


class _Writer:
    """Writes the edition unit by unit. `shards` and `edited` cover the units written so far."""

    def __init__(self, storage: Storage, run: StoredRun, estimator: Estimator, judge: Judging) -> None:
        self._storage = storage
        self._run = run
        self._estimator = estimator
        self._judge = judge
        self._labels = current_shards(run.wholes, run.edition, LABELS)
        self._verdicts = current_shards(run.wholes, run.edition, VERDICTS)
        learner = estimator.learner
        self._states = {} if learner is None else current_shards(run.wholes, run.edition, learner.table)
        self._learned = None if learner is None else learner.initial()
        self._before: dict[str, tuple[Sequence[str], list[object]]] = {}
        """By id of a prepared unit, the columns of its current labels, and the labels of all its steps."""
        self.shards: list[ShardRecord] = []
        self.edited = RelabelResult(run_dir=storage.run_dir)

    def prepare(self, ref: UnitRef) -> PreparedUnit | None:
        """Judge a unit, write its verdicts and its state, and return what its labels are made from. None: it has none."""
        labels, verdicts = self._labels[ref.unit_id], self._verdicts[ref.unit_id]
        old = self._table(labels)
        if old is None:
            return None
        self._before[ref.unit_id] = old.column_names, _flat(old)
        unit = self._stored(ref, old, self._table(verdicts))
        judged = self._judge(unit)
        outcomes = rollout_outcomes_of(unit.rollouts)
        before = with_verdicts(outcomes, unit.verdicts)
        after = before if judged.verdicts is unit.verdicts else with_verdicts(outcomes, judged.verdicts)
        trials = trials_of(with_passed(after, unit.promotions).values())
        state = self._state(ref, judged.chains, trials_of(after.values()), same_verdicts=after is before)
        if judged.verdicts is not None:
            same = unit.verdicts is not None and judged.verdicts.equals(unit.verdicts)
            self.shards += verdicts if same else [self._write(VERDICTS, ref, judged.verdicts)]
        changed = sum(after[key].verdict is not before[key].verdict for key in after)
        done = self.edited
        self.edited = replace(
            done, rollouts=done.rollouts + len(after), verdicts_changed=done.verdicts_changed + changed
        )
        return PreparedUnit(chains=judged.chains, trials=trials, state=state)

    def write(self, ref: UnitRef, new: pa.Table) -> None:
        """Write the labels of a prepared unit, unless they are the current ones."""
        labels = self._labels[ref.unit_id]
        columns, before = self._before.pop(ref.unit_id)
        now = _flat(new)
        # The current labels are read a second time only where they may be the same.
        again = self._table(labels) if columns == new.column_names and before == now else None
        same = again is not None and new.equals(again)
        self.shards += labels if same else [self._write(LABELS, ref, new)]
        done = self.edited
        self.edited = replace(
            done,
            chains=done.chains + new.num_rows,
            labels=done.labels + len(now),
            labels_changed=done.labels_changed + sum(left != right for left, right in zip(before, now, strict=True)),
        )

    def write_learned(self, table: pa.Table) -> None:
        """Write what a consensus has learned from all units."""
        self.shards.append(write_shard(self._storage, TABLE, content_id(TABLE), [table]))

    def _state(
        self, ref: UnitRef, chains: Sequence[Chain], trials: Mapping[str, Trials], *, same_verdicts: bool
    ) -> Any:
        """The learned state of the estimator for a unit, part of the edition. The stored state, or, if it is missing or
        verdicts are new, the state learned from the edition's units so far. None for an estimator that does not learn."""
        learner = self._estimator.learner
        if learner is None:
            return None
        known = self._states[ref.unit_id]
        stored = self._table(known) if same_verdicts else None
        if stored is not None:
            # The state of another estimator or version cannot be used.
            with suppress(ValueError):
                state = learner.from_table(stored)
                self.shards += known
                return state
        self._learned = learner.learn(
            self._learned, trees_of([chain.shape for chain in chains if not chain.grown]), trials
        )
        self.shards.append(self._write(learner.table, ref, learner.to_table(self._learned)))
        return self._learned

    def _stored(self, ref: UnitRef, labels: pa.Table, verdicts: pa.Table | None) -> StoredUnit:
        whole = self._run.wholes[ref.unit_id]
        drawn = self._tables(whole, "solutions")
        return StoredUnit(
            drawn=[solution for table in drawn for solution in sampled_solutions(table)],
            rollouts=self._tables(whole, "rollouts"),
            promotions=in_rounds(each for table in self._tables(whole, "promotions") for each in promotions_of(table)),
            chains=stored_chains(labels),
            rows=lambda: unit_rows(self._storage, ref),
            verdicts=verdicts,
        )

    def _tables(self, whole: Commit, name: str) -> list[pa.Table]:
        return [read_shard(self._storage, shard) for shard in whole.shards if shard.table == name]

    def _table(self, shards: Sequence[ShardRecord]) -> pa.Table | None:
        return read_shard(self._storage, shards[0]) if shards else None

    def _write(self, table_name: str, ref: UnitRef, table: pa.Table) -> ShardRecord:
        part = content_id(table_name, ref.unit_id)
        if table_name != LABELS:
            return write_shard(self._storage, table_name, part, [table])
        shard = write_shard(self._storage, LABELS, part, [table], folder=ASIDE)
        return replace(shard, file=shard.file.replace(ASIDE, LABELS, 1))


def _flat(labels: pa.Table) -> list[object]:
    return list(pc.list_flatten(labels["label"]).to_pylist())


class _Regrader:
    """Grades the stored texts of a unit with a checker."""

    def __init__(self, checker: Checker, threads: ThreadPoolExecutor) -> None:
        self._checker = checker
        self._threads = threads

    def __call__(self, unit: StoredUnit) -> RegradedUnit:
        drawn = {draw.solution.chain_id: draw.solution for draw in unit.drawn}
        solutions = [drawn.get(chain.solution.chain_id, chain.solution) for chain in unit.chains]
        given = {row.solution.chain_id: row.given_outcome for row in unit.rows() if row.solution}
        outcomes = [given.get(chain.solution.chain_id) for chain in unit.chains]
        chains = list(self._threads.map(self._with_outcome, unit.chains, solutions, outcomes))
        return RegradedUnit(
            chains=chains, verdicts=verdicts_table(self._grades(unit, _stems(unit.chains, solutions)), grader_version())
        )

    def _grades(self, unit: StoredUnit, stems: Mapping[str, Stem]) -> dict[str, Grade]:
        grades: dict[str, Grade] = {}
        slow: dict[str, Future[Grade]] = {}
        for table in unit.rollouts:
            columns = (table[name].to_pylist() for name in ("rollout_id", "prefix_id", "text", "finish"))
            for rollout, prefix, completion, ending in zip(*columns, strict=True):
                if prefix not in stems:
                    raise StoreError(f"rollout {rollout} belongs to no chain of its unit: `audit` shows what is wrong")
                golds, before = stems[prefix]
                text, finish = before + completion, Finish(ending)
                grade = grade_at_once(self._checker, golds, text, finish)
                if grade is None:
                    slow[rollout] = self._threads.submit(grade_in_time, self._checker, golds, text, finish)
                else:
                    grades[rollout] = grade
        return grades | {rollout: grade.result() for rollout, grade in slow.items()}

    def _with_outcome(self, chain: Chain, solution: Solution, given: bool | None) -> Chain:
        if chain.grown:
            return chain
        answer = self._checker.stated_answer(solution.text, complete=solution.complete)
        if answer is None:
            return replace(chain, final_answer=None, outcome=given)
        grade = self._checker.grade_answer(chain.problem.golds, answer)
        return replace(chain, final_answer=answer, outcome=outcome_of(grade))


def _stems(chains: Sequence[Chain], solutions: Sequence[Solution]) -> dict[str, Stem]:
    """Prefix id -> the gold answers and the text that precedes its rollouts."""
    stems: dict[str, Stem] = {}
    for chain, solution in zip(chains, solutions, strict=True):
        golds = chain.problem.golds
        stems[chain.root_prefix_id] = golds, ""
        for index, prefix in enumerate(chain.prefix_ids, start=1):
            # A chain that another one goes on from comes before it, and has the prefix as the policy saw it.
            stems.setdefault(prefix, (golds, stem(solution, index)))
    return stems
