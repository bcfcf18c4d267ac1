"""Makes the records that analyses of `search` begin with, by hand and at random."""

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.analysis.searches.records import ProblemSearch, SearchRun

Chain = tuple[float | None, bool | None]
"""Score and outcome of a candidate; an outcome of None is not graded."""


def searched(
    problem: str = "p",
    chains: Sequence[Chain] = (),
    *,
    right: bool | None = True,
    known: bool = True,
    has_choice: bool = True,
    confidence: float | None = None,
    trusted: bool | None = None,
    policy_tokens: int = 100,
    scorer_tokens: int = 0,
    seconds: float = 1.0,
) -> ProblemSearch:
    return ProblemSearch(
        problem_id=problem,
        known=known,
        right=right if known else None,
        has_choice=has_choice,
        confidence=confidence,
        trusted=trusted,
        policy_tokens=policy_tokens,
        scorer_tokens=scorer_tokens,
        seconds=seconds,
        scores=np.array([score for score, _ in chains], dtype=np.float64),
        rights=np.array([right is True for _, right in chains], dtype=np.bool_),
        graded=np.array([right is not None for _, right in chains], dtype=np.bool_),
    )


def run_of(
    searches: Sequence[ProblemSearch],
    *,
    name: str = "run",
    method: str = "best_of_n",
    n: int = 4,
    accept: float | None = None,
    calibrated: bool = False,
    independent: bool = True,
    settings: Mapping[str, object] | None = None,
) -> SearchRun:
    return SearchRun(
        name=name,
        method=method,
        n=n,
        accept=accept,
        calibrated=calibrated,
        independent=independent,
        settings={"search.method": method, "search.n": n} if settings is None else settings,
        searches=tuple(searches),
    )


def best_of(n: int, problems: int, rng: np.random.Generator, *, skill: float = 0.5, tokens: int = 10) -> SearchRun:
    """A run of best-of-n: problems of different difficulty, scores that are `skill` outcome and else chance, and every chain
    costs `tokens` of the policy and as many of the scorer."""
    searches = []
    for at in range(problems):
        right = rng.random(n) < rng.random()
        scores = skill * right + (1 - skill) * rng.random(n)
        best = int(np.argmax(scores))
        searches.append(
            searched(
                f"p{at:05d}",
                list(zip(scores.tolist(), right.tolist(), strict=True)),
                right=bool(right[best]),
                confidence=float(scores[best]),
                policy_tokens=n * tokens,
                scorer_tokens=n * tokens,
            )
        )
    return run_of(searches, n=n)
