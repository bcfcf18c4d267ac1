"""What a run of `search` says of its problems: the candidates of each and what was chosen, from the log alone."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.search import SearchConfig
from pipeline.core.records import UNGRADED, ChainText, Tally, Verdict
from pipeline.core.tables import CANDIDATES, SEARCHES
from pipeline.graders.question import verdict_outcome
from pipeline.scorers.chain_scores import chain_score, chain_scores
from pipeline.searches.base import Found, Stop, path_of
from pipeline.searches.choice import is_enough
from pipeline.searches.log import node_id
from pipeline.searches.problem import ProblemSearch

Row = dict[str, Any]
_OF_CHOSEN = ("final_answer", "outcome", "verdict", "score")
"""Columns of a search that are those of the chosen candidate."""


def tables_of(ended: Sequence[ProblemSearch], settings: SearchConfig, model: str) -> dict[str, pa.Table]:
    """The tables `candidates` and `searches` of searches that have ended, by name. `model`: the identity of the scorer.

    Raises ValueError for a search that has not ended."""
    candidates, searches = [], []
    for each in ended:
        found = each.found
        if found is None:
            raise ValueError(f"the search of problem {each.problem.problem_id} has not ended: its log lacks answers")
        own = list(_candidate_rows(each, found, settings, model))
        candidates += own
        searches.append(_search_row(each, found, next((row for row in own if row["chosen"]), None), settings))
    return {
        CANDIDATES.name: pa.Table.from_pylist(candidates, schema=CANDIDATES.schema),
        SEARCHES.name: pa.Table.from_pylist(searches, schema=SEARCHES.schema),
    }


def _candidate_rows(each: ProblemSearch, found: Found, settings: SearchConfig, model: str) -> Iterator[Row]:
    verdicts = _verdicts(each)
    for number, node in enumerate(found.candidates):
        path = path_of(node)
        answers = [each.scores.get(step.prefix_id) for step in path]
        step_scores = [None if answer is None else answer.score for answer in answers]
        verdict = verdicts.get(node.node_id)
        reliability = [None if answer is None else answer.reliability for answer in answers]
        yield {
            **_of_problem(each.problem),
            "chain_id": node.node_id,
            "steps": [step.text.strip() for step in path],
            "final_answer": node.answer,
            "outcome": None if verdict is None else verdict_outcome(verdict),
            "step_scores": step_scores,
            "step_positions": [None] * len(path),
            "reliability": reliability if any(value is not None for value in reliability) else None,
            "n_scored": sum(score is not None for score in step_scores),
            "fault": next((answer.fault for answer in answers[::-1] if answer is not None and answer.fault), None),
            "n_tokens": sum(answer.n_tokens for answer in answers if answer is not None),
            **chain_scores(step_scores),
            "score": chain_score(step_scores, settings.aggregation),
            "model": model,
            "raw_step_scores": [None if answer is None else answer.raw_score for answer in answers],
            "prefix_ids": [step.prefix_id for step in path],
            "node_ids": [step.node_id for step in path],
            "candidate": number,
            "chosen": found.chosen is not None and node.node_id == found.chosen.node_id,
            "cut": node.cut,
            "verdict": None if verdict is None else verdict.value,
            "policy_tokens": sum(step.n_tokens for step in path),
        }


def _search_row(each: ProblemSearch, found: Found, chosen: Row | None, settings: SearchConfig) -> Row:
    """`chosen`: the row of the chosen candidate."""
    samples, scores = each.samples.values(), each.scores.values()
    of_chosen = chosen or dict.fromkeys(("candidate", *_OF_CHOSEN))
    return {
        **_of_problem(each.problem),
        **{name: of_chosen[name] for name in _OF_CHOSEN},
        "method": settings.method,
        "n": settings.n,
        "candidates": len(found.candidates),
        "chosen": of_chosen["candidate"],
        "confidence": found.confidence,
        "trusted": _trusted(found, chosen, settings),
        "weakest_step": None if chosen is None else weakest_step(chosen["step_scores"]),
        "stopped": found.stopped.value,
        "steps": sum(max(1, len(answer.step_ends)) for answer in samples),
        "scored": sum(answer.score is not None for answer in scores),
        "unscored": sum(answer.score is None for answer in scores),
        "policy_tokens": sum(answer.n_tokens for answer in samples),
        "policy_prompt_tokens": sum(answer.n_prompt_tokens for answer in samples),
        "scorer_tokens": sum(answer.n_tokens for answer in scores),
        "scorer_computed": sum(answer.n_computed for answer in scores),
        "seconds": max([each.seconds for each in samples] + [each.seconds for each in scores], default=0.0),
    }


def weakest_step(step_scores: Sequence[float | None]) -> int | None:
    """The number of the step with the lowest score, from 1; the first one of equals. None where no step has a score."""
    scored = [(score, number) for number, score in enumerate(step_scores, start=1) if score is not None]
    return min(scored)[1] if scored else None


def _trusted(found: Found, chosen: Row | None, settings: SearchConfig) -> bool | None:
    """Whether the choice passes the gate; None without one."""
    if settings.accept is None:
        return None
    reliability = chosen["reliability"][-1] if chosen is not None and chosen["reliability"] else None
    return found.chosen is not None and is_enough(found.chosen, found.confidence, reliability, settings)


def _of_problem(problem: ChainText) -> Row:
    return {
        "row": problem.row,
        "problem_id": problem.problem_id,
        "source_id": problem.source_id,
        "problem": problem.problem,
        "gold_answer": problem.gold_answer,
    }


def _verdicts(each: ProblemSearch) -> dict[str, Verdict]:
    """The verdicts of ended nodes, by node. That of the chain that the input has is its outcome."""
    given = {}
    if each.given and each.problem.outcome is not None:
        given = {each.given[-1].node_id: Verdict.CORRECT if each.problem.outcome else Verdict.INCORRECT}
    return given | {
        node_id(answer.sample_id, max(1, len(answer.step_ends)) - 1): answer.verdict
        for answer in each.samples.values()
        if answer.verdict is not None
    }


def part_tally(samples: Iterable[pa.Table], scores: Iterable[pa.Table]) -> Tally:
    """The counts of answers that are committed while searches go on, from tables `samples` and `stepscores`: `tokens` of the
    policy, and `scorer_tokens` that the scorer computed."""
    return Tally(
        tokens=sum(_sum(table, "n_tokens") for table in samples),
        scorer_tokens=sum(_sum(table, "n_computed") for table in scores),
    )


def search_tally(searches: pa.Table) -> Tally:
    """The counts of `problems` whose searches have ended, from the table `searches`: their sampled `steps`, `tokens` and
    `scorer_tokens`, the verdicts of the chosen chains, `engine_failed` problems, and the beginnings of chains that were to be
    scored: `scored` and `unscored`."""
    verdicts = Counter(searches["verdict"].to_pylist())
    return Tally(
        problems=searches.num_rows,
        steps=_sum(searches, "steps"),
        tokens=_sum(searches, "policy_tokens"),
        scorer_tokens=_sum(searches, "scorer_computed"),
        correct=verdicts[Verdict.CORRECT],
        incorrect=verdicts[Verdict.INCORRECT],
        no_answer=verdicts[Verdict.NO_ANSWER],
        ungraded=sum(verdicts[verdict] for verdict in UNGRADED),
        engine_failed=searches["stopped"].to_pylist().count(Stop.FAILED),
        scored=_sum(searches, "scored"),
        unscored=_sum(searches, "unscored"),
    )


def _sum(table: pa.Table, column: str) -> int:
    return int(pc.sum(table[column]).as_py() or 0)
