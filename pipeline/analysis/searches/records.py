"""What the analyses of `search` begin with: a run, the search of each problem, and its candidates. Pure.

Accuracy is claimed only where the answer is known and the chosen answer is graded. A search that ends without a chain, or with
a chain without an answer, is wrong there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.core.statistics import Floats

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemSearch:
    """The search of one problem. `known`: it has a known answer, or its choice has an outcome that the data give; `unreadable`:
    the grader cannot read that answer. `given`: the input has a chain from which the search may start; nothing counts the
    tokens of that. `right`: whether the chosen chain is, None where accuracy is not claimed. `has_choice`: False where no chain
    could be sampled. `confidence`, `trusted`: see `tables.SearchColumns`. `policy_tokens`: all that the policy wrote;
    `scorer_tokens`: those that the scorer computed. `seconds`: from its beginning to its end.

    Of its C candidates: `scores` (C,), NaN where one is missing; `rights`, `graded` (C,), of which one that is not graded is
    not right. `scored`: for each text of a whole chain, how many candidates have it, and the tokens that the scorer computed
    for it, which it does once; empty where that is not known."""

    problem_id: str
    known: bool
    right: bool | None
    has_choice: bool
    confidence: float | None
    trusted: bool | None
    policy_tokens: int
    scorer_tokens: int
    seconds: float
    scores: Floats
    rights: Flags
    graded: Flags
    scored: tuple[tuple[int, int], ...] = ()
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
        return any(not np.isnan(each.scores).all() for each in self.searches)

    @property
    def given(self) -> int:
        """Searches that begin with a chain of the input."""
        return sum(each.given for each in self.searches)

    @property
    def problem_ids(self) -> list[str]:
        """The problem of each search."""
        return [each.problem_id for each in self.searches]
