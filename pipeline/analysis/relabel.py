"""The `relabel` and `regrade` commands: they make a new edition of a run's labels.

`relabel` makes labels by another rule, interval or estimator from the existing verdicts. `regrade` makes verdicts with other
settings of the grader from stored texts, and labels from these verdicts. Verdicts that take microseconds are made in this
process; the others are made by `grader.processes` threads, each of which waits for a child process. `regrade` does not select
again among the draws of problems without a chain: their first verdicts decided which draws are kept.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa

from pipeline.analysis.consensus import TABLE, Consensus, learned_table, settled
from pipeline.analysis.readings import reread_lines
from pipeline.config.changes import RegradeConfig, RelabelConfig
from pipeline.config.consensus import RULE, ConsensusChange, is_consensus
from pipeline.config.label import EstimatorConfig, GraderConfig
from pipeline.config.recorded_settings import Settings, chosen_settings, given_settings, with_source
from pipeline.consensus.evidence import ChainEvidence
from pipeline.consensus.kept import COLUMNS, ConsensusCounter, summary_lines
from pipeline.consensus.reliability import reliability_lines
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.progress import RelabelResult
from pipeline.core.records import Chain, Finish, Grade, Solution
from pipeline.core.tables import SOLUTIONS, VERDICTS, RolloutVerdict
from pipeline.data.prompts import opened_thinking, stem
from pipeline.estimators.base import objection
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.graders.base import Checker
from pipeline.graders.question import grade_at_once, grade_in_time, outcome_of
from pipeline.graders.registry import GRADERS, checker_for, grader_version
from pipeline.storage.edition_writer import EditionWriter, Judging
from pipeline.storage.editions import arrange, edition_sequence
from pipeline.storage.location import storage_at
from pipeline.storage.lock import hold_lock
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, finished_run, refuse_unfinished
from pipeline.storage.temporary import temporary_folder
from pipeline.storage.units import UnitRef, unit_rows
from pipeline.witnesses.base import Witness

Stem = tuple[tuple[str, ...], str]
"""The gold answers of a prefix's problem, and the text that precedes its completions."""
CERTAINTY = "estimator.certainty"


def relabel(config: RelabelConfig) -> RelabelResult:
    """Make labels with the estimator of the settings. Raises UsageError for a missing or unfinished run, StoreError and
    RunConflict."""
    named = given_settings("estimator", config.estimator)
    return _edited(config, named, lambda *_: nullcontext(None), config.consensus)


def regrade(config: RegradeConfig) -> RelabelResult:
    """Grade all stored completions and chains again, and read the critiques of judges again. Raises UsageError for a missing or
    unfinished run, StoreError, RunConflict, and StepvalueError if the checker cannot work on this machine."""
    storage = storage_at(config.run_dir)
    refuse_unfinished(storage)
    # Before the labels: those by consensus are made from the newest readings.
    reread = tuple(reread_lines(storage, lock=config.lock))
    named = {**given_settings("grader", config.grader), **given_settings("estimator", config.estimator)}
    named.pop("grader.processes", None)
    processes = getattr(config.grader, "processes", None) or 1
    named["grader_version"] = grader_version()
    edited = _edited(config, named, lambda run, settings: _regrading(run, settings, processes))
    return replace(edited, notes=(*edited.notes, *reread))


def _edited(
    config: RelabelConfig | RegradeConfig,
    named: Settings,
    judging: Callable[[StoredRun, Settings], AbstractContextManager[Judging | None]],
    consensus: ConsensusChange | None = None,
) -> RelabelResult:
    """Make a new edition with the `named` settings, unless they are those of the current labels. `consensus`: its settings that
    change, if labels are made by one."""
    storage = storage_at(config.run_dir)
    refuse_unfinished(storage)
    with hold_lock(storage, lock=config.lock):
        run = finished_run(storage)
        # Each rule has its own default.
        changed = {} if named.get(RULE, run.settings[RULE]) == run.settings[RULE] else {CERTAINTY: None}
        settings: Settings = {**run.settings, **changed, **named}
        settings = with_source(run.settings, settings, EstimatorConfig, ESTIMATORS)
        settings = with_source(run.settings, settings, GraderConfig, GRADERS)
        settings, witnesses = settled(storage, run, settings, consensus or ConsensusChange())
        edited = RelabelResult(run_dir=storage.run_dir)
        if settings != run.settings:
            with judging(run, {**run.identity, **settings}) as judge:
                edited = _make_edition(storage, run, settings, judge, witnesses)
        # Without a new edition it completes the moves that a crash has interrupted.
        arrange(storage, replace(run, editions=edition_sequence(storage)).current_files)
        return edited


@contextmanager
def _regrading(run: StoredRun, settings: Settings, processes: int) -> Iterator[Judging]:
    grader = replace(chosen_settings(settings, GraderConfig, GRADERS), processes=processes)
    threads = ThreadPoolExecutor(processes)
    with checker_for(grader) as checker:
        try:
            yield _Regrader(run, checker, threads, opened_thinking(settings.get("policy.prompt.thinking")))
        finally:
            # After a failure the waiting grades are not needed; running ones end at the checker's deadline.
            threads.shutdown(cancel_futures=True)


