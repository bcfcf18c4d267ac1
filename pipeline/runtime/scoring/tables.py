"""Scored chains as rows of `tables.SCORES`: the step scores, and the scores of each chain that follow from them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline.config.choices import Aggregation
from pipeline.core.table import Table
from pipeline.core.tables import CALIBRATED_SCORES, RAW_STEP_SCORES, SCORES, ScoreColumns
from pipeline.scorers.base import StepScores
from pipeline.scorers.calibration import Calibration
from pipeline.scorers.chain_scores import chain_scores


def scores_table(
    chains: pa.Table,
    scored: Sequence[StepScores],
    *,
    aggregation: Aggregation,
    model: str,
    calibration: Calibration | None = None,
) -> pa.Table:
    """The rows of scored chains. `chains`: of the table CHAINS, in the order of `scored`. With a calibration the rows are of
    CALIBRATED_SCORES."""
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
    return scores_with(calibration).of_columns({**{name: chains[name] for name in chains.column_names}, **computed})


def scores_with(calibration: Calibration | None) -> Table[ScoreColumns]:
    """The table of scores, with a calibration or without."""
    return SCORES if calibration is None else CALIBRATED_SCORES
