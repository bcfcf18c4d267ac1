"""How often each way to choose among candidates is right, problem by problem. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.analysis.select.methods import any_right, best_of, subsets_of, vote

SIZES = (1, 4, 8, 16)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The candidates of a problem: the number of each one's answer (-1: none), whether it is right, and the place of its chain
    among the distinct ones (None: an empty draw)."""

    groups: tuple[int, ...]
    right: tuple[bool, ...]
    chains: tuple[int | None, ...]


def without_scores(contests: Sequence[Contest], seed: int) -> dict[str, Floats]:
    """`majority 16` and so on -> P(right) of each problem, shape (problems,)."""
    found: dict[str, list[float]] = {}
    for place, contest in enumerate(contests):
        count, right = len(contest.right), sum(contest.right)
        for n in SIZES:
            among = min(n, count)
            found.setdefault(f"majority {n}", []).append(_vote(contest, np.ones(count), among, (seed, place)))
            found.setdefault(f"bound {n}", []).append(any_right(right, count, among))
        found.setdefault("random", []).append(right / count)
    return {name: np.array(chances) for name, chances in found.items()}


def by_scores(contests: Sequence[Contest], scores: Sequence[float | None], name: str, seed: int) -> dict[str, Floats]:
    """The same for the best score (`best last 16`) and the vote weighted by scores (`weighted last 16`), if `name` is last.
    `scores`: of each distinct chain."""
    found: dict[str, list[float]] = {}
    for place, contest in enumerate(contests):
        own = [None if chain is None else scores[chain] for chain in contest.chains]
        for n in SIZES:
            among = min(n, len(own))
            found.setdefault(f"best {name} {n}", []).append(best_of(own, contest.right, among))
            chance = _vote(contest, np.array([score or 0.0 for score in own]), among, (seed, place))
            found.setdefault(f"weighted {name} {n}", []).append(chance)
    return {key: np.array(chances) for key, chances in found.items()}


def _vote(contest: Contest, weights: Floats, n: int, seed: tuple[int, int]) -> float:
    subsets = subsets_of(len(contest.right), n, np.random.default_rng(seed))
    return vote(np.array(contest.groups), np.array(contest.right), weights, subsets)
