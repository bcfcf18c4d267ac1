"""Critiques of a chain become votes on its steps, and several votes scores with a reliability. Pure.

Where a critique names the first error alone, steps before it have the score 1, that step and all later ones 0: the solution is
wrong from there on.

The score of a step is the mean of the votes that say something about it. Its reliability is the share of all votes that are on
the side of the mean (above one half, or not): votes that say nothing agree with nobody. One vote has no reliability.
"""

import math
from collections.abc import Sequence

from pipeline.core.records import Reading, ReadingKind, StepOpinion
from pipeline.judges.templates.base import Template, WrittenCritique
from pipeline.scorers.base import TOO_LONG, UNREADABLE, StepScores

Vote = Sequence[float | None]
"""A score for each step that one reading of a chain gives: 1 or 0, or a probability. None where it says nothing."""


def step_scores(votes: Sequence[Vote], steps: int, *, left_out: int = 0, tokens: int = 0) -> StepScores:
    """The scores of a chain of `steps` steps. The last `left_out` of them did not fit, and have none. `tokens`: read and
    written."""
    of_steps = [[vote[step] for vote in votes] for step in range(steps - left_out)]
    scores = [_mean(said) for said in of_steps]
    reliability = [_reliability(said, score) for said, score in zip(of_steps, scores, strict=True)]
    fault = TOO_LONG if left_out else UNREADABLE if None in scores else ""
    return StepScores(
        scores=(*scores, *(None,) * left_out),
        positions=(None,) * steps,
        reliability=(*reliability, *(0.0,) * left_out) if len(votes) > 1 else None,
        fault=fault,
        n_tokens=tokens,
        n_computed=tokens,
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


def vote_of(critique: WrittenCritique, template: Template, steps: int) -> Vote:
    """The vote of a critique on the first steps of a chain."""
    if template.words is None:
        return first_error_vote(template.read(critique.turns, critique.finish, steps), steps)
    said: Vote = critique.shares
    if not said:
        opinions = template.read(critique.turns, critique.finish, steps).steps or (None,) * steps
        said = [None if opinion is None else float(opinion is not StepOpinion.BAD) for opinion in opinions]
    return after_first_error(said) if template.stops_at_error else said


def first_error_vote(reading: Reading, steps: int) -> Vote:
    """The vote of a critique that names the first error: 1 before it, 0 from there on."""
    if reading.kind is ReadingKind.NO_ERROR:
        return [1.0] * steps
    if reading.first_error is None:
        return [None] * steps
    right = reading.first_error - 1
    return [1.0] * right + [0.0] * (steps - right)


def _mean(votes: Sequence[float | None]) -> float | None:
    said = [vote for vote in votes if vote is not None]
    return math.fsum(said) / len(said) if said else None


def _reliability(votes: Sequence[float | None], mean: float | None) -> float:
    if mean is None:
        return 0.0
    return sum(vote is not None and (vote > 0.5) == (mean > 0.5) for vote in votes) / len(votes)
