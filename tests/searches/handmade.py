"""Writes runs of `search` by hand: samples and results in a run directory, through the storage layer alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.core.ids import content_id
from pipeline.core.records import Tally
from pipeline.core.table import Table
from pipeline.core.tables import CANDIDATES, CHAINS_WITH_ANSWERS, SAMPLES, SEARCHES, TASK_SCHEMA_VERSION
from pipeline.storage.commits import INPUT, UNIT, Commit, CommitState, publish
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import COMMAND, SEARCH, STAGED_INPUT, claim, settings_copy
from pipeline.storage.shards import write_shard
from pipeline.storage.units import write_chains
from tests.agree.scored import score_row

Row = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A candidate. `scores`: of its steps, which are as many. `right`: None where its answer is not graded."""

    answer: str | None = "7"
    scores: Sequence[float | None] = (0.5,)
    right: bool | None = True
    tokens: int = 10
    cut: bool = False


@dataclass(frozen=True, kw_only=True)
class Searched:
    """A problem with its candidates. `gold`: None where no answer is known. `unreadable`: a known answer that the grader cannot
    read; then give no `gold`. `given`: steps of a chain that the input has. Tokens are those of the whole search."""

    problem: str
    candidates: Sequence[Ended] = field(default=(Ended(),))
    chosen: int | None = 0
    confidence: float | None = 0.5
    trusted: bool | None = None
    gold: str | None = "7"
    unreadable: str | None = None
    given: Sequence[str] = ()
    policy_tokens: int = 100
    scorer_computed: int = 50
    seconds: float = 1.0


def search_run(
    folder: Path,
    problems: Sequence[Searched],
    *,
    method: str = "best_of_n",
    n: int = 4,
    accept: float | None = None,
    whole: bool = True,
    settings: Mapping[str, object] | None = None,
    command: str = SEARCH,
    per_unit: int = 2,
    unfinished: int = 0,
) -> Path:
    """A run directory with these problems, `per_unit` in each unit; the last `unfinished` units are not done. `whole`: each
    candidate was sampled as a whole chain, otherwise step by step. `settings`: others that the run records."""
    storage = LocalStorage(folder)
    identity: dict[str, object] = {
        COMMAND: command,
        "schema": TASK_SCHEMA_VERSION,
        "search.method": method,
        "search.n": n,
        "search.accept": accept,
        "search.aggregation": "last",
        "calibration": None,
        **(settings or {}),
    }
    identity[STAGED_INPUT] = staged_id = content_id("chains", str(folder))
    claim(storage, identity)
    units = {
        content_id("unit", str(at)): list(enumerate(problems))[at : at + per_unit]
        for at in range(0, len(problems), per_unit)
    }
    staged = write_chains(
        storage,
        staged_id,
        {unit: _table(CHAINS_WITH_ANSWERS.schema, [_chain(*each) for each in of]) for unit, of in units.items()},
    )
    record = Commit(
        kind=INPUT,
        sequence_id=staged_id,
        number=0,
        state=CommitState.WHOLE,
        shards=(staged,),
        settings=settings_copy(identity),
    )
    assert publish(storage, record)
    for unit, of in list(units.items())[: len(units) - unfinished]:
        made: list[tuple[Table[Any], list[Row]]] = [
            (SAMPLES, [row for at in of for row in _samples(*at, whole)]),
            (CANDIDATES, [row for at in of for row in _ended(*at)]),
            (SEARCHES, [searched_row(*at, method, n) for at in of]),
        ]
        found = [write_shard(storage, table.name, unit, [_table(table.schema, rows)]) for table, rows in made]
        record = Commit(
            kind=UNIT,
            sequence_id=unit,
            number=0,
            state=CommitState.WHOLE,
            shards=tuple(found),
            tally=Tally(problems=len(of)),
        )
        assert publish(storage, record)
    return folder


def problem_id(problem: str) -> str:
    return content_id("problem", problem)


def _table(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema)


def _about(row: int, of: Searched) -> Row:
    return {
        "row": row,
        "problem_id": problem_id(of.problem),
        "source_id": None,
        "problem": of.problem,
        "gold_answer": of.gold or of.unreadable,
    }


def _chain(row: int, of: Searched) -> Row:
    return {
        **_about(row, of),
        "gold_answers": [] if of.gold is None else [of.gold],
        "chain_id": content_id("given", of.problem, str(row)),
        "steps": list(of.given),
        "prefix_ids": [],
    }


def _samples(row: int, of: Searched, whole: bool) -> list[Row]:
    return [
        {
            "row": row,
            "sample_id": content_id("sample", of.problem, str(draw), str(number)),
            "node_id": content_id("node", of.problem, str(draw), str(number)),
            "draw": draw,
            "steps": 0 if whole else 1,
            "number": number,
            "text": "so it is 7",
            "token_ids": [1, 2],
            "step_ends": [10],
            "token_ends": [2],
            "finish": "stop",
            "ended": True,
            "answer": each.answer,
            "verdict": _verdict(of, each),
            "n_tokens": 2,
            "n_prompt_tokens": 1,
            "seconds": 0.5,
            "took": 0.1,
        }
        for draw, each in enumerate(of.candidates)
        for number in range(1 if whole else len(each.scores))
    ]


def _ended(row: int, of: Searched) -> list[Row]:
    return [_candidate(row, of, at, each) for at, each in enumerate(of.candidates)]


def _candidate(row: int, of: Searched, at: int, ended: Ended) -> Row:
    steps = [f"step {step} of {at}" for step in range(len(ended.scores))]
    return {
        **score_row(
            of.problem, steps, ended.scores, outcome=None if of.gold is None else ended.right, model="no model"
        ),
        **_about(row, of),
        "chain_id": content_id("chain", of.problem, str(at)),
        "final_answer": ended.answer,
        "fault": "failed" if None in ended.scores else None,
        "n_tokens": 5,
        "raw_step_scores": None,
        "prefix_ids": [content_id("prefix", of.problem, step) for step in steps],
        "node_ids": [content_id("node", of.problem, step) for step in steps],
        "candidate": at,
        "chosen": at == of.chosen,
        "cut": ended.cut,
        "verdict": _verdict(of, ended),
        "policy_tokens": ended.tokens,
    }


def searched_row(row: int, of: Searched, method: str, n: int) -> Row:
    """A row of `searches`."""
    chosen = None if of.chosen is None else of.candidates[of.chosen]
    of_chosen: Row = {} if chosen is None or of.chosen is None else _candidate(row, of, of.chosen, chosen)
    return {
        **_about(row, of),
        "method": method,
        "n": n,
        "candidates": len(of.candidates),
        "chosen": of.chosen,
        **{name: of_chosen.get(name) for name in ("final_answer", "outcome", "verdict", "score")},
        "confidence": of.confidence,
        "trusted": of.trusted,
        "weakest_step": None if chosen is None else 1,
        "stopped": "no_chain" if chosen is None else "accepted" if of.trusted else "done",
        "steps": sum(len(each.scores) for each in of.candidates),
        "scored": 1,
        "unscored": 0,
        "policy_tokens": of.policy_tokens,
        "policy_prompt_tokens": 10,
        "scorer_tokens": 2 * of.scorer_computed,
        "scorer_computed": of.scorer_computed,
        "seconds": of.seconds,
    }


def _verdict(of: Searched, ended: Ended) -> str | None:
    if of.gold is None:
        return None
    if ended.answer is None:
        return "no_answer"
    return {True: "correct", False: "incorrect", None: "timeout"}[ended.right]
