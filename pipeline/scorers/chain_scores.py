"""The score of a chain, or of its beginning, from the scores of its steps. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.config.choices import Aggregation


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainScores:
    """The score of a chain by each aggregation. All are None if a step has no score, because that step might be decisive."""

    last: float | None = None
    min: float | None = None
    product: float | None = None
    mean: float | None = None

    def score_by(self, aggregation: Aggregation) -> float | None:
        """The score by the given aggregation."""
        match aggregation:
            case Aggregation.last:
                return self.last
            case Aggregation.min:
                return self.min
            case Aggregation.product:
                return self.product
            case Aggregation.mean:
                return self.mean


def chain_scores(step_scores: Sequence[float | None]) -> ChainScores:
    """The scores of a chain from its step scores in [0, 1]."""
    return ChainScores(**{aggregation.value: chain_score(step_scores, aggregation) for aggregation in Aggregation})


def chain_score(step_scores: Sequence[float | None], aggregation: Aggregation) -> float | None:
    """`ChainScores.score_by`, where one aggregation alone is wanted."""
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
