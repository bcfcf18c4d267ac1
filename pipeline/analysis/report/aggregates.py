"""Label rows as a table with a row per prefix of a chain (`steps_of`), and what the tables of a run come to: counts, shares and
means, by outcome, by value and by place in the chain. Pure.

`steps`, `chains`: see `steps_of`, `chains_of`; `log`: see `run_data.Gathered`. A chain's outcome is `right`, `wrong`, or `open`
where it states no answer that can be graded. Of figures over steps those without a value are left out, where they have none to
show. The end of a chain with an outcome has that for its value and its label, whatever the policy: it counts along the chain
and among drops alone.
"""

from dataclasses import dataclass

import polars as pl

from pipeline.config.choices import ValueColumn
from pipeline.core.records import Finish, Origin
from pipeline.estimators.registry import value_column

VALUE_BINS = 20
DROP_BINS = 20
PLACE_BINS = 10
WIDTH_BINS = 20
ROLLOUT_BINS = 16
"""At most; few different numbers of rollouts have a bin each."""
OUTCOMES = ("right", "wrong", "open")
LABELS = {1: "good", 0: "bad", 2: "neutral", None: "uncertain"}
_SAMPLED = pl.col("n_rollouts") + pl.col("n_ungraded")
_LABEL_ORDER = (list(LABELS.values()), list(range(len(LABELS))))
_LISTS = ("value", "n_correct", "n_rollouts", "n_ungraded", "n_truncated", "low", "high", "posterior_mean", "origin")
COLUMNS = (
    "outcome", "root_prefix_id", "prefix_ids", *_LISTS, "label", *(f"root_{name}" for name in _LISTS),
    "estimator", "label_rule", "policy",
)  # fmt: skip
"""Of a label row, that are looked at."""
_KEPT = {"n_correct": pl.Int32, "n_rollouts": pl.Int32, "n_ungraded": pl.Int32, "n_truncated": pl.Int32,
         "low": pl.Float64, "high": pl.Float64}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What steps are as a whole: of all `steps`, `ends` have their chain's outcome for a value, the rest is `labelled` or
    `uncertain`. `mean_*`: of the values of the rest in right and in wrong chains, None where there are none."""

    steps: int
    ends: int
    labelled: int
    uncertain: int
    mean_right: float | None
    mean_wrong: float | None


def steps_of(labels: pl.DataFrame, first_chain: int) -> pl.DataFrame:
    """One row per chain and prefix, in order; step 0 is the bare problem. All chains of a problem stand in one frame.

    `chain` counts from `first_chain`, `steps` is how many it has. `value` is the one that the estimator means
    (`Estimator.value_column`), null where there is none. `label` is null for step 0 and where it is uncertain.
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