def _make_edition(
    storage: Storage, run: StoredRun, settings: Settings, judge: Judging | None, witnesses: Sequence[Witness]
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
    writer = EditionWriter(storage, run, wanted, judge)
    notes: tuple[str, ...] = ()
    if consensus is None:
        writer.write_all()
    else:
        # There are no cycles of garbage, and with millions of small objects the search for them takes an eighth of the time.
        gc.disable()
        try:
            notes = _write_consensus(writer, run.units, consensus)
        finally:
            gc.enable()
    return replace(writer.publish(settings, "relabel" if judge is None else "regrade"), notes=notes)


def _write_consensus(writer: EditionWriter, units: Sequence[UnitRef], consensus: Consensus) -> tuple[str, ...]:
    """Write the labels of all units by consensus. What Monte Carlo says waits on disk until all units are measured. Returns
    lines about them."""
    state = writer.learned()
    with temporary_folder("stepvalue-relabel-") as folder:
        evidence: list[tuple[UnitRef, Sequence[ChainEvidence]]] = []
        for ref in units:
            if (unit := writer.prepare(ref)) is not None:
                by_mc, of_unit = consensus.measure(unit.chains, unit.trials, state)
                path = f"{folder}/{len(evidence)}"
                with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, by_mc.schema) as waiting:
                    waiting.write_table(by_mc)
                evidence.append((ref, of_unit))
        chains = [each for _, of_unit in evidence for each in of_unit]
        learned = consensus.learn(chains)
        if learned is not None:
            writer.write_learned(learned_table(learned, len(chains)), TABLE)
        places, done, counted = consensus.places(chains, learned), 0, ConsensusCounter()
        for number, (ref, of_unit) in enumerate(evidence):
            by_mc = pa.ipc.open_file(f"{folder}/{number}").read_all()
            own = None if places is None else places[done : done + len(of_unit)]
            labels = consensus.labels(by_mc, of_unit, own, learned)
            counted.add(pl.DataFrame(labels.select(COLUMNS)))
            writer.write(ref, labels)
            done += len(of_unit)
    summary = counted.summary()
    notes = [*(summary_lines(summary) if summary else ()), *(reliability_lines(learned) if learned else ())]
    advice = [f"advice    {consensus.advice}"] if consensus.advice else []
    return (*notes, *consensus.cap_lines(learned), *advice)


@dataclass(frozen=True, slots=True)
class _Regrader:
    """Grades the stored texts of a unit with a checker. `before`: what stands before the steps of a chain."""

    _run: StoredRun
    _checker: Checker
    _threads: ThreadPoolExecutor
    _before: str

    def __call__(
        self, ref: UnitRef, chains: Sequence[Chain], rollouts: Sequence[pa.Table]
    ) -> tuple[Sequence[Chain], pa.Table]:
        tables = self._run.of_unit(ref.unit_id, SOLUTIONS)
        drawn = {draw.chain_id: draw.solution for table in tables for draw in SOLUTIONS.from_table(table)}
        solutions = [drawn.get(chain.solution.chain_id, chain.solution) for chain in chains]
        rows = unit_rows(self._run.storage, ref)
        given = {row.solution.chain_id: row.given_outcome for row in rows if row.solution}
        outcomes = [given.get(chain.solution.chain_id) for chain in chains]
        regraded = list(self._threads.map(self._with_outcome, chains, solutions, outcomes))
        grades = sorted(self._grades(rollouts, _stems(chains, solutions)).items())
        grader = grader_version()
        verdicts = [RolloutVerdict(rollout, grade.answer, grade.verdict, grader) for rollout, grade in grades]
        return regraded, VERDICTS.to_table(verdicts)

    def _grades(self, rollouts: Sequence[pa.Table], stems: Mapping[str, Stem]) -> dict[str, Grade]:
        grades: dict[str, Grade] = {}
        slow: dict[str, Future[Grade]] = {}
        for table in rollouts:
            columns = (table[name].to_pylist() for name in ("rollout_id", "prefix_id", "text", "finish"))
            for rollout, prefix, completion, ending in zip(*columns, strict=True):
                if prefix not in stems:
                    raise StoreError(f"rollout {rollout} belongs to no chain of its unit: `audit` shows what is wrong")
                golds, before = stems[prefix]
                text, finish = self._before + before + completion, Finish(ending)
                grade = grade_at_once(self._checker, golds, text, finish)
                if grade is None:
                    slow[rollout] = self._threads.submit(grade_in_time, self._checker, golds, text, finish)
                else:
                    grades[rollout] = grade
        return grades | {rollout: grade.result() for rollout, grade in slow.items()}

    def _with_outcome(self, chain: Chain, solution: Solution, given: bool | None) -> Chain:
        if chain.grown:
            return chain
        answer = self._checker.stated_answer(self._before + solution.text, complete=solution.complete)
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
