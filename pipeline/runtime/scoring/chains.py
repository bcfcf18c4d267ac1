"""Reads chains to score: rows of a run's labels, and rows of files with or without a known answer.

A chain to be scored carries everything known about it, including its own answer and outcome.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pipeline.config.label import DataConfig
from pipeline.config.score import ScoreConfig
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.core.tables import storable
from pipeline.data.layouts import Extract
from pipeline.data.problems import read_row
from pipeline.data.rows import read_rows
from pipeline.data.steps import step_texts
from pipeline.graders.base import Checker
from pipeline.graders.question import outcome_of
from pipeline.graders.registry import checker_for
from pipeline.scorers.base import ChainText
from pipeline.storage.stored_labels import label_rows

_COLUMNS = (
    *("chain_id", "problem_id", "source_id", "problem", "gold_answer", "steps", "final_answer", "outcome"),
    "prefix_ids",
)
_NO_ANSWER = "\x00"
"""The name of a column that no row has. It supplies a placeholder answer, because the reader of rows requires one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenChain:
    """A chain to score with what is known about it: the first columns of `schemas.SCORES`, and for each step an id of the
    prefix that ends with it, which is equal for equal prefixes."""

    chain_id: str
    problem_id: str
    source_id: str | None
    problem: str
    gold_answer: str | None
    steps: list[str]
    final_answer: str | None
    outcome: bool | None
    prefix_ids: list[str]

    @property
    def text(self) -> ChainText:
        """What a scorer gets of it."""
        return ChainText(
            chain_id=self.chain_id,
            problem_id=self.problem_id,
            problem=self.problem,
            steps=tuple(self.steps),
            prefix_ids=tuple(self.prefix_ids),
        )


@dataclass(slots=True)
class LeftOutRows:
    """The number of unusable rows so far. `first`: location and reason of the first one."""

    rows: int = 0
    first: str = ""

    def add(self, reject: Reject) -> None:
        self.rows += 1
        self.first = self.first or f"{reject.location}: {reject.detail}"


def given_chains(config: ScoreConfig, left_out: LeftOutRows) -> Iterator[GivenChain]:
    """The chains to score, in order. Raises UsageError and InputError for a run or a path that cannot be read."""
    if config.run_dir:
        for stored in label_rows(config.run_dir, _COLUMNS, partial=config.partial):
            yield GivenChain(**stored)
        return
    with checker_for(config.grader) as checker:
        for location, row in read_rows(config.data.path, config.data.limit):
            read = row if isinstance(row, Reject) else read_chain(row, location, config.data, checker.stated_answer)
            if isinstance(read, Reject):
                left_out.add(read)
            else:
                yield _graded(read, checker)


def read_chain(
    row: Mapping[str, object], location: RowLocation, data: DataConfig, final_answer: Extract
) -> InputRow | Reject:
    """Like `problems.read_row`, with three differences. A row without a known answer gives a problem without `golds`. A row
    without a chain gives a Reject. Ids depend only on the texts, because not all rows of a problem may have the answer."""
    read = read_row(row, location, data, final_answer)
    if isinstance(read, Reject) and read.reason is RejectReason.MISSING_ANSWER:
        read = _unanswered(row, location, data, final_answer)
    if isinstance(read, InputRow) and read.solution is None:
        detail = (
            "The row has no chain to score; name its column with data.columns.steps=NAME or data.columns.solution=NAME."
        )
        return Reject(location=location, reason=RejectReason.NO_STEPS, detail=detail, source_id=read.source_id)
    return _named_by_text(read) if isinstance(read, InputRow) else read


def _graded(row: InputRow, checker: Checker) -> GivenChain:
    problem, solution = row.problem, row.solution
    assert solution is not None
    answer = checker.stated_answer(solution.text)
    outcome = row.given_outcome
    if answer is not None and problem.golds:
        grade = checker.quick_answer(problem.golds, answer) or checker.grade_answer(problem.golds, answer)
        outcome = outcome_of(grade)
    steps = step_texts(solution.text, solution.ends)
    return GivenChain(
        chain_id=solution.chain_id,
        problem_id=problem.problem_id,
        source_id=row.source_id,
        problem=problem.text,
        gold_answer=problem.golds[0] if problem.golds else None,
        steps=steps,
        final_answer=None if answer is None else storable(answer),
        outcome=outcome,
        prefix_ids=[content_id("prefix", problem.problem_id, solution.text[:end]) for end in solution.ends],
    )


def _unanswered(
    row: Mapping[str, object], location: RowLocation, data: DataConfig, final_answer: Extract
) -> InputRow | Reject:
    columns = replace(data.columns, answer=_NO_ANSWER)
    bare = replace(data, columns=columns, answer_in_text=False, answer_is_suite=False)
    read = read_row({**row, _NO_ANSWER: "?"}, location, bare, final_answer)
    return read if isinstance(read, Reject) else replace(read, problem=replace(read.problem, golds=()))


def _named_by_text(row: InputRow) -> InputRow:
    assert row.solution is not None
    problem_id = content_id("problem", row.problem.text)
    chain_id = content_id("chain", problem_id, row.solution.text, ",".join(map(str, row.solution.ends)))
    return replace(
        row,
        problem=replace(row.problem, problem_id=problem_id),
        solution=replace(row.solution, problem_id=problem_id, chain_id=chain_id),
    )
