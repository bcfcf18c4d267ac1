"""Scored chains as rows of `schemas.SCORES`: the step scores, and the scores of each chain that follow from them. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.config.choices import Aggregation
from pipeline.core.schemas import CALIBRATED_SCORES, RAW_STEP_SCORES, SCORES
from pipeline.scorers.base import StepScores
from pipeline.scorers.calibration import Calibration


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
    chains: pa.Table,
    scored: Sequence[StepScores],
    *,
    aggregation: Aggregation,
    model: str,
    calibration: Calibration | None = None,
) -> pa.Table:
    """The rows of scored chains. `chains`: of the schema CHAINS, in the order of `scored`. With a calibration the rows have the
    schema CALIBRATED_SCORES."""
    raw = [each.scores for each in scored]
    step_scores = raw if calibration is None else [calibration.apply(scores) for scores in raw]
    whole = [chain_scores(scores) for scores in step_scores]
    computed: dict[str, list[Any]] = {
        "step_scores": list(step_scores),
        RAW_STEP_SCORES: raw,
        "step_positions": [each.positions for each in scored],
        "reliability": [each.reliability for each in scored],
        "n_scored": [sum(score is not None for score in each.scores) for each in scored],
        "fault": [each.fault or None for each in scored],
        "n_tokens": [each.n_tokens for each in scored],
        "score_last": [each.last for each in whole],
        "score_min": [each.min for each in whole],
        "score_product": [each.product for each in whole],
        "score_mean": [each.mean for each in whole],
        "score": [each.score_by(aggregation) for each in whole],
        "model": [model] * len(scored),
    }
    schema = schema_with(calibration)
    columns = [
        pa.array(computed[field.name], field.type) if field.name in computed else chains[field.name] for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def schema_with(calibration: Calibration | None) -> pa.Schema:
    """The columns of scores, with a calibration or without."""
    return SCORES if calibration is None else CALIBRATED_SCORES
