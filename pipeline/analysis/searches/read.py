"""Runs of `search` as their analyses take them: the search of each problem, and its candidates.

Accuracy is claimed only where the answer is known and the chosen answer is graded. A search that ends without a chain, or with
a chain without an answer, is wrong there.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.core.statistics import Floats
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

Flags = npt.NDArray[np.bool_]
_OF_SEARCHES = (
    *("row", "problem_id", "gold_answer", "chosen", "outcome", "confidence", "trusted", "policy_tokens"),
    *("scorer_computed", "seconds"),
)
_OF_CANDIDATES = ("row", "outcome", "score", "prefix_ids")
_CALIBRATION = "calibration"
_ENDS = "end"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The candidates of a search, C of them. `scores` (C,): of the chains, NaN where one is missing. `right`, `graded` (C,): a
    candidate that is not graded is not right. `scored`: for each text of a whole chain, how many candidates have it, and the
    tokens that the scorer computed for it, which it does once; empty where that is not known."""

    scores: Floats
    right: Flags
    graded: Flags
    scored: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemSearch:
    """The search of one problem. `known`: it has a known answer, or its choice has an outcome that the data give; `unreadable`:
    the grader cannot read that answer. `given`: the input has a chain from which the search may start; nothing counts the
    tokens of that. `right`: whether the chosen chain is, None where accuracy is not claimed. `has_choice`: False where no chain
    could be sampled. `confidence`, `trusted`: see `schemas.SEARCHES`. `policy_tokens`: all that the policy wrote;
    `scorer_tokens`: those that the scorer computed. `seconds`: from its beginning to its end."""

    problem_id: str
    known: bool
    right: bool | None
    has_choice: bool
    confidence: float | None
    trusted: bool | None
    policy_tokens: int
    scorer_tokens: int
    seconds: float
    candidates: Candidates
    unreadable: bool = False
    given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchRun:
    """A finished run of `search`. `accept`: `search.accept`. `calibrated`: its scores are probabilities. `independent`: its
    candidates are chains that were sampled whole and without regard to each other, a fixed number for each problem. So a part
    of them is what a smaller run would have. `settings`: what determines it, by dotted key.

    A problem may have several searches, such as one for each chain that the input has.
    """

    name: str
    method: str
    n: int
    accept: float | None
    calibrated: bool
    independent: bool
    settings: Mapping[str, object]
    searches: tuple[ProblemSearch, ...]

    @property
    def scored(self) -> bool:
        """Whether any candidate has a score."""
        return any(not np.isnan(each.candidates.scores).all() for each in self.searches)

    @property
    def given(self) -> int:
        """Searches that begin with a chain of the input."""
        return sum(each.given for each in self.searches)

    @property
    def problem_ids(self) -> list[str]:
        """The problem of each search."""
        return [each.problem_id for each in self.searches]


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
