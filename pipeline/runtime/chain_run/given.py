"""Reads chains of a run's labels, or of files whose rows may have a known answer.

A chain carries everything known about it, including its own answer and outcome.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa

from pipeline.config.label import DataConfig, GraderConfig
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.core.schemas import CHAINS
from pipeline.core.tables import storable
from pipeline.data.layouts import Extract
from pipeline.data.rows import input_digest, read_rows
from pipeline.data.steps import step_texts
from pipeline.graders.base import Checker
from pipeline.graders.question import outcome_of
from pipeline.graders.registry import checker_for, grader_version
from pipeline.runtime.chain_run.answered import read_answered_or_not
from pipeline.runtime.chain_run.chains import Rejects, labelled_chains, labelled_identity, numbered
from pipeline.runtime.state import section_identity

BLOCK = 1024
"""Chains of files that are read together."""


class Given(Protocol):
    """Where chains come from: the run in `run_dir`, or else the rows of `data.path`, with the grader for those that have an
    answer. `partial`: an unfinished run is accepted."""

    @property
    def run_dir(self) -> str | None: ...

    @property
    def data(self) -> DataConfig: ...

    @property
    def grader(self) -> GraderConfig: ...

    @property
    def partial(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenChains:
    """A `Given` of its own."""

    run_dir: str | None
    data: DataConfig
    grader: GraderConfig
    partial: bool


def chain_tables(given: Given, left_out: Rejects) -> Iterator[pa.Table]:
    """The chains in blocks of the schema CHAINS, in order. Raises UsageError and InputError for a run or a path that
    cannot be read."""
    if given.run_dir:
        return labelled_chains(given.run_dir, CHAINS, partial=given.partial)
    return numbered(_read(given, left_out), CHAINS)


def given_identity(given: Given) -> dict[str, object]:
    """What the chains add to the identity of a run over them. Raises as `chain_tables` does."""
    if given.run_dir:
        return labelled_identity(given.run_dir, partial=given.partial)
    return {
        "input": input_digest(given.data.path),
        "grader_version": grader_version(),
        **section_identity("data", given.data),
        **section_identity("grader", given.grader),
    }


def _read(given: Given, left_out: Rejects) -> Iterator[pa.Table]:
    schema = pa.schema([field for field in CHAINS if field.name != "row"])
    chains = _rows(given, left_out)
    while block := list(islice(chains, BLOCK)):
        yield pa.Table.from_pylist(block, schema=schema)


def _rows(given: Given, left_out: Rejects) -> Iterator[dict[str, Any]]:
    with checker_for(given.grader) as checker:
        for location, row in read_rows(given.data.path, given.data.limit):
            read = row if isinstance(row, Reject) else read_chain(row, location, given.data, checker.stated_answer)
            if isinstance(read, Reject):
                left_out.add(read)
            else:
                yield _graded(read, checker)


def read_chain(
    row: Mapping[str, object], location: RowLocation, data: DataConfig, final_answer: Extract
) -> InputRow | Reject:
    """Like `read_answered_or_not`, but a row without a chain gives a Reject."""
    read = read_answered_or_not(row, location, data, final_answer)
    if isinstance(read, InputRow) and read.solution is None:
        detail = "The row has no chain; name its column with data.columns.steps=NAME or data.columns.solution=NAME."
        return Reject(location=location, reason=RejectReason.NO_STEPS, detail=detail, source_id=read.source_id)
    return read


def _graded(row: InputRow, checker: Checker) -> dict[str, Any]:
    problem, solution = row.problem, row.solution
    assert solution is not None
    answer = checker.stated_answer(solution.text)
    outcome = row.given_outcome
    if answer is not None and problem.golds:
        grade = checker.quick_answer(problem.golds, answer) or checker.grade_answer(problem.golds, answer)
        outcome = outcome_of(grade)
    return {
        "chain_id": solution.chain_id,
        "problem_id": problem.problem_id,
        "source_id": row.source_id,
        "problem": problem.text,
        "gold_answer": problem.golds[0] if problem.golds else None,
        "steps": step_texts(solution.text, solution.ends),
        "final_answer": None if answer is None else storable(answer),
        "outcome": outcome,
        "prefix_ids": [content_id("prefix", problem.problem_id, solution.text[:end]) for end in solution.ends],
    }
