"""The `regrade` command: verdicts by other settings of the checker, from stored text, and labels from them.

Verdicts that take microseconds are given here, the others by `grader.processes` threads, each of which waits for a child.
Not covered: the draws of problems that came without a chain. Which of them are kept was decided by their first verdicts.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from pipeline.analysis.relabel.edition import Judged, StoredUnit, make_edition, same_edition
from pipeline.config.changes import RegradeConfig
from pipeline.config.label import GraderConfig
from pipeline.config.recorded import Settings, chosen, given
from pipeline.core.errors import StoreError
from pipeline.core.progress import Edited
from pipeline.core.records import Finish, Grade, Solution
from pipeline.core.tables import verdicts_table
from pipeline.data.prompts import root_id, stem
from pipeline.estimators.labelling import StoredChain
from pipeline.graders.base import Checker
from pipeline.graders.question import grade_at_once, grade_in_time, outcome_of
from pipeline.graders.registry import GRADERS, checker_for, grader_version
from pipeline.storage.place import held, storage_at
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun, finished_run, refuse_unfinished

_HOW_MANY = "grader.processes"
Stem = tuple[tuple[str, ...], str]
"""The gold answers of a prefix's problem, and what its completions are joined to."""


def regrade(config: RegradeConfig) -> Edited:
    """Grade all stored completions and chains anew. Raises UsageError for no run or an unfinished one, StoreError,
    RunConflict, and StepvalueError where the checker cannot work here."""
    storage = storage_at(config.run_dir)
    refuse_unfinished(storage)
    with held(storage, lock=config.lock):
        run = finished_run(storage)
        named = {**given("grader", config.grader), **given("estimator", config.estimator)}
        named.pop(_HOW_MANY, None)
        settings = {**run.settings, **named, "grader_version": grader_version()}
        if settings == run.settings:
            return same_edition(storage, run)
        return _regraded(storage, run, settings, getattr(config.grader, "processes", None) or 1)


def _regraded(storage: Storage, run: StoredRun, settings: Settings, processes: int) -> Edited:
    grader = replace(chosen(settings, GraderConfig, GRADERS), processes=processes)
    threads = ThreadPoolExecutor(processes)
    with checker_for(grader) as checker:
        try:
            return make_edition(storage, run, settings, _Regrader(checker, threads))
        finally:
            # After a failure nobody wants the rest; what is under way ends at the checker's deadline.
            threads.shutdown(cancel_futures=True)


class _Regrader:
    """See `edition.Judging`."""

    def __init__(self, checker: Checker, threads: ThreadPoolExecutor) -> None:
        self._checker = checker
        self._threads = threads

    def __call__(self, unit: StoredUnit) -> Judged:
        drawn = {draw.solution.chain_id: draw.solution for draw in unit.drawn}
        solutions = [drawn.get(chain.solution.chain_id, chain.solution) for chain in unit.chains]
        chains = list(self._threads.map(self._with_outcome, unit.chains, solutions))
        return Judged(
            chains=chains, verdicts=verdicts_table(self._grades(unit, _stems(unit.chains, solutions)), grader_version())
        )

    def _grades(self, unit: StoredUnit, stems: Mapping[str, Stem]) -> dict[str, Grade]:
        grades: dict[str, Grade] = {}
        slow: dict[str, Future[Grade]] = {}
        for table in unit.rollouts:
            columns = (table[name].to_pylist() for name in ("rollout_id", "prefix_id", "text", "finish"))
            for rollout, prefix, completion, ending in zip(*columns, strict=True):
                if prefix not in stems:
                    raise StoreError(f"rollout {rollout} belongs to no chain of its unit: `audit` tells what is wrong")
                golds, before = stems[prefix]
                text, finish = before + completion, Finish(ending)
                grade = grade_at_once(self._checker, golds, text, finish)
                if grade is None:
                    slow[rollout] = self._threads.submit(grade_in_time, self._checker, golds, text, finish)
                else:
                    grades[rollout] = grade
        return grades | {rollout: grade.result() for rollout, grade in slow.items()}

    def _with_outcome(self, chain: StoredChain, solution: Solution) -> StoredChain:
        answer = self._checker.stated_answer(solution.text, complete=solution.complete)
        if answer is None:
            return replace(chain, final_answer=None, outcome=None)
        grade = self._checker.grade_answer(chain.problem.golds, answer)
        return replace(chain, final_answer=answer, outcome=outcome_of(grade))


def _stems(chains: Sequence[StoredChain], solutions: Sequence[Solution]) -> dict[str, Stem]:
    """What the rollouts of each prefix are judged behind, by prefix id."""
    stems: dict[str, Stem] = {}
    for chain, solution in zip(chains, solutions, strict=True):
        golds = chain.problem.golds
        stems[root_id(chain.problem.problem_id)] = golds, ""
        for index, prefix in enumerate(chain.prefix_ids, start=1):
            stems[prefix] = golds, stem(solution, index)
    return stems
