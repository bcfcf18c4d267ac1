"""Several votes on a chain's steps become scores, with a reliability. Pure.

The score of a step is the mean of the votes that say something about it. Its reliability is the share of all votes that are on
the side of the mean (above one half, or not): votes that say nothing agree with nobody. One vote has no reliability.
"""

import math
from collections.abc import Sequence

from pipeline.scorers.base import TOO_LONG, UNREADABLE, StepScores
from pipeline.scorers.generative.base import Judged


def step_scores(judged: Judged, steps: int) -> StepScores:
    """The scores of a chain of `steps` steps. Steps that did not fit have none."""
    seen = steps - judged.left_out
    of_steps = [[vote[step] for vote in judged.votes] for step in range(seen)]
    scores = [_mean(votes) for votes in of_steps]
    several = len(judged.votes) > 1
    reliability = [_reliability(votes, score) for votes, score in zip(of_steps, scores, strict=True)]
    fault = TOO_LONG if judged.left_out else UNREADABLE if None in scores else ""
    return StepScores(
        scores=(*scores, *(None,) * judged.left_out),
        positions=(None,) * steps,
        reliability=(*reliability, *(0.0,) * judged.left_out) if several else None,
        fault=fault,
        n_tokens=judged.tokens,
        n_computed=judged.tokens,
    )


def after_first_error(verdicts: Sequence[float | None]) -> list[float | None]:
    """Verdicts with 0 for steps that are not judged because an earlier one is wrong: no solution that begins with an error is
    right up to there."""
    found: list[float | None] = []
    wrong = False
    for verdict in verdicts:
        found.append(0.0 if verdict is None and wrong else verdict)
        wrong = wrong or (verdict is not None and verdict < 0.5)
    return found


def _mean(votes: Sequence[float | None]) -> float | None:
    said = [vote for vote in votes if vote is not None]
    return math.fsum(said) / len(said) if said else None


def _reliability(votes: Sequence[float | None], mean: float | None) -> float:
    if mean is None:
        return 0.0
    return sum(vote is not None and (vote > 0.5) == (mean > 0.5) for vote in votes) / len(votes)