def chains_of(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per chain: its `outcome`, how many `steps`, and by how much its value fell most at a step (`drop`, null where no
    two values stand side by side; negative where it only ever rose)."""
    return steps.group_by("chain", maintain_order=True).agg(
        pl.col("outcome").first(), pl.col("steps").first(), pl.col("drop").max()
    )


def makers_of(labels: pl.DataFrame) -> pl.DataFrame:
    """How many `chains` were labelled with which policy, estimator and rule."""
    return labels.group_by("policy", "estimator", "label_rule").agg(chains=pl.len())


def by_value(estimators: pl.Series) -> list[str]:
    """Those of the estimators whose estimate stands in the column `value`."""
    return [name for name in estimators.unique().to_list() if value_column(None, name) is ValueColumn.value]


def in_all(steps: pl.DataFrame) -> Step:
    found = _with_outcome(_before_ends(steps))
    every = steps.filter(pl.col("step") > 0).height
    means = dict(found.group_by("outcome").agg(pl.mean("value")).iter_rows())
    uncertain = found["label"].null_count()
    return Step(
        steps=every,
        ends=every - found.height,
        labelled=found.height - uncertain,
        uncertain=uncertain,
        mean_right=means.get("right"),
        mean_wrong=means.get("wrong"),
    )


def value_counts(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps per bin of their value, [low, high), the last one closed: `low`, `high`, a column per outcome, `all`."""
    binned = _with_outcome(_before_ends(steps)).drop_nulls("value").with_columns(bin=_bin(pl.col("value"), VALUE_BINS))
    return _with_edges(_by_outcome(binned, VALUE_BINS), 0.0, 1.0)


def drop_counts(chains: pl.DataFrame) -> pl.DataFrame:
    """Chains per bin of their largest drop; those that never fall stand in the first."""
    drop = pl.col("drop").clip(0, 1)
    binned = _with_outcome(chains).drop_nulls("drop").with_columns(bin=_bin(drop, DROP_BINS))
    return _with_edges(_by_outcome(binned, DROP_BINS), 0.0, 1.0)


def value_by_position(steps: pl.DataFrame) -> pl.DataFrame:
    """`mean`, quartiles `low` and `high` and number `steps` of the values, per outcome and place in the chain.

    Place 0 is the bare problem; place i the steps whose number over that of all lies in (i-1, i] of `PLACE_BINS`.
    """
    return (
        _by_position(steps)
        .drop_nulls("value")
        .group_by("outcome", "place")
        .agg(
            mean=pl.mean("value"),
            low=pl.quantile("value", 0.25, "linear"),
            high=pl.quantile("value", 0.75, "linear"),
            steps=pl.len().cast(pl.Int64),
        )
        .sort("outcome", "place")
    )


def label_counts(steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` per `outcome` and `label` (in words), all pairs that occur."""
    named = _with_outcome(_before_ends(steps)).with_columns(
        label=pl.col("label").cast(pl.Int64).replace_strict(list(LABELS), list(LABELS.values()), return_dtype=pl.String)
    )
    counted = named.group_by("outcome", "label").agg(steps=pl.len().cast(pl.Int64))
    order = [pl.col("outcome").replace_strict(OUTCOMES, [0, 1, 2]), pl.col("label").replace_strict(*_LABEL_ORDER)]
    return counted.sort(order)


def uncertain_by_position(steps: pl.DataFrame) -> pl.DataFrame:
    """`uncertain` of all `steps` before ends per place (from 1, as in `value_by_position`), and their `share`."""
    found = _by_position(_before_ends(steps))
    return _shares(found, pl.col("label").is_null().sum(), pl.len(), "uncertain", "steps")


def truncated_by_position(steps: pl.DataFrame) -> pl.DataFrame:
    """`truncated` of all `rollouts` of distinct prefixes per place, and their `share`."""
    found = _by_position(steps).filter("counts")
    return _shares(found, pl.sum("n_truncated"), _SAMPLED.sum(), "truncated", "rollouts")


def widths(steps: pl.DataFrame) -> pl.DataFrame:
    """Distinct `prefixes` by rollouts spent, `from_rollouts` to `to_rollouts`, and by the width of their interval, `low` to
    `high`."""
    found = steps.filter("counts").select(rollouts=_SAMPLED, width=pl.col("high") - pl.col("low")).drop_nulls()
    most = found["rollouts"].max() or 0
    assert isinstance(most, int)
    wide = most // ROLLOUT_BINS + 1
    binned = found.select(
        from_rollouts=pl.col("rollouts").cast(pl.Int64) // wide * wide, bin=_bin(pl.col("width"), WIDTH_BINS)
    )
    counted = binned.group_by("from_rollouts", "bin").agg(prefixes=pl.len().cast(pl.Int64)).sort("from_rollouts", "bin")
    return counted.select(
        "from_rollouts",
        (pl.col("from_rollouts") + (wide - 1)).alias("to_rollouts"),
        (pl.col("bin") / WIDTH_BINS).alias("low"),
        ((pl.col("bin") + 1) / WIDTH_BINS).alias("high"),
        "prefixes",
    )


def outcome_counts(chains: pl.DataFrame) -> pl.DataFrame:
    """`chains` per `outcome`."""
    return _with_outcome(chains).group_by("outcome").agg(chains=pl.len().cast(pl.Int64))


def verdict_counts(log: pl.DataFrame) -> pl.DataFrame:
    """`rollouts` and `tokens` per `verdict`, most first; those that were aborted have none, and are named so."""
    aborted = pl.col("finish") == Finish.ABORT.value
    named = log.with_columns(verdict=pl.when(aborted).then(pl.lit("aborted")).otherwise("verdict"))
    counted = named.group_by("verdict").agg(pl.sum("rollouts", "tokens"))
    return counted.sort("rollouts", "verdict", descending=[True, False])


def _before_ends(steps: pl.DataFrame) -> pl.DataFrame:
    return steps.filter((pl.col("step") > 0) & (pl.col("origin") != Origin.TERMINAL.value))


def _with_outcome(frame: pl.DataFrame) -> pl.DataFrame:
    outcome = pl.col("outcome")
    named = (
        pl.when(outcome.is_null()).then(pl.lit("open")).when(outcome).then(pl.lit("right")).otherwise(pl.lit("wrong"))
    )
    return frame.with_columns(outcome=named)


def _by_position(steps: pl.DataFrame) -> pl.DataFrame:
    """With `place`, counted in whole numbers: k of K steps lie in bin ceil(k * bins / K)."""
    step, of = pl.col("step").cast(pl.Int64), pl.col("steps").cast(pl.Int64)
    return _with_outcome(steps).with_columns(place=(step * PLACE_BINS + of - 1) // of)


def _bin(value: pl.Expr, bins: int) -> pl.Expr:
    return (value * bins).floor().clip(0, bins - 1).cast(pl.Int64)


def _by_outcome(binned: pl.DataFrame, bins: int) -> pl.DataFrame:
    counts = [(pl.col("outcome") == outcome).sum().cast(pl.Int64).alias(outcome) for outcome in OUTCOMES]
    found = binned.group_by("bin").agg(*counts, pl.len().cast(pl.Int64).alias("all"))
    every = pl.DataFrame({"bin": range(bins)}, schema={"bin": pl.Int64})
    return every.join(found, on="bin", how="left", maintain_order="left").fill_null(0)


def _with_edges(counts: pl.DataFrame, low: float, high: float) -> pl.DataFrame:
    size = (high - low) / counts.height
    edges = (low + pl.col("bin") * size, low + (pl.col("bin") + 1) * size)
    return counts.select(edges[0].alias("low"), edges[1].alias("high"), *OUTCOMES, "all")


def _shares(found: pl.DataFrame, part: pl.Expr, whole: pl.Expr, part_name: str, whole_name: str) -> pl.DataFrame:
    parts = part.cast(pl.Int64).alias(part_name), whole.cast(pl.Int64).alias(whole_name)
    counted = found.group_by("place").agg(*parts).filter(pl.col(whole_name) > 0).sort("place")
    return counted.with_columns(share=pl.col(part_name) / pl.col(whole_name))
