"""Synthetic label rows for tests of sums over them."""

from typing import Any

import polars as pl
from hypothesis import strategies as st

from pipeline.analysis.report.aggregates import COLUMNS, chains_of, steps_of
from pipeline.core.records import GROWN
from pipeline.core.tables import LABELS_GROWN

MOST_STEPS = 5
PROBLEMS = 3


@st.composite
def _prefix(draw: st.DrawFn) -> dict[str, Any]:
    correct, wrong = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    ungraded = draw(st.integers(0, 3))
    graded = correct + wrong
    mean = (correct + 0.5) / (graded + 1)
    return {
        "value": correct / graded if graded else None, "n_correct": correct, "n_rollouts": graded, "n_ungraded": ungraded,
        "n_truncated": draw(st.integers(0, graded + ungraded)), "low": mean / 2, "high": (1 + mean) / 2,
        "origin": "measured", "label": draw(st.sampled_from([0, 1, 2, None])),
    }  # fmt: skip


def p_outcome(outcome: bool | None, values: list[float | None]) -> float | None:
    before = values[-2]
    return None if outcome is None or before is None else before if outcome else 1 - before


@st.composite
def _chain(draw: st.DrawFn, number: int, problem: int, roots: list[dict[str, Any]], estimator: str) -> dict[str, Any]:
    steps = draw(st.lists(_prefix(), min_size=1, max_size=MOST_STEPS))
    outcome = draw(st.sampled_from([True, False, None]))
    if outcome is not None:
        end = float(outcome)
        steps[-1] |= {"n_correct": 0, "n_rollouts": 0, "n_ungraded": 0, "n_truncated": 0, "value": end, "low": end,
                      "high": end, "origin": "terminal"}  # fmt: skip
    return {
        "outcome": outcome,
        "p_outcome": p_outcome(outcome, [roots[problem]["value"], *(step["value"] for step in steps)]),
        "root_prefix_id": f"{problem}",
        "prefix_ids": [f"{problem}-{number}-{step}" for step in range(len(steps))],
        **{name: [step[name] for step in steps] for name in steps[0]},
        **{f"root_{name}": value for name, value in roots[problem].items() if name != "label"},
        **{"estimator": estimator, "label_rule": "any", "policy": "made up", GROWN: False},
    }


@st.composite
def label_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of a unit: chains of a few problems, which share the bare problem and nothing else."""
    roots = [draw(_prefix()) for _ in range(PROBLEMS)]
    estimator = draw(st.sampled_from(["fixed", "pooled"]))
    problems = draw(st.lists(st.integers(0, PROBLEMS - 1), max_size=6))
    return [draw(_chain(number, problem, roots, estimator)) for number, problem in enumerate(problems)]


def tables(rows: list[dict[str, Any]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables of steps and of chains for these rows."""
    empty = pl.from_arrow(LABELS_GROWN.schema.empty_table())
    assert isinstance(empty, pl.DataFrame)
    schema = empty.select(COLUMNS).schema
    steps = steps_of(pl.DataFrame(rows, schema=schema), 0)
    return steps, chains_of(steps)
