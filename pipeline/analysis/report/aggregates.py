"""Label rows as a table with one row per chain and prefix (`steps_of`), and the figures of a run: counts, shares and means, by
outcome, by value and by position in the chain. Pure.

`steps` is the table of `steps_of`, `chains` that of `chains_of`, `log` that of `run_data.RunData`. A chain's outcome is
`right`, `wrong` or `open` (not known). Figures of values leave out steps without a
value. The last step of a right or wrong chain takes its value and label from the outcome, whatever the policy. It is called an
end, and counts only in `value_by_position` and in drops.
"""

from dataclasses import dataclass

import polars as pl

from pipeline.core.records import GROWN, Finish, Origin

VALUE_BINS = 20
DROP_BINS = 20
POSITION_BINS = 10
WIDTH_BINS = 20
ROLLOUT_BINS = 16
"""The most bins. Where no prefix has this many rollouts, each number of rollouts has its own bin."""
UNLIKELY = 0.1
"""An outcome with a smaller `p_outcome` is a surprise."""
OUTCOMES = ("right", "wrong", "open")
LABELS = {1: "good", 0: "bad", 2: "neutral", None: "uncertain"}
_SAMPLED = pl.col("n_rollouts") + pl.col("n_ungraded")
_LABEL_ORDER = (list(LABELS.values()), list(range(len(LABELS))))
_LISTS = ("value", "n_correct", "n_rollouts", "n_ungraded", "n_truncated", "low", "high", "origin")
OF_STEPS = (
    "outcome", "p_outcome", "root_prefix_id", "prefix_ids", *_LISTS, "label", *(f"root_{name}" for name in _LISTS), GROWN,
)  # fmt: skip
"""Columns of a label row that `steps_of` reads."""
COLUMNS = (*OF_STEPS, "final_answer", "estimator", "label_rule", "policy")
"""Columns of a label row that are read."""
VALUE_BAR, DROP_BAR, UNCERTAIN_BAR, TRUNCATED_BAR = "v", "d", "u", "t"
BARS = {
    **{f"{VALUE_BAR}{at}": f"value {at / VALUE_BINS:.2f}–{(at + 1) / VALUE_BINS:.2f}" for at in range(VALUE_BINS)},
    **{f"{DROP_BAR}{at}": f"largest drop {at / DROP_BINS:.2f}–{(at + 1) / DROP_BINS:.2f}" for at in range(DROP_BINS)},
    **{label: f"a step is {label}" for label in LABELS.values()},
    **{f"{UNCERTAIN_BAR}{at}": f"uncertain at {at / POSITION_BINS:.1f}" for at in range(1, POSITION_BINS + 1)},
    **{f"{TRUNCATED_BAR}{at}": f"truncated rollouts at {at / POSITION_BINS:.1f}" for at in range(POSITION_BINS + 1)},
}
"""The bars of charts by their marks (a letter and a number, or a label), and what the chains of each have."""
_KEPT = {"n_correct": pl.Int32, "n_rollouts": pl.Int32, "n_ungraded": pl.Int32, "n_truncated": pl.Int32,
         "low": pl.Float64, "high": pl.Float64}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Counts and means over all `steps` of a run: `ends` (see the module), and of the others those that are `labelled` and
    `uncertain`. `mean_right`, `mean_wrong`: mean value of the others in right and in wrong chains, None if there is none."""

    steps: int
    ends: int
    labelled: int
    uncertain: int
    mean_right: float | None
    mean_wrong: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlikelyOutcomes:
    """Of the `chains` with a `p_outcome`: how many right and how many wrong ones have one below `UNLIKELY`."""

    chains: int
    right: int
    wrong: int


def steps_of(labels: pl.DataFrame, first_chain: int) -> pl.DataFrame:
    """One row per chain and prefix, in order; step 0 is the bare problem. `labels` must hold all chains of its problems.

    Of a chain that `grow` promoted it has the last prefix alone: other chains have those before, or nobody has measured them.
    `chain` counts from `first_chain`; `steps` is the number of its steps. `label` is null for step 0 and for
    uncertain steps. `drop` is the decrease of the value from the prefix before. `counts` is true on the first row of each
    distinct prefix that was, or could have been, sampled; sums over prefixes use these rows.
    """
    numbered = (
        labels.select(OF_STEPS).with_row_index("chain", first_chain).with_columns(pl.col("chain").cast(pl.UInt32))
    )
    numbered = numbered.with_columns(steps=pl.col("prefix_ids").list.len().cast(pl.UInt16))
    shared = ["chain", "steps", "outcome", "p_outcome", GROWN]
    roots = numbered.select(
        *shared,
        pl.lit(0, pl.UInt16).alias("step"),
        pl.col("root_prefix_id").alias("prefix_id"),
        pl.col("root_value").alias("value"),
        *(pl.col(f"root_{name}").cast(kind).alias(name) for name, kind in _KEPT.items()),
        pl.lit(None, pl.Int8).alias("label"),
        pl.col("root_origin").alias("origin"),
    )
    steps = numbered.select(
        *shared,
        pl.int_ranges(1, pl.col("steps").cast(pl.Int64) + 1).cast(pl.List(pl.UInt16)).alias("step"),
        pl.col("prefix_ids").alias("prefix_id"),
        "value",
        *_KEPT,
        "label",
        "origin",
    ).explode("step", "prefix_id", "value", *_KEPT, "label", "origin")
    found = pl.concat([roots, steps]).sort("chain", "step")
    sampled = pl.col("origin") != "terminal"
    return (
        found.with_columns(drop=pl.col("value").shift(1).over("chain") - pl.col("value"))
        .filter(~pl.col(GROWN) | (pl.col("step") == pl.col("steps")))
        .with_columns(counts=sampled & pl.struct("prefix_id", sampled).is_first_distinct())
        .drop("prefix_id", GROWN)
    )


def own_steps(column: str, schema: pl.Schema) -> pl.Expr:
    """A column of lists of a table of labels: of chains that `grow` promoted the last element alone, as in `steps_of`."""
    whole = pl.col(column)
    return pl.when(GROWN).then(whole.list.tail(1)).otherwise(whole) if GROWN in schema else whole


def chains_of(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per chain: its `outcome` and `p_outcome`, the number of its `steps`, and the largest decrease of its value at a
    step (`drop`). It is null if no two adjacent values are known, and negative if the value only rises."""
    return steps.group_by("chain", maintain_order=True).agg(
        pl.col("outcome", "p_outcome", "steps").first(), pl.col("drop").max()
    )


