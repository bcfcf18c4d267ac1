"""The table that `score` writes: what a trained model says of the steps of chains."""

import pyarrow as pa

SCORES = pa.schema(
    [
        pa.field("chain_id", pa.string(), nullable=False),
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("source_id", pa.string()),
        pa.field("problem", pa.string(), nullable=False),
        pa.field("gold_answer", pa.string()),
        pa.field("steps", pa.list_(pa.string()), nullable=False),
        pa.field("final_answer", pa.string()),
        pa.field("outcome", pa.bool_()),
        pa.field("step_scores", pa.list_(pa.float64()), nullable=False),
        pa.field("n_scored", pa.int32(), nullable=False),
        pa.field("score_min", pa.float64()),
        pa.field("score_product", pa.float64()),
        pa.field("score_mean", pa.float64()),
        pa.field("score_last", pa.float64()),
        pa.field("score", pa.float64()),
        pa.field("model", pa.string(), nullable=False),
    ]
)
"""One row per chain. `step_scores` has one P(good) per step, null behind the first `n_scored`, which are all that the model
can take; the scores of a chain are null unless all its steps have one. `score` is the one that was asked for."""
