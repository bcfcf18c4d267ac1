"""What of a run's labels is compared, as three frames. Pure.

| frame | a row is | columns |
|---|---|---|
| `chains` | a chain | `chain_id`, `problem_id`, `words` (of its steps) |
| `steps` | a step of a chain | `chain_id`, `position` (from 1), `prefix_id`, `label`, `terminal` |
| `prefixes` | a distinct prefix | `prefix_id`, `problem_id`, `position` (0: the bare problem), and what rollouts say |

`value`, `value_rollouts`, `mean` and `sd` (of the posterior), `correct` of `rollouts` graded ones.

A prefix that no rollouts speak of is none: neither the end of a chain, whose value is its outcome, nor one that is unmeasured.
All chains of a problem stand in one frame of labels, so that a prefix is distinct in it or nowhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from pipeline.core.records import Origin

_OF_PREFIX = {
    "value": "value",
    "value_rollouts": "value_rollouts",
    "n_correct": "correct",
    "n_rollouts": "rollouts",
    "posterior_mean": "mean",
    "posterior_sd": "sd",
    "origin": "origin",
}
COLUMNS = (
    "chain_id", "problem_id", "steps", "prefix_ids", "label", "root_prefix_id",
    *_OF_PREFIX, *(f"root_{name}" for name in _OF_PREFIX),
)  # fmt: skip
"""Columns of labels that the frames are made of."""
_BETWEEN_STEPS = "\x1f"
_KNOWN = (Origin.MEASURED.value, Origin.IMPLIED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """See the module."""

    chains: pl.DataFrame
    steps: pl.DataFrame
    prefixes: pl.DataFrame


def frames(labels: Iterable[pl.DataFrame]) -> Frames | None:
    """The frames of all labels, given unit by unit with `COLUMNS`. None where there are no labels."""
    parts = [_of_unit(unit) for unit in labels if len(unit)]
    if not parts:
        return None
    return Frames(
        chains=pl.concat(part.chains for part in parts),
        steps=pl.concat(part.steps for part in parts),
        prefixes=pl.concat(part.prefixes for part in parts),
    )


def _of_unit(labels: pl.DataFrame) -> Frames:
    positions = pl.int_ranges(1, pl.col("prefix_ids").list.len() + 1).alias("position")
    steps = labels.select("chain_id", "problem_id", "prefix_ids", "label", *_OF_PREFIX, positions).explode(
        "prefix_ids", "label", *_OF_PREFIX, "position"
    )
    steps = steps.rename({"prefix_ids": "prefix_id", **_OF_PREFIX}).with_columns(pl.col("position").cast(pl.Int32))
    roots = labels.select(
        "problem_id",
        pl.col("root_prefix_id").alias("prefix_id"),
        pl.lit(0, pl.Int32).alias("position"),
        *(pl.col(f"root_{name}").alias(short) for name, short in _OF_PREFIX.items()),
    )
    names = ("prefix_id", "problem_id", "position", *_OF_PREFIX.values())
    known = pl.concat([roots.select(names), steps.select(names)]).filter(pl.col("origin").is_in(_KNOWN))
    return Frames(
        chains=labels.select("chain_id", "problem_id", pl.col("steps").list.join(_BETWEEN_STEPS).hash().alias("words")),
        steps=steps.select(
            "chain_id",
            "position",
            "prefix_id",
            "label",
            (pl.col("origin") == Origin.TERMINAL.value).alias("terminal"),
        ),
        prefixes=known.drop("origin").unique("prefix_id", keep="first", maintain_order=True),
    )
