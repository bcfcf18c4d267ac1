"""Chains to train on and to score: rows of a run's labels, and rows of files with or without a known answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.config.label import DataConfig
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Place, Reject, RejectReason
from pipeline.data.layouts import Extract
from pipeline.data.problems import read_row
from pipeline.storage.place import storage_at
from pipeline.storage.stored_labels import rows_of
from pipeline.storage.stored_run import readable_run

_NO_ANSWER = "\x00"
"""Name of a column that no row has, and the answer in it: a reader of rows wants one."""


def label_rows(run_dir: str, columns: Sequence[str], *, partial: bool) -> Iterator[dict[str, Any]]:
    """The rows of a run's current labels. Raises UsageError for no run of this version, and unless `partial` for an unfinished
    one; StoreError for a damaged file."""
    storage = storage_at(run_dir)
    yield from rows_of(storage, readable_run(storage, partial=partial), columns)


def read_chain(row: Mapping[str, object], place: Place, data: DataConfig, final_answer: Extract) -> InputRow | Reject:
    """As `problems.read_row`, but a row without a known answer has a problem without `golds`, one without a chain is a Reject,
    and ids depend on the texts alone: some rows of a problem may have the answer, and others not."""
    read = read_row(row, place, data, final_answer)
    if isinstance(read, Reject) and read.reason is RejectReason.MISSING_ANSWER:
        read = _unanswered(row, place, data, final_answer)
    if isinstance(read, InputRow) and read.solution is None:
        detail = (
            "The row has no chain to score; name its column with data.columns.steps=NAME or data.columns.solution=NAME."
        )
        return Reject(place=place, reason=RejectReason.NO_STEPS, detail=detail, source_id=read.source_id)
    return _named_by_text(read) if isinstance(read, InputRow) else read


def _unanswered(row: Mapping[str, object], place: Place, data: DataConfig, final_answer: Extract) -> InputRow | Reject:
    columns = replace(data.columns, answer=_NO_ANSWER)
    bare = replace(data, columns=columns, answer_in_text=False, answer_is_suite=False)
    read = read_row({**row, _NO_ANSWER: "?"}, place, bare, final_answer)
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
