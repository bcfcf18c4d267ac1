"""The score of a chain from the scores of its steps. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.config.choices import Aggregation


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainScores:
    """All None for a chain of which a step has no score: what is left out may be what decides."""

    last: float | None = None
    min: float | None = None
    product: float | None = None
    mean: float | None = None

    def chosen(self, aggregation: Aggregation) -> float | None:
        """The one that is asked for."""
        return {
            Aggregation.last: self.last,
            Aggregation.min: self.min,
            Aggregation.product: self.product,
            Aggregation.mean: self.mean,
        }[aggregation]


def chain_scores(step_scores: Sequence[float | None]) -> ChainScores:
    """Of scores in [0, 1], one per step."""
    scores = [score for score in step_scores if score is not None]
    if not scores or len(scores) < len(step_scores):
        return ChainScores()
    return ChainScores(
        last=scores[-1], min=min(scores), product=math.prod(scores), mean=math.fsum(scores) / len(scores)
    )
