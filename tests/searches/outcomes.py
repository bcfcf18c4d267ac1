"""Makes the records that analyses of `search` begin with, by hand and at random."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.analysis.searches.figures import SearchRun

Chain = tuple[float | None, bool | None]
"""Score and outcome of a candidate; an outcome of None is not graded."""
Row = dict[str, Any]


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
    texts: Sequence[tuple[int, int]] = (),
) -> Row:
    """A row of the searches of a run. `texts`: how many candidates have each text, and the tokens that it cost the scorer."""
    return {
        "problem_id": problem,
        "known": known,
        "unreadable": False,
        "given": False,
        "right": right if known else None,
        "chosen": 0 if has_choice else None,
        "confidence": confidence,
        "trusted": trusted,
        "policy_tokens": policy_tokens,
        "scorer_computed": scorer_tokens,
        "seconds": seconds,
        "scores": [score for score, _ in chains],
        "outcomes": [right for _, right in chains],
        "texts": [count for count, _ in texts],
        "computed": [tokens for _, tokens in texts],
    }


_TYPES: dict[str, pl.DataType] = {
    **{name: pl.Boolean() for name in ("right", "trusted")},
    "chosen": pl.Int32(),
    "confidence": pl.Float64(),
    "scores": pl.List(pl.Float64),
    "outcomes": pl.List(pl.Boolean),
    **{name: pl.List(pl.Int64) for name in ("texts", "computed")},
}


def frame_of(searches: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(searches, schema=dict.fromkeys(searched()), schema_overrides=_TYPES)


def rows_of(run: SearchRun) -> list[Row]:
    return run.searches.to_dicts()


def run_of(
    searches: Sequence[Row],
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
        searches=frame_of(searches),
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
