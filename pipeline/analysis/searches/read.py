"""Reads runs of `search` for their analyses."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.analysis.searches.figures import SearchFigures
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

KNOWN = pl.col("gold_answer").is_not_null() | pl.col("outcome").is_not_null()
"""Of rows of `searches`: the answer is known, or the outcome of the choice is."""
_OF_SEARCHES = (
    *("row", "problem_id", "gold_answer", "chosen", "outcome", "confidence", "trusted", "policy_tokens"),
    *("scorer_computed", "seconds"),
)
_SUMMED = ("candidates", "scored", "unscored", "policy_tokens", "scorer_tokens", "scorer_computed")
_COUNTED = ("row", "gold_answer", "chosen", "outcome", "trusted", "confidence")
_OF_CANDIDATES = ("row", "outcome", "score", "prefix_ids")
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
    candidates: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for frame in search_frames(stored, CANDIDATES, _OF_CANDIDATES):
        ends = pl.col("prefix_ids").list.last().alias(_ENDS)
        for row in frame.with_columns(ends).drop("prefix_ids").iter_rows(named=True):
            candidates[row["row"]].append(row)
    for frame in search_frames(stored, SEARCHES, _OF_SEARCHES):
        for row in frame.iter_rows(named=True):
            yield _search(row, candidates.pop(row["row"], []), given, computed.get(row["row"], {}))


def _search(
    row: Mapping[str, Any], of: Sequence[Mapping[str, Any]], given: SearchInput, computed: Mapping[str, int]
) -> ProblemSearch:
    known = row["gold_answer"] is not None or row["outcome"] is not None
    judged = [each["outcome"] if known else None for each in of]
    return ProblemSearch(
        problem_id=row["problem_id"],
        known=known,
        unreadable=row["row"] in given.unreadable,
        given=row["row"] in given.given,
        right=(False if row["chosen"] is None else row["outcome"]) if known else None,
        has_choice=row["chosen"] is not None,
        confidence=None if row["confidence"] is None or math.isnan(row["confidence"]) else row["confidence"],
        trusted=row["trusted"],
        policy_tokens=row["policy_tokens"],
        scorer_tokens=row["scorer_computed"],
        seconds=row["seconds"],
        candidates=Candidates(
            scores=np.array([np.nan if each["score"] is None else each["score"] for each in of], dtype=np.float64),
            right=np.array([right is True for right in judged], dtype=np.bool_),
            graded=np.array([right is not None for right in judged], dtype=np.bool_),
            scored=tuple((count, computed.get(end, 0)) for end, count in Counter(each[_ENDS] for each in of).items()),
        ),
    )


def search_figures(stored: StoredSearch, given: SearchInput) -> SearchFigures:
    """The figures of all finished units. `given`: their input. Raises StoreError for a damaged file."""
    searches = pl.concat(search_frames(stored, SEARCHES, _COUNTED + _SUMMED))
    ungraded = pl.col("outcome").is_null() & pl.col("chosen").is_not_null()
    graded, right = KNOWN & ~ungraded, pl.col("outcome").fill_null(value=False)
    graded_trusted = pl.col("trusted") & pl.col("outcome").is_not_null()
    counts = {
        "known": KNOWN,
        "unreadable": KNOWN & ungraded & pl.col("row").is_in(sorted(given.unreadable)),
        "graded": graded,
        "right": graded & right,
        "chosen": pl.col("chosen").is_not_null(),
        "trusted": pl.col("trusted"),
        "graded_trusted": graded_trusted,
        "right_trusted": graded_trusted & right,
    }
    found = searches.select(**{name: each.sum() for name, each in counts.items()}).row(0, named=True)
    sums = searches.select(pl.col(_SUMMED).sum()).row(0, named=True)
    confidences = searches["confidence"].drop_nulls().drop_nans().to_list()
    ends = search_frames(stored, CANDIDATES, ["chosen", "cut"])
    return SearchFigures(
        **{**sums, **found, "trusted": None if stored.accept is None else found["trusted"]},
        problems=searches.height,
        highest=max(confidences, default=None),
        cut=sum(int((frame["chosen"] & frame["cut"]).sum()) for frame in ends),
        seconds_sampling=_seconds(stored, SAMPLES),
        seconds_scoring=_seconds(stored, STEP_SCORES),
    )


def _seconds(stored: StoredSearch, table: str) -> float:
    return sum(float(frame["took"].sum()) for frame in search_frames(stored, table, ["took"]))
