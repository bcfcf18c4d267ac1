"""Reads rows of which some have a known answer and some have none."""

from collections.abc import Mapping
from dataclasses import replace

from pipeline.config.label import DataConfig
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.data.layouts import Extract
from pipeline.data.problems import read_row

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
    problem = replace(row.problem, problem_id=problem_id)
    if row.solution is None:
        return replace(row, problem=problem)
    chain_id = content_id("chain", problem_id, row.solution.text, ",".join(map(str, row.solution.ends)))
    return replace(
        row,
        problem=problem,
        solution=replace(row.solution, problem_id=problem_id, chain_id=chain_id),
    )
