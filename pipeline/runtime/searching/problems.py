"""Reads the problems of a search: with or without a known answer, and with the chain that a row has, where the method uses
it."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pipeline.config.search import SearchRunConfig
from pipeline.core.records import ChainText, InputRow, Reject, RejectReason, RowLocation
from pipeline.core.tables import CHAINS_WITH_ANSWERS
from pipeline.data.prompts import opened_thinking
from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from pipeline.runtime.chain_run.chain_task import numbered_rows
from pipeline.runtime.chain_run.given import chain_of, read_answered_or_not
from pipeline.runtime.intake import LeftOutRows, read_input
from pipeline.searches.ids import prefix_id
from pipeline.searches.registry import search_for


def problem_tables(config: SearchRunConfig, left_out: LeftOutRows) -> Iterator[pa.Table]:
    """The problems in blocks of the schema CHAINS_WITH_ANSWERS, in order. Raises UsageError and InputError for a path that
    cannot be read."""
    return numbered_rows(_rows(config, left_out), CHAINS_WITH_ANSWERS)


_First = tuple[RowLocation, tuple[str, ...]]
"""Where the first row of a problem is, and its known answers."""


def _rows(config: SearchRunConfig, left_out: LeftOutRows) -> Iterator[ChainText]:
    uses_given = search_for(config.search).uses_given
    seen: dict[str, _First] = {}
    with_chains: dict[str, _First] = {}
    with checker_for(config.grader) as checker:
        for read in read_input(config.data, checker, read=read_answered_or_not):
            if isinstance(read, Reject):
                left_out.add(read)
            elif uses_given and read.solution is not None:
                first = with_chains.setdefault(read.problem.problem_id, (read.location, read.problem.golds))
                if read.problem.golds and first[1] and read.problem.golds != first[1]:
                    left_out.add(_repeated(read, *first))
                else:
                    yield _problem(read, checker, opened_thinking(config.policy.prompt.thinking))
            elif (known := seen.get(read.problem.problem_id)) is None:
                seen[read.problem.problem_id] = read.location, read.problem.golds
                yield _problem(replace(read, solution=None), checker)
            elif read.solution is None or read.problem.golds != known[1]:
                left_out.add(_repeated(read, *known))
            # Other rows of a problem with the same answer only have other chains of it.


def _repeated(row: InputRow, location: RowLocation, golds: tuple[str, ...]) -> Reject:
    other = "" if row.problem.golds == golds else ", with another answer,"
    return Reject(
        location=row.location,
        reason=RejectReason.DUPLICATE,
        detail=f"the same problem{other} is at {location}; that row is searched",
        source_id=row.source_id,
    )


def _problem(row: InputRow, checker: Checker, before: str = "") -> ChainText:
    found = chain_of(row, checker, tuple(gold for gold in row.problem.golds if checker.parses(gold)), before)
    beginnings = (found.steps[: number + 1] for number in range(len(found.steps)))
    return replace(found, prefix_ids=tuple(prefix_id(found.problem_id, steps) for steps in beginnings))