def bars_of(steps: pl.DataFrame) -> list[str]:
    """The marks of the bars of each chain, in order, separated by spaces, also of prefixes that it shares: bin of
    `value_counts`, of `drop_counts`, labels, and positions of `uncertain_by_position` and `truncated_by_position`."""
    before_ends, places = _before_ends(steps), _by_position(steps)
    uncertain = _before_ends(places).filter(pl.col("label").is_null())
    truncated = places.filter((pl.col("origin") != Origin.TERMINAL.value) & (pl.col("n_truncated") > 0))
    marks = [
        before_ends.drop_nulls("value").select("chain", _mark(VALUE_BAR, _bin(pl.col("value"), VALUE_BINS))),
        chains_of(steps).drop_nulls("drop").select("chain", _mark(DROP_BAR, _drop_bin())),
        before_ends.select("chain", _label_word().alias("bar")),
        uncertain.select("chain", _mark(UNCERTAIN_BAR, pl.col("position"))),
        truncated.select("chain", _mark(TRUNCATED_BAR, pl.col("position"))),
    ]
    of_chains = pl.concat(marks).unique().sort("chain", "bar").group_by("chain", maintain_order=True).agg("bar")
    every = steps.select(pl.col("chain").unique(maintain_order=True))
    bars = every.join(of_chains, on="chain", how="left", maintain_order="left")["bar"]
    return bars.list.join(" ").fill_null("").to_list()


def makers_of(labels: pl.DataFrame) -> pl.DataFrame:
    """Number of `chains` by policy, estimator and label rule."""
    return labels.group_by("policy", "estimator", "label_rule").agg(chains=pl.len())


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


def has_graded(steps: pl.DataFrame) -> bool:
    """Whether any rollout was graded. If not, values rest on what an estimator assumes, and figures of them mean nothing."""
    return bool((steps["n_rollouts"] > 0).any())


