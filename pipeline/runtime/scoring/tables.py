"""Scored chains as rows of `schemas.SCORES`: the step scores, and the scores of each chain that follow from them. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.config.choices import Aggregation
from pipeline.core.schemas import SCORES
from pipeline.scorers.base import StepScores


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainScores:
    """The score of a chain by each aggregation. All are None if a step has no score, because that step might be decisive."""

    last: float | None = None
    min: float | None = None
    product: float | None = None
    mean: float | None = None

    def score_by(self, aggregation: Aggregation) -> float | None:
        """The score by the given aggregation."""
        return {
            Aggregation.last: self.last,
            Aggregation.min: self.min,
            Aggregation.product: self.product,
            Aggregation.mean: self.mean,
        }[aggregation]


def chain_scores(step_scores: Sequence[float | None]) -> ChainScores:
    """The scores of a chain from its step scores in [0, 1]."""
    scores = [score for score in step_scores if score is not None]
    if not scores or len(scores) < len(step_scores):
        return ChainScores()
    return ChainScores(
        last=scores[-1], min=min(scores), product=math.prod(scores), mean=math.fsum(scores) / len(scores)
    )


def scores_table(
    chains: Mapping[str, Sequence[object]], scored: Sequence[StepScores], *, aggregation: Aggregation, model: str
) -> pa.Table:
    """The rows of scored chains. `chains`: the columns that describe them, as SCORES names them, and `row`."""
    whole = [chain_scores(each.scores) for each in scored]
    columns: dict[str, list[Any]] = {
        **{name: list(chains[name]) for name in SCORES.names if name in chains},
        "step_scores": [each.scores for each in scored],
        "step_positions": [each.positions for each in scored],
        "reliability": [each.reliability for each in scored],
        "n_scored": [sum(score is not None for score in each.scores) for each in scored],
        "fault": [each.fault or None for each in scored],
        "n_tokens": [each.n_tokens for each in scored],
        "score": [each.score_by(aggregation) for each in whole],
        "model": [model] * len(scored),
    }
    for name, values in _transposed(whole).items():
        columns[f"score_{name}"] = values
    return pa.Table.from_pydict({name: columns[name] for name in SCORES.names}, schema=SCORES)


def _transposed(whole: Sequence[ChainScores]) -> dict[str, list[float | None]]:
    return {
        "last": [each.last for each in whole],
        "min": [each.min for each in whole],
        "product": [each.product for each in whole],
        "mean": [each.mean for each in whole],
    }
