"""Scored chains as rows of `schemas.SCORES`: the step scores, and the scores of each chain that follow from them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline.config.choices import Aggregation
from pipeline.core.schemas import CALIBRATED_SCORES, RAW_STEP_SCORES, SCORES
from pipeline.scorers.base import StepScores
from pipeline.scorers.calibration import Calibration
from pipeline.scorers.chain_scores import chain_score, chain_scores


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
        **{name: [each[name] for each in whole] for name in chain_scores(())},
        "score": [chain_score(scores, aggregation) for scores in step_scores],
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
