"""Reads chains to score: rows of a run's labels, and rows of files with or without a known answer.

A chain carries everything known about it, including its own answer and outcome.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from pipeline.config.label import DataConfig
from pipeline.config.score import ScoreConfig
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.core.schemas import CHAINS
from pipeline.core.tables import storable
from pipeline.data.layouts import Extract
from pipeline.data.rows import read_rows
from pipeline.data.steps import step_texts
from pipeline.graders.base import Checker
from pipeline.graders.question import outcome_of
from pipeline.graders.registry import checker_for
from pipeline.runtime.chain_run.answered import read_answered_or_not
from pipeline.runtime.chain_run.chains import ChainSource, Rejects, labelled_chains, numbered

BLOCK = 1024
"""Chains of files that are read together."""


def score_source(config: ScoreConfig) -> ChainSource:
    """The chains to score."""
    return ChainSource(
        place=config.run_dir or config.data.path,
        tables=lambda left_out: chain_tables(config, left_out),
        to_do="score",
        done="scored",
        results="scores",
        elsewhere="another out",
    )


def chain_tables(config: ScoreConfig, left_out: Rejects) -> Iterator[pa.Table]:
    """The chains to score in blocks of the schema CHAINS, in order. Raises UsageError and InputError for a run or a path that
    cannot be read."""
    if config.run_dir:
        return labelled_chains(config.run_dir, CHAINS, partial=config.partial)
    return numbered(_read(config, left_out), CHAINS)


def _read(config: ScoreConfig, left_out: Rejects) -> Iterator[pa.Table]:
    schema = pa.schema([field for field in CHAINS if field.name != "row"])
    chains = _rows(config, left_out)
    while block := list(islice(chains, BLOCK)):
        yield pa.Table.from_pylist(block, schema=schema)


def _rows(config: ScoreConfig, left_out: Rejects) -> Iterator[dict[str, Any]]:
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
    """Like `read_answered_or_not`, but a row without a chain gives a Reject."""
    read = read_answered_or_not(row, location, data, final_answer)
    if isinstance(read, InputRow) and read.solution is None:
        detail = (
            "The row has no chain to score; name its column with data.columns.steps=NAME or data.columns.solution=NAME."
        )
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
