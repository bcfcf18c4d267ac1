"""The score of a chain, or of its beginning, from the scores of its steps. Pure."""

import math
from collections.abc import Sequence

from pipeline.config.choices import Aggregation


def chain_scores(step_scores: Sequence[float | None]) -> dict[str, float | None]:
    """The score of a chain by each aggregation, under the name of its column."""
    return {f"score_{each.value}": chain_score(step_scores, each) for each in Aggregation}


def chain_score(step_scores: Sequence[float | None], aggregation: Aggregation) -> float | None:
    """The score of a chain from its step scores in [0, 1]. None if a step has no score, because that step might be decisive."""
    scores = [score for score in step_scores if score is not None]
    if not scores or len(scores) < len(step_scores):
        return None
    match aggregation:
        case Aggregation.last:
            return scores[-1]
        case Aggregation.min:
            return min(scores)
        case Aggregation.product:
            return math.prod(scores)
        case Aggregation.mean:
            return math.fsum(scores) / len(scores)
