"""Label rows as a table with a row per prefix of a chain, which sums are made of. Pure."""

import polars as pl

from pipeline.config.choices import ValueColumn
from pipeline.estimators.registry import value_column

_LISTS = ("value", "n_correct", "n_rollouts", "n_ungraded", "n_truncated", "low", "high", "posterior_mean", "origin")
COLUMNS = (
    "outcome", "root_prefix_id", "prefix_ids", *_LISTS, "label", *(f"root_{name}" for name in _LISTS),
    "estimator", "label_rule", "policy",
)  # fmt: skip
"""Of a label row, that are looked at."""
_KEPT = {"n_correct": pl.Int32, "n_rollouts": pl.Int32, "n_ungraded": pl.Int32, "n_truncated": pl.Int32,
         "low": pl.Float64, "high": pl.Float64}  # fmt: skip


def steps_of(labels: pl.DataFrame, first_chain: int) -> pl.DataFrame:
    """One row per chain and prefix, in order; step 0 is the bare problem. All chains of a problem stand in one frame.

    `chain` counts from `first_chain`, `steps` is how many it has. `value` is the one that the estimator means
    (`Estimator.value_column`), null where there is none. `label` is null for step 0 and where it is undecided.
    `drop` is by how much the value fell from the prefix before. `counts` is true for the first of the rows that share a prefix
    which was, or could have been, sampled: sums over prefixes take those.
    """
    numbered = labels.select(COLUMNS).with_row_index("chain", first_chain).with_columns(pl.col("chain").cast(pl.UInt32))
    numbered = numbered.with_columns(steps=pl.col("prefix_ids").list.len().cast(pl.UInt16))
    shown = pl.col("estimator").is_in(by_value(numbered["estimator"]))
    shared = ["chain", "steps", "outcome"]
    roots = numbered.select(
        *shared,
        pl.lit(0, pl.UInt16).alias("step"),
        pl.col("root_prefix_id").alias("prefix_id"),
        pl.when(shown).then("root_value").otherwise("root_posterior_mean").alias("value"),
        *(pl.col(f"root_{name}").cast(kind).alias(name) for name, kind in _KEPT.items()),
        pl.lit(None, pl.Int8).alias("label"),
        pl.col("root_origin").alias("origin"),
    )
    steps = numbered.select(
        *shared,
        pl.int_ranges(1, pl.col("steps").cast(pl.Int64) + 1).cast(pl.List(pl.UInt16)).alias("step"),
        pl.col("prefix_ids").alias("prefix_id"),
        pl.when(shown).then("value").otherwise("posterior_mean").alias("value"),
        *_KEPT,
        "label",
        "origin",
    ).explode("step", "prefix_id", "value", *_KEPT, "label", "origin")
    found = pl.concat([roots, steps]).sort("chain", "step")
    sampled = pl.col("origin") != "terminal"
    return found.with_columns(
        drop=pl.col("value").shift(1).over("chain") - pl.col("value"),
        counts=sampled & pl.struct("prefix_id", sampled).is_first_distinct(),
    ).drop("prefix_id")


def by_value(estimators: pl.Series) -> list[str]:
    """Those of the estimators whose estimate stands in the column `value`."""
    return [name for name in estimators.unique().to_list() if value_column(None, name) is ValueColumn.value]


def chains_of(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per chain: its `outcome`, how many `steps`, and by how much its value fell most at a step (`drop`, null where no
    two values stand side by side; negative where it only ever rose)."""
    return steps.group_by("chain", maintain_order=True).agg(
        pl.col("outcome").first(), pl.col("steps").first(), pl.col("drop").max()
    )


def makers_of(labels: pl.DataFrame) -> pl.DataFrame:
    """How many `chains` were labelled with which policy, estimator and rule."""
    return labels.group_by("policy", "estimator", "label_rule").agg(chains=pl.len())
