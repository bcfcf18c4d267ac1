"""Reads runs of `search` for their analyses."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.analysis.searches.figures import SearchFigures
from pipeline.analysis.searches.records import Candidates, ProblemSearch, SearchRun
from pipeline.core.table import Table
from pipeline.core.tables import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES
from pipeline.searches.base import WHOLE
from pipeline.storage.stored_search import SearchInput, StoredSearch, search_input

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
        calibrated=stored.identity.get(_CALIBRATION) is not None,
        independent=whole and not any(each.given for each in searches),
        settings=stored.identity,
        searches=searches,
    )


def _samples_are_whole_chains(stored: StoredSearch) -> bool:
    """Whether the run has samples, and each is a chain from its beginning to its end."""
    whole = (pl.col("number") == 0) & (pl.col("steps") == WHOLE)
    found = [frame.select(whole.all())[0, 0] for frame in stored.frames(SAMPLES, ["number", "steps"])]
    return bool(found) and all(found)


def _computed(stored: StoredSearch) -> dict[int, dict[str, int]]:
    """The tokens that the scorer computed for each prefix, by row: those that it computed some for."""
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for frame in stored.frames(STEP_SCORES, ["row", "prefix_id", "n_computed"]):
        for row, prefix, tokens in frame.filter(pl.col("n_computed") > 0).iter_rows():
            found[row][prefix] = tokens
    return dict(found)


def _searches(
    stored: StoredSearch, given: SearchInput, computed: Mapping[int, Mapping[str, int]]
) -> Iterator[ProblemSearch]:
    # Files of both tables are those of the same units, in the same order.
    candidates: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for frame in stored.frames(CANDIDATES, _OF_CANDIDATES):
        ends = pl.col("prefix_ids").list.last().alias(_ENDS)
        for row in frame.with_columns(ends).drop("prefix_ids").iter_rows(named=True):
            candidates[row["row"]].append(row)
    has_choice = pl.col("chosen").is_not_null()
    right = pl.when(has_choice).then(pl.col("outcome")).otherwise(statement=False)
    for frame in stored.frames(SEARCHES, _OF_SEARCHES):
        found = frame.select(
            *("row", "problem_id", "trusted", "policy_tokens", "seconds"),
            known=KNOWN,
            unreadable=pl.col("row").is_in(sorted(given.unreadable)),
            given=pl.col("row").is_in(sorted(given.given)),
            right=pl.when(KNOWN).then(right),
            has_choice=has_choice,
            confidence=pl.col("confidence").fill_nan(None),
            scorer_tokens="scorer_computed",
        )
        for row in found.iter_rows(named=True):
            number = row.pop("row")
            of = _candidates(candidates.pop(number, []), computed.get(number, {}), known=row["known"])
            yield ProblemSearch(**row, candidates=of)


def _candidates(of: Sequence[Mapping[str, Any]], computed: Mapping[str, int], *, known: bool) -> Candidates:
    judged = [each["outcome"] if known else None for each in of]
    return Candidates(
        scores=np.array([np.nan if each["score"] is None else each["score"] for each in of], dtype=np.float64),
        right=np.array([right is True for right in judged], dtype=np.bool_),
        graded=np.array([right is not None for right in judged], dtype=np.bool_),
        scored=tuple((count, computed.get(end, 0)) for end, count in Counter(each[_ENDS] for each in of).items()),
    )


def search_figures(stored: StoredSearch, given: SearchInput) -> SearchFigures:
    """The figures of all finished units. `given`: their input. Raises StoreError for a damaged file."""
    searches = stored.frame(SEARCHES, _COUNTED + _SUMMED)
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
    ends = stored.frames(CANDIDATES, ["chosen", "cut"])
    return SearchFigures(
        **{**sums, **found, "trusted": None if stored.accept is None else found["trusted"]},
        problems=searches.height,
        highest=max(confidences, default=None),
        cut=sum(int((frame["chosen"] & frame["cut"]).sum()) for frame in ends),
        seconds_sampling=_seconds(stored, SAMPLES),
        seconds_scoring=_seconds(stored, STEP_SCORES),
    )


def _seconds(stored: StoredSearch, table: Table[Any]) -> float:
    return sum(float(frame["took"].sum()) for frame in stored.frames(table, ["took"]))