def value_counts(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps per bin of their value. Columns: `low`, `high`, one per outcome, `all`. Bins are [low, high), the last one is
    closed."""
    binned = _with_outcome(_before_ends(steps)).drop_nulls("value").with_columns(bin=_bin(pl.col("value"), VALUE_BINS))
    return _with_edges(_by_outcome(binned, VALUE_BINS))


def drop_counts(chains: pl.DataFrame) -> pl.DataFrame:
    """Chains per bin of their largest drop. Chains whose value never falls are in the first bin."""
    binned = _with_outcome(chains).drop_nulls("drop").with_columns(bin=_drop_bin())
    return _with_edges(_by_outcome(binned, DROP_BINS))


def value_by_position(steps: pl.DataFrame) -> pl.DataFrame:
    """Per outcome and position in the chain: `mean` of the values, their quartiles `low` and `high`, and their number `steps`.

    Position 0 is the bare problem. Position i holds step k of K if k / K is in (i - 1, i] / `POSITION_BINS`.
    """
    return (
        _by_position(steps)
        .drop_nulls("value")
        .group_by("outcome", "position")
        .agg(
            mean=pl.mean("value"),
            low=pl.quantile("value", 0.25, "linear"),
            high=pl.quantile("value", 0.75, "linear"),
            steps=pl.len().cast(pl.Int64),
        )
        .sort("outcome", "position")
    )


def label_counts(steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` per `outcome` and `label` (as a word), for all pairs that occur."""
    named = _with_outcome(_before_ends(steps)).with_columns(label=_label_word())
    counted = named.group_by("outcome", "label").agg(steps=pl.len().cast(pl.Int64))
    order = [pl.col("outcome").replace_strict(OUTCOMES, [0, 1, 2]), pl.col("label").replace_strict(*_LABEL_ORDER)]
    return counted.sort(order)


def uncertain_by_position(steps: pl.DataFrame) -> pl.DataFrame:
    """Per position (from 1, see `value_by_position`): `steps` without ends, the `uncertain` ones of them, and their `share`."""
    found = _by_position(_before_ends(steps))
    return _shares(found, pl.col("label").is_null().sum(), pl.len(), "uncertain", "steps")


def truncated_by_position(steps: pl.DataFrame) -> pl.DataFrame:
    """Per position: `rollouts` of distinct prefixes, the `truncated` ones of them, and their `share`."""
    found = _by_position(steps).filter("counts")
    return _shares(found, pl.sum("n_truncated"), _SAMPLED.sum(), "truncated", "rollouts")


def widths(steps: pl.DataFrame) -> pl.DataFrame:
    """Distinct `prefixes` by number of rollouts (`from_rollouts` to `to_rollouts`, both included) and by width of the interval
    (`low` to `high`)."""
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


def unlikely_outcomes(chains: pl.DataFrame) -> UnlikelyOutcomes:
    known = chains.drop_nulls("p_outcome")
    unlikely = known.filter(pl.col("p_outcome") < UNLIKELY)
    right = int(unlikely["outcome"].sum())
    return UnlikelyOutcomes(chains=known.height, right=right, wrong=unlikely.height - right)


def outcome_counts(chains: pl.DataFrame) -> pl.DataFrame:
    """`chains` per `outcome`."""
    return _with_outcome(chains).group_by("outcome").agg(chains=pl.len().cast(pl.Int64))


def given_outcomes(labels: pl.DataFrame) -> int:
    """Number of chains without a stated answer whose outcome is the one in the data."""
    return labels.filter(pl.col("final_answer").is_null() & pl.col("outcome").is_not_null()).height


def verdict_counts(log: pl.DataFrame) -> pl.DataFrame:
    """`rollouts` and `tokens` per `verdict`, most rollouts first. Aborted rollouts are listed as `aborted`, without their
    verdict."""
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
    """Adds `position`, computed in whole numbers: step k of K is in position ceil(k * bins / K)."""
    step, of = pl.col("step").cast(pl.Int64), pl.col("steps").cast(pl.Int64)
    return _with_outcome(steps).with_columns(position=(step * POSITION_BINS + of - 1) // of)


def _bin(value: pl.Expr, bins: int) -> pl.Expr:
    return (value * bins).floor().clip(0, bins - 1).cast(pl.Int64)


def _drop_bin() -> pl.Expr:
    return _bin(pl.col("drop").clip(0, 1), DROP_BINS)


def _label_word() -> pl.Expr:
    return pl.col("label").cast(pl.Int64).replace_strict(list(LABELS), list(LABELS.values()), return_dtype=pl.String)


def _mark(letter: str, number: pl.Expr) -> pl.Expr:
    return pl.format(f"{letter}{{}}", number).alias("bar")


def _by_outcome(binned: pl.DataFrame, bins: int) -> pl.DataFrame:
    counts = [(pl.col("outcome") == outcome).sum().cast(pl.Int64).alias(outcome) for outcome in OUTCOMES]
    found = binned.group_by("bin").agg(*counts, pl.len().cast(pl.Int64).alias("all"))
    every = pl.DataFrame({"bin": range(bins)}, schema={"bin": pl.Int64})
    return every.join(found, on="bin", how="left", maintain_order="left").fill_null(0)


def _with_edges(counts: pl.DataFrame) -> pl.DataFrame:
    size = 1.0 / counts.height
    edges = (pl.col("bin") * size, (pl.col("bin") + 1) * size)
    return counts.select(edges[0].alias("low"), edges[1].alias("high"), *OUTCOMES, "all")


def _shares(found: pl.DataFrame, part: pl.Expr, whole: pl.Expr, part_name: str, whole_name: str) -> pl.DataFrame:
    parts = part.cast(pl.Int64).alias(part_name), whole.cast(pl.Int64).alias(whole_name)
    counted = found.group_by("position").agg(*parts).filter(pl.col(whole_name) > 0).sort("position")
    return counted.with_columns(share=pl.col(part_name) / pl.col(whole_name))
