"""The searched problems of a run with their trees and the answers of their candidates, unit by unit."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.analysis.searches.trees import SAMPLE_COLUMNS, SCORE_COLUMNS, Tree, tree_of
from pipeline.searches.log import given_nodes, root_of
from pipeline.storage.shards import read_shard
from pipeline.storage.stored_search import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES, StoredSearch
from pipeline.storage.units import UnitRef, unit_chains

_CANDIDATE_COLUMNS = ("row", "chain_id", "final_answer", "score", "verdict", "chosen")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOfChains:
    """Candidates that state the same answer, letter by letter; None: those that state none. `best`: their highest score,
    `total`: the sum of their scores; None where none of them has a score."""

    answer: str | None
    chains: int
    best: float | None
    total: float | None
    verdict: str | None
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedProblem:
    """A problem. `search`: its row of `searches`. `answers`: those of its candidates, the most frequent first."""

    search: Row
    tree: Tree
    answers: tuple[AnswerOfChains, ...]


def searched_problems(stored: StoredSearch) -> Iterator[list[SearchedProblem]]:
    """The problems of each finished unit, in the order of the input. Raises StoreError for a missing or damaged file."""
    for unit in stored.run.units:
        if unit.unit_id in stored.run.wholes:
            yield _of_unit(stored, unit)


def _of_unit(stored: StoredSearch, unit: UnitRef) -> list[SearchedProblem]:
    samples = _by_row(stored, unit, SAMPLES, SAMPLE_COLUMNS)
    scores = _by_row(stored, unit, STEP_SCORES, SCORE_COLUMNS)
    candidates = _by_row(stored, unit, CANDIDATES, _CANDIDATE_COLUMNS)
    chains = {row["row"]: row for row in unit_chains(stored.storage, unit).to_pylist()}
    found = []
    for search in sorted(_rows(stored, unit, SEARCHES, None), key=lambda row: int(row["row"])):
        row, problem_id = search["row"], search["problem_id"]
        given = chains[row]
        ended = candidates[row]
        nodes = given_nodes(
            root_of(problem_id), problem_id, given["chain_id"], given["steps"] or (), given["final_answer"]
        )
        last = nodes[-1].node_id if nodes else None
        tree = tree_of(
            problem_id,
            samples[row],
            scores[row],
            given=nodes,
            given_verdict=next((each["verdict"] for each in ended if each["chain_id"] == last), None),
            chosen=next((each["chain_id"] for each in ended if each["chosen"]), None),
        )
        found.append(SearchedProblem(search=search, tree=tree, answers=answers_of(ended)))
    return found


def answers_of(candidates: Sequence[Row]) -> tuple[AnswerOfChains, ...]:
    """The answers of the rows of `candidates` of one problem."""
    by_answer: defaultdict[str | None, list[Row]] = defaultdict(list)
    for each in candidates:
        by_answer[each["final_answer"]].append(each)
    found = [_answer(answer, each) for answer, each in by_answer.items()]
    return tuple(sorted(found, key=lambda each: (-each.chains, -(each.best or 0.0))))


def _answer(answer: str | None, candidates: Sequence[Row]) -> AnswerOfChains:
    scores = [each["score"] for each in candidates if each["score"] is not None]
    return AnswerOfChains(
        answer=answer,
        chains=len(candidates),
        best=max(scores, default=None),
        total=sum(scores) if scores else None,
        verdict=next((each["verdict"] for each in candidates if each["verdict"] is not None), None),
        chosen=any(each["chosen"] for each in candidates),
    )


def _by_row(stored: StoredSearch, unit: UnitRef, table: str, columns: Sequence[str]) -> defaultdict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in _rows(stored, unit, table, columns):
        found[row["row"]].append(row)
    return found


def _rows(stored: StoredSearch, unit: UnitRef, table: str, columns: Sequence[str] | None) -> list[Row]:
    shards = [shard for shard in stored.run.wholes[unit.unit_id].shards if shard.table == table]
    tables: list[pa.Table] = [read_shard(stored.storage, shard, columns) for shard in shards]
    return [row for each in tables for row in each.to_pylist()]
