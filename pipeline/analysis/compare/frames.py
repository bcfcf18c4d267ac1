"""The compared data of two runs' labels as three frames per run, and what the runs have in common. Pure.

| frame | a row is | columns |
|---|---|---|
| `chains` | a chain | `chain_id`, `problem_id`, `words` (of its steps) |
| `steps` | a step of a chain | `chain_id`, `position` (from 1), `prefix_id`, `label`, `terminal` |
| `prefixes` | a distinct prefix | `prefix_id`, `problem_id`, `position` (0: the bare problem), and estimates |

Estimates are `value` with `sd`, `unbiased` from `unbiased_rollouts` rollouts, and `correct` of `rollouts` graded ones.

Two kinds of prefixes are left out, because no rollouts inform about them: the last step of a chain with an outcome, whose value
is the outcome, and unmeasured prefixes. All chains of a problem are in one frame of labels, so a prefix that is distinct in its
frame is distinct in the run.

A prefix is identified by its id, which depends on the problem, its known answers and the text so far. For given chains, two
policies therefore have the same ids, whatever their tokenizers. The ids of chains that a policy sampled depend on its tokens.
If one run has such a chain and the other has it as text, the chains are matched by the words of their steps, and their prefixes
by position.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from pipeline.core.records import Origin

_OF_PREFIX = {
    "value": "value",
    "value_sd": "sd",
    "unbiased_value": "unbiased",
    "unbiased_rollouts": "unbiased_rollouts",
    "n_correct": "correct",
    "n_rollouts": "rollouts",
    "origin": "origin",
}
COLUMNS = (
    "chain_id", "problem_id", "steps", "prefix_ids", "label", "root_prefix_id",
    *_OF_PREFIX, *(f"root_{name}" for name in _OF_PREFIX),
)  # fmt: skip
"""Columns of labels that the frames are made from."""
_BETWEEN_STEPS = "\x1f"
_KNOWN = (Origin.MEASURED.value, Origin.IMPLIED.value)
_SEEN = ("value", "sd", "unbiased", "unbiased_rollouts", "correct", "rollouts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """The frames of one run, see the module."""

    chains: pl.DataFrame
    steps: pl.DataFrame
    prefixes: pl.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Numbers of what is in both runs, and in only one of them. `by_words` of the common chains have different ids in the
    runs."""

    problems: int
    chains: int
    chains_only_a: int
    chains_only_b: int
    by_words: int
    prefixes: int
    prefixes_only_a: int
    prefixes_only_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """`prefixes`: one row per distinct common prefix, with `prefix_id`, `problem_id`, `problem` (its number), `position`, and
    the estimates of both runs: `value_a`, `value_b` ... `steps`: one row per step of a common chain, with `chain_id`,
    `problem_id`, `problem`, `position`, `prefix_id`, `label_a`, `label_b`, `terminal` (the last step of a chain with an
    outcome)."""

    overlap: Overlap
    prefixes: pl.DataFrame
    steps: pl.DataFrame


def frames(labels: Iterable[pl.DataFrame]) -> Frames | None:
    """The frames of all labels, which are given unit by unit with `COLUMNS`. None if there are no labels."""
    parts = [_of_unit(unit) for unit in labels if len(unit)]
    if not parts:
        return None
    return Frames(
        chains=pl.concat(part.chains for part in parts),
        steps=pl.concat(part.steps for part in parts),
        prefixes=pl.concat(part.prefixes for part in parts),
    )


def common(a: Frames, b: Frames) -> Common:
    """What `a` and `b` have in common, under the ids of `a`."""
    chains_by_id = a.chains.join(b.chains, on="chain_id", how="semi")
    twins = _twins(a, b)
    b_prefixes, b_steps = _renamed(a, b, twins)
    prefixes = _sided(a.prefixes, "a").join(
        _sided(b_prefixes, "b").drop("problem_id", "position"), on="prefix_id", how="inner", maintain_order="left"
    )
    steps = (
        a.steps.join(b_steps, on=("chain_id", "position"), how="inner", suffix="_b", maintain_order="left")
        .join(a.chains.select("chain_id", "problem_id"), on="chain_id", maintain_order="left")
        .select(
            *("chain_id", "problem_id", "position", "prefix_id"),
            pl.col("label").alias("label_a"),
            "label_b",
            pl.col("terminal") | pl.col("terminal_b"),
        )
    )
    n_chains = len(chains_by_id) + len(twins)
    overlap = Overlap(
        problems=len(a.chains.select("problem_id").unique().join(b.chains, on="problem_id", how="semi")),
        chains=n_chains,
        chains_only_a=len(a.chains) - n_chains,
        chains_only_b=len(b.chains) - n_chains,
        by_words=len(twins),
        prefixes=len(prefixes),
        prefixes_only_a=len(a.prefixes) - len(prefixes),
        prefixes_only_b=len(b_prefixes) - len(prefixes),
    )
    return Common(overlap=overlap, prefixes=_numbered(prefixes), steps=_numbered(steps))


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
            *("chain_id", "position", "prefix_id", "label"), terminal=pl.col("origin") == Origin.TERMINAL.value
        ),
        prefixes=known.drop("origin").unique("prefix_id", keep="first", maintain_order=True),
    )


def _twins(a: Frames, b: Frames) -> pl.DataFrame:
    """Pairs of chains with the same words but different ids in the two runs: `chain_id` of a and `twin` of b."""
    same = ("problem_id", "words")
    only_a = a.chains.join(b.chains, on="chain_id", how="anti").unique(same, keep="first", maintain_order=True)
    only_b = b.chains.join(a.chains, on="chain_id", how="anti").unique(same, keep="first", maintain_order=True)
    return only_a.join(only_b, on=same, suffix="_b").select("chain_id", pl.col("chain_id_b").alias("twin"))


def _renamed(a: Frames, b: Frames, twins: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Prefixes and steps of b under their ids in a."""
    of_twins = b.steps.join(twins, left_on="chain_id", right_on="twin", suffix="_a").join(
        a.steps, left_on=("chain_id_a", "position"), right_on=("chain_id", "position"), suffix="_a"
    )
    names = of_twins.select("prefix_id", pl.col("prefix_id_a").alias("name")).unique("prefix_id", keep="first")
    prefixes = (
        b.prefixes.join(names, on="prefix_id", how="left", maintain_order="left")
        .with_columns(pl.coalesce("name", "prefix_id").alias("prefix_id"))
        .drop("name")
        .unique("prefix_id", keep="first", maintain_order=True)
    )
    chains = twins.rename({"chain_id": "name"})
    steps = (
        b.steps.join(chains, left_on="chain_id", right_on="twin", how="left", maintain_order="left")
        .with_columns(pl.coalesce("name", "chain_id").alias("chain_id"))
        .drop("name")
    )
    return prefixes, steps


def _sided(prefixes: pl.DataFrame, side: str) -> pl.DataFrame:
    return prefixes.rename({name: f"{name}_{side}" for name in _SEEN})


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns((pl.col("problem_id").rank("dense").cast(pl.Int64) - 1).alias("problem"))
