"""Two runs of `fixed` with known true values, in the form of `Common`; and labels to make frames from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.analysis.compare.frames import Common, Overlap
from pipeline.core.statistics import Floats, Ints
from pipeline.estimators.intervals import beta_moments

NOTHING = Overlap(
    problems=0, chains=0, chains_only_a=0, chains_only_b=0, by_words=0, prefixes=0, prefixes_only_a=0, prefixes_only_b=0
)


def counted(problems: Sequence[int], right_a: Sequence[int], right_b: Sequence[int], n_a: int, n_b: int) -> Common:
    """One prefix per entry: its problem, and the correct ones of its n rollouts in each run. Positions are 0 to 11."""
    sides: dict[str, list[float]] = {}
    for side, right, n in (("a", right_a, n_a), ("b", right_b, n_b)):
        moments = [beta_moments(each, n) for each in right]
        sides |= {
            f"value_{side}": [each / n for each in right],
            f"unbiased_{side}": [each / n for each in right],
            f"unbiased_rollouts_{side}": [n] * len(right),
            f"correct_{side}": list(right),
            f"rollouts_{side}": [n] * len(right),
            f"sd_{side}": [sd for _, sd in moments],
        }
    ids = [f"prefix {at}" for at in range(len(problems))]
    prefixes = pl.DataFrame(
        {
            "prefix_id": ids,
            "problem_id": [f"problem {problem}" for problem in problems],
            "problem": list(problems),
            "position": [at % 12 for at in range(len(problems))],
            **sides,
        },
        schema_overrides={
            "prefix_id": pl.String,
            "problem_id": pl.String,
            "problem": pl.Int64,
            "position": pl.Int32,
            **{
                f"{name}_{side}": pl.Int64 if name in ("unbiased_rollouts", "correct", "rollouts") else pl.Float64
                for name in ("value", "sd", "unbiased", "unbiased_rollouts", "correct", "rollouts")
                for side in "ab"
            },
        },
    )
    steps = prefixes.select(
        pl.format("chain {}", "prefix_id").alias("chain_id"),
        "problem_id",
        "problem",
        "position",
        "prefix_id",
        *((pl.col(f"correct_{side}") > 0).cast(pl.Int8).alias(f"label_{side}") for side in "ab"),
        pl.lit(value=False).alias("terminal"),
    )
    return Common(overlap=NOTHING, prefixes=prefixes, steps=steps)


def sampled(truth_a: Floats, truth_b: Floats, problems: Ints, n_a: int, n_b: int, seed: int) -> Common:
    """Rollouts drawn for two arrays of true values, (prefixes,) each."""
    rng = np.random.default_rng(seed)
    right_a, right_b = rng.binomial(n_a, truth_a), rng.binomial(n_b, truth_b)
    return counted(problems.tolist(), right_a.tolist(), right_b.tolist(), n_a, n_b)


def truths(n_problems: int, per_problem: int, seed: int) -> tuple[Floats, Ints]:
    """True values of prefixes, similar within a problem, and the problem of each."""
    rng = np.random.default_rng(seed)
    centres = np.repeat(rng.uniform(size=n_problems), per_problem)
    moved = centres + 0.35 * rng.uniform(-1, 1, size=len(centres))
    return np.clip(moved, 0, 1), np.repeat(np.arange(n_problems), per_problem)


def label_row(chain: str, problem: str, ids: Sequence[str], **more: Any) -> dict[str, Any]:
    """A row of labels. The prefixes of the chain have 1 of 2 correct rollouts; the last one has the outcome."""
    n = len(ids)
    row: dict[str, Any] = {
        "chain_id": chain,
        "problem_id": problem,
        "steps": [f"step {at}" for at in range(n)],
        "prefix_ids": list(ids),
        "label": [1] * n,
        "value": [0.5] * (n - 1) + [1.0],
        "value_sd": [0.25] * (n - 1) + [0.0],
        "unbiased_value": [0.5] * (n - 1) + [1.0],
        "unbiased_rollouts": [2] * (n - 1) + [0],
        "n_correct": [1] * (n - 1) + [0],
        "n_rollouts": [2] * (n - 1) + [0],
        "origin": ["measured"] * (n - 1) + ["terminal"],
        "root_prefix_id": f"root of {problem}",
        "root_value": 0.5,
        "root_value_sd": 0.25,
        "root_unbiased_value": 0.5,
        "root_unbiased_rollouts": 2,
        "root_n_correct": 1,
        "root_n_rollouts": 2,
        "root_origin": "measured",
    }
    return {**row, **more}


def label_frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """A unit of labels."""
    return pl.DataFrame(rows, schema_overrides={"label": pl.List(pl.Int8)})
