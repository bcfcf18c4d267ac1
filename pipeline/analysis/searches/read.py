"""Reads runs of `search` for their analyses."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from pipeline.analysis.searches.records import Candidates, ProblemSearch, SearchRun
from pipeline.searches.base import WHOLE
from pipeline.storage.stored_search import (
    CANDIDATES,
    SAMPLES,
    SEARCHES,
    STEP_SCORES,
    SearchInput,
    StoredSearch,
    search_frames,
    search_input,
)

_OF_SEARCHES = (
    "row", "problem_id", "gold_answer", "chosen", "outcome", "score", "confidence", "trusted", "policy_tokens",
    "scorer_computed", "seconds",
)  # fmt: skip
_OF_CANDIDATES = ("row", "candidate", "chosen", "final_answer", "outcome", "score", "step_scores", "prefix_ids")
_CALIBRATION = "calibration"
_ENDS = "end"


def search_run(stored: StoredSearch, name: str, given: SearchInput | None = None) -> SearchRun:
    """The finished searches of a run, in the order of the input. `name`: what the run is called. `given`: its input, if it has
    been read. Raises StoreError for a damaged file."""
    whole = stored.accept is None and _samples_are_whole_chains(stored)
    searches = tuple(_searches(stored, given or search_input(stored), _computed(stored) if whole else {}))
    return SearchRun(
        name=name,
        method=stored.method,
        n=stored.n,
        accept=stored.accept,
        calibrated=stored.run.identity.get(_CALIBRATION) is not None,
        independent=whole and not any(each.given for each in searches),
        settings=stored.run.identity,
        searches=searches,
    )


def _samples_are_whole_chains(stored: StoredSearch) -> bool:
    """Whether the run has samples, and each is a chain from its beginning to its end."""
    whole = (pl.col("number") == 0) & (pl.col("steps") == WHOLE)
    found = [frame.select(whole.all())[0, 0] for frame in search_frames(stored, SAMPLES, ["number", "steps"])]
    return bool(found) and all(found)


def _computed(stored: StoredSearch) -> dict[int, dict[str, int]]:
    """The tokens that the scorer computed for each prefix, by row: those that it computed some for."""
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for frame in search_frames(stored, STEP_SCORES, ["row", "prefix_id", "n_computed"]):
        for row, prefix, tokens in frame.filter(pl.col("n_computed") > 0).iter_rows():
            found[row][prefix] = tokens
    return dict(found)


def _searches(
    stored: StoredSearch, given: SearchInput, computed: Mapping[int, Mapping[str, int]]
) -> Iterator[ProblemSearch]:
    # Files of both tables are those of the same units, in the same order.
    candidates: dict[int, list[dict[str, Any]]] = {}
    for frame in search_frames(stored, CANDIDATES, _OF_CANDIDATES):
        # Step scores of candidates that were not chosen are not needed, and are most of the table.
        ends = pl.col("prefix_ids").list.last().alias(_ENDS)
        needed = frame.with_columns(ends, step_scores=pl.when("chosen").then("step_scores")).drop("prefix_ids")
        for row in needed.iter_rows(named=True):
            candidates.setdefault(row["row"], []).append(row)
    for frame in search_frames(stored, SEARCHES, _OF_SEARCHES):
        for row in frame.iter_rows(named=True):
            of = sorted(candidates.pop(row["row"], []), key=lambda each: each["candidate"])
            yield _search(row, of, given, computed.get(row["row"], {}))


def _search(
    row: Mapping[str, Any], of: list[dict[str, Any]], given: SearchInput, computed: Mapping[str, int]
) -> ProblemSearch:
    known = row["gold_answer"] is not None or row["outcome"] is not None
    chosen = next((each for each in of if each["chosen"]), None)
    judged = [each["outcome"] if known else None for each in of]
    return ProblemSearch(
        problem_id=row["problem_id"],
        known=known,
        unreadable=row["row"] in given.unreadable,
        given=row["row"] in given.given,
        right=(False if row["chosen"] is None else row["outcome"]) if known else None,
        has_choice=row["chosen"] is not None,
        score=_number(row["score"]),
        step_scores=tuple(map(_number, chosen["step_scores"])) if chosen else (),
        confidence=_number(row["confidence"]),
        trusted=row["trusted"],
        policy_tokens=row["policy_tokens"],
        scorer_tokens=row["scorer_computed"],
        seconds=row["seconds"],
        candidates=Candidates(
            scores=np.array([np.nan if each["score"] is None else each["score"] for each in of], dtype=np.float64),
            right=np.array([right is True for right in judged], dtype=np.bool_),
            graded=np.array([right is not None for right in judged], dtype=np.bool_),
            answers=tuple(each["final_answer"] for each in of),
            scored=tuple((count, computed.get(end, 0)) for end, count in Counter(each[_ENDS] for each in of).items()),
        ),
    )


def _number(value: float | None) -> float | None:
    """None for a missing number, also for one that is not a number."""
    return None if value is None or math.isnan(value) else value
