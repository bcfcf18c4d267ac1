"""Reads chains of a run's labels, or of files whose rows may have a known answer.

A chain carries everything known about it, including its own answer and outcome. Some rows may have no known answer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

import pyarrow as pa

from pipeline.config.check import CheckRunConfig
from pipeline.config.label import DataConfig
from pipeline.config.score import ScoreConfig
from pipeline.core.ids import content_id, row_content
from pipeline.core.records import ChainText, InputRow, Reject, RejectReason, RowLocation
from pipeline.core.table import storable
from pipeline.core.tables import CHAINS
from pipeline.data.layouts import Extract
from pipeline.data.problems import read_row
from pipeline.data.rows import input_digest
from pipeline.data.steps import step_texts
from pipeline.graders.base import Checker
from pipeline.graders.question import outcome_of
from pipeline.graders.registry import checker_for, grader_version
from pipeline.runtime.chain_run.chain_task import ChainTask, numbered_rows
from pipeline.runtime.intake import LeftOutRows, read_input
from pipeline.runtime.state import section_identity

Given = ScoreConfig | CheckRunConfig
"""The settings of a run whose chains are the rows of `data.path`, if there is one, with the grader for those that have an
answer; else those of the run in `run_dir`."""
GivenConfig = TypeVar("GivenConfig", bound=Given)


class GivenTask(ChainTask[GivenConfig], Protocol[GivenConfig]):
    """A run over such chains."""

    @property
    def place(self) -> str:
        return self.config.data.path or super().place

    def chains(self, left_out: LeftOutRows) -> Iterator[pa.Table]:
        if self.config.data.path:
            return numbered_rows(_rows(self.config, left_out), CHAINS)
        return super().chains(left_out)

    def chains_identity(self) -> dict[str, object]:
        config = self.config
        if not config.data.path:
            return super().chains_identity()
        return {
            "input": input_digest(config.data.path),
            "grader_version": grader_version(),
            **section_identity("data", config.data),
            **section_identity("grader", config.grader),
        }


def _rows(given: Given, left_out: LeftOutRows) -> Iterator[ChainText]:
    with checker_for(given.grader) as checker:
        for read in read_input(given.data, checker, read=read_answered_or_not):
            if isinstance(read, Reject):
                left_out.add(read)
            elif (solution := read.solution) is None:
                detail = (
                    "The row has no chain; name its column with data.columns.steps=NAME or data.columns.solution=NAME."
                )
                reason, source = RejectReason.NO_STEPS, read.source_id
                left_out.add(Reject(location=read.location, reason=reason, detail=detail, source_id=source))
            else:
                ids = (content_id("prefix", read.problem.problem_id, solution.text[:end]) for end in solution.ends)
                yield replace(chain_of(read, checker, read.problem.golds), prefix_ids=tuple(ids))


def chain_of(row: InputRow, checker: Checker, golds: tuple[str, ...], before: str = "") -> ChainText:
    """A problem, and its chain if it has one, without the ids of prefixes. An answer that the chain states after the text
    `before` is graded by `golds`."""
    problem, solution = row.problem, row.solution
    answer = checker.stated_answer(before + solution.text) if solution else None
    outcome = row.given_outcome if solution else None
    if answer is not None and golds:
        outcome = outcome_of(checker.quick_answer(golds, answer) or checker.grade_answer(golds, answer))
    return ChainText(
        chain_id=solution.chain_id if solution else row_content(problem.problem_id, None),
        problem_id=problem.problem_id,
        source_id=row.source_id,
        problem=problem.text,
        # A known answer that the grader cannot read is named, but no chain is graded by it.
        gold_answer=next(iter([*golds, *problem.golds]), None),
        golds=golds,
        steps=tuple(step_texts(solution.text, solution.ends)) if solution else (),
        prefix_ids=(),
        final_answer=None if answer is None else storable(answer),
        outcome=outcome,
    )


_NO_ANSWER = "\x00"
"""The name of a column that no row has. It supplies a placeholder answer, because the reader of rows requires one."""


def read_answered_or_not(
    row: Mapping[str, object], location: RowLocation, data: DataConfig, final_answer: Extract
) -> InputRow | Reject:
    """Like `problems.read_row`, with two differences. A row without a known answer gives a problem without `golds`. Ids depend
    only on the texts, because not all rows of a problem may have the answer."""
    read = read_row(row, location, data, final_answer)
    if isinstance(read, Reject) and read.reason is RejectReason.MISSING_ANSWER:
        read = _unanswered(row, location, data, final_answer)
    return _named_by_text(read) if isinstance(read, InputRow) else read


def _unanswered(
    row: Mapping[str, object], location: RowLocation, data: DataConfig, final_answer: Extract
) -> InputRow | Reject:
    columns = replace(data.columns, answer=_NO_ANSWER)
    bare = replace(data, columns=columns, answer_in_text=False, answer_is_suite=False)
    read = read_row({**row, _NO_ANSWER: "?"}, location, bare, final_answer)
    return read if isinstance(read, Reject) else replace(read, problem=replace(read.problem, golds=()))


def _named_by_text(row: InputRow) -> InputRow:
    problem_id = content_id("problem", row.problem.text)
    solution = row.solution
    if solution is not None:
        chain_id = content_id("chain", problem_id, solution.text, ",".join(map(str, solution.ends)))
        solution = replace(solution, problem_id=problem_id, chain_id=chain_id)
    return replace(row, problem=replace(row.problem, problem_id=problem_id), solution=solution)
