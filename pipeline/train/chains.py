"""Chains to be scored, from a run's labels or from files: what is known of each, its own answer and outcome included."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.core.records import InputRow, Reject
from pipeline.core.tables import storable
from pipeline.data.rows import read_rows
from pipeline.data.steps import step_texts
from pipeline.graders.base import Checker
from pipeline.graders.completion import outcome_of
from pipeline.graders.registry import checker_for
from pipeline.train.rows import label_rows, read_chain
from pipeline.train.settings import ScoreConfig

_COLUMNS = ("chain_id", "problem_id", "source_id", "problem", "gold_answer", "steps", "final_answer", "outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenChain:
    """The first columns of `scores.SCORES`."""

    chain_id: str
    problem_id: str
    source_id: str | None
    problem: str
    gold_answer: str | None
    steps: list[str]
    final_answer: str | None
    outcome: bool | None


@dataclass(slots=True)
class LeftOut:
    """Rows that could not be used, counted while they are read; `first` says which was the first and why."""

    rows: int = 0
    first: str = ""

    def add(self, reject: Reject) -> None:
        self.rows += 1
        self.first = self.first or f"{reject.place.file}:{reject.place.line}: {reject.detail}"


def given_chains(config: ScoreConfig, left_out: LeftOut) -> Iterator[GivenChain]:
    """The chains in their order. Raises UsageError and InputError for a run or a path that cannot be read."""
    if config.run_dir:
        for stored in label_rows(config.run_dir, _COLUMNS, partial=config.partial):
            yield GivenChain(**stored)
        return
    with checker_for(config.grader) as checker:
        for place, row in read_rows(config.data.path, config.data.limit):
            read = row if isinstance(row, Reject) else read_chain(row, place, config.data, checker.stated_answer)
            if isinstance(read, Reject):
                left_out.add(read)
            else:
                yield _graded(read, checker)


def _graded(row: InputRow, checker: Checker) -> GivenChain:
    problem, solution = row.problem, row.solution
    assert solution is not None
    answer = checker.stated_answer(solution.text)
    outcome = None
    if answer is not None and problem.golds:
        grade = checker.quick_answer(problem.golds, answer) or checker.grade_answer(problem.golds, answer)
        outcome = outcome_of(grade)
    return GivenChain(
        chain_id=solution.chain_id,
        problem_id=problem.problem_id,
        source_id=row.source_id,
        problem=problem.text,
        gold_answer=problem.golds[0] if problem.golds else None,
        steps=step_texts(solution.text, solution.ends),
        final_answer=None if answer is None else storable(answer),
        outcome=outcome,
    )
