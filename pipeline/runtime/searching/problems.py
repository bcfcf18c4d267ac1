"""Reads the problems of a search: with or without a known answer, and with the chain that a row has, where the method uses
it."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pipeline.config.search import SearchRunConfig
from pipeline.core.ids import row_content
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.core.table import storable
from pipeline.core.tables import CHAINS_WITH_ANSWERS
from pipeline.data.prompts import opened_thinking
from pipeline.data.rows import read_rows
from pipeline.data.steps import step_texts
from pipeline.graders.base import Checker
from pipeline.graders.question import outcome_of
from pipeline.graders.registry import checker_for
from pipeline.runtime.chain_run.chains import Rejects, numbered_rows
from pipeline.runtime.chain_run.given import read_answered_or_not
from pipeline.searches.ids import prefix_id
from pipeline.searches.registry import search_for


def problem_tables(config: SearchRunConfig, left_out: Rejects) -> Iterator[pa.Table]:
    """The problems in blocks of the schema CHAINS_WITH_ANSWERS, in order. Raises UsageError and InputError for a path that
    cannot be read."""
    return numbered_rows(_rows(config, left_out), CHAINS_WITH_ANSWERS.schema)


_First = tuple[RowLocation, tuple[str, ...]]
"""Where the first row of a problem is, and its known answers."""


def _rows(config: SearchRunConfig, left_out: Rejects) -> Iterator[dict[str, Any]]:
    uses_given = search_for(config.search).uses_given
    seen: dict[str, _First] = {}
    with_chains: dict[str, _First] = {}
    with checker_for(config.grader) as checker:
        for location, row in read_rows(config.data.path, config.data.limit):
            read = (
                row
                if isinstance(row, Reject)
                else read_answered_or_not(row, location, config.data, checker.stated_answer)
            )
            if isinstance(read, Reject):
                left_out.add(read)
            elif uses_given and read.solution is not None:
                earlier = with_chains.setdefault(read.problem.problem_id, (location, read.problem.golds))
                if read.problem.golds and earlier[1] and read.problem.golds != earlier[1]:
                    left_out.add(_repeated(read, *earlier))
                else:
                    yield _with_chain(read, checker, opened_thinking(config.policy.prompt.thinking))
            elif (first := seen.get(read.problem.problem_id)) is None:
                seen[read.problem.problem_id] = location, read.problem.golds
                yield _without_chain(read, checker)
            elif read.solution is None or read.problem.golds != first[1]:
                left_out.add(_repeated(read, *first))
            # Other rows of a problem with the same answer only have other chains of it.


def _repeated(row: InputRow, location: RowLocation, golds: tuple[str, ...]) -> Reject:
    other = "" if row.problem.golds == golds else ", with another answer,"
    return Reject(
        location=row.location,
        reason=RejectReason.DUPLICATE,
        detail=f"the same problem{other} is at {location}; that row is searched",
        source_id=row.source_id,
    )


def _without_chain(row: InputRow, checker: Checker) -> dict[str, Any]:
    problem = row.problem
    golds = [gold for gold in problem.golds if checker.parses(gold)]
    return {
        "chain_id": row_content(problem.problem_id, None),
        "problem_id": problem.problem_id,
        "source_id": row.source_id,
        "problem": problem.text,
        # A known answer that the grader cannot read is named, but no chain is graded by it.
        "gold_answer": next(iter([*golds, *problem.golds]), None),
        "gold_answers": golds,
        "steps": [],
        "final_answer": None,
        "outcome": None,
        "prefix_ids": [],
    }


def _with_chain(row: InputRow, checker: Checker, before: str) -> dict[str, Any]:
    bare, solution = _without_chain(row, checker), row.solution
    assert solution is not None
    steps = step_texts(solution.text, solution.ends)
    answer = checker.stated_answer(before + solution.text)
    outcome, golds = row.given_outcome, tuple(bare["gold_answers"])
    if answer is not None and golds:
        outcome = outcome_of(checker.quick_answer(golds, answer) or checker.grade_answer(golds, answer))
    problem_id = row.problem.problem_id
    return {
        **bare,
        "chain_id": solution.chain_id,
        "steps": steps,
        "final_answer": None if answer is None else storable(answer),
        "outcome": outcome,
        "prefix_ids": [prefix_id(problem_id, steps[: index + 1]) for index in range(len(steps))],
    }
