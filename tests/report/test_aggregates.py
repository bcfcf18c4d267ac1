"""Sums over label rows equal counts of the rows one by one."""

from collections import Counter
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given

from pipeline.analysis.report import aggregates
from tests.report.rows import label_rows, tables

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]
OUTCOME = {True: "right", False: "wrong", None: "open"}


def shown(row: dict[str, Any]) -> list[float | None]:
    """The values of the bare problem and of every step that the report must show."""
    return [row["root_value"], *row["value"]]


def before_end(row: dict[str, Any], of_steps: list[Any]) -> list[Any]:
    """The entries of steps whose value is not the outcome of their chain."""
    return [each for each, origin in zip(of_steps, row["origin"], strict=True) if origin != "terminal"]


def worst(row: dict[str, Any]) -> float | None:
    values = shown(row)
    falls = [a - b for a, b in pairwise(values) if a is not None and b is not None]
    return max(falls, default=None)


@given(label_rows())
def test_every_step_with_a_value_stands_in_one_bin(rows: Rows) -> None:
    steps, _ = tables(rows)
    found = aggregates.value_counts(steps)
    expected = Counter(
        (OUTCOME[row["outcome"]], min(int(value * 20), 19))
        for row in rows
        for value in before_end(row, shown(row)[1:])
        if value is not None
    )
    for outcome in aggregates.OUTCOMES:
        assert found[outcome].to_list() == [expected[outcome, at] for at in range(aggregates.VALUE_BINS)]
    assert found["all"].sum() == expected.total()
    assert found.select(aggregates.OUTCOMES).sum_horizontal().to_list() == found["all"].to_list()


@given(label_rows())
def test_labels_add_up_to_the_steps(rows: Rows) -> None:
    steps, chains = tables(rows)
    found = aggregates.label_counts(steps)
    expected = Counter(
        (OUTCOME[row["outcome"]], aggregates.LABELS[label]) for row in rows for label in before_end(row, row["label"])
    )
    assert {(outcome, label): count for outcome, label, count in found.iter_rows()} == expected
    whole = aggregates.in_all(steps)
    assert whole.labelled + whole.uncertain == expected.total() == whole.steps - whole.ends
    assert whole.steps == sum(len(row["label"]) for row in rows)
    assert whole.uncertain == sum(label is None for row in rows for label in before_end(row, row["label"]))
    assert dict(aggregates.outcome_counts(chains).iter_rows()) == Counter(OUTCOME[row["outcome"]] for row in rows)


@given(label_rows())
def test_means_say_nothing_of_outcomes(rows: Rows) -> None:
    steps, _ = tables(rows)
    whole = aggregates.in_all(steps)
    for outcome, mean in ((True, whole.mean_right), (False, whole.mean_wrong)):
        values = [
            value
            for row in rows
            if row["outcome"] is outcome
            for value in before_end(row, shown(row)[1:])
            if value is not None
        ]
        assert mean == (pytest.approx(sum(values) / len(values)) if values else None)


@given(label_rows())
def test_shares_along_the_chain_count_every_step_and_every_rollout_once(rows: Rows) -> None:
    steps, _ = tables(rows)
    uncertain = aggregates.uncertain_by_position(steps)
    assert uncertain["steps"].sum() == sum(len(before_end(row, row["label"])) for row in rows)
    assert uncertain["uncertain"].sum() == aggregates.in_all(steps).uncertain
    assert set(uncertain["position"]) <= set(range(1, aggregates.POSITION_BINS + 1))
    cut = aggregates.truncated_by_position(steps)
    distinct = {
        row["root_prefix_id"]: (row["root_n_truncated"], row["root_n_rollouts"] + row["root_n_ungraded"])
        for row in rows
    }
    distinct |= {
        prefix: (truncated, graded + ungraded)
        for row in rows
        for prefix, truncated, graded, ungraded in zip(
            row["prefix_ids"], row["n_truncated"], row["n_rollouts"], row["n_ungraded"], strict=True
        )
    }
    assert cut["truncated"].sum() == sum(truncated for truncated, _ in distinct.values())
    assert cut["rollouts"].sum() == sum(rollouts for _, rollouts in distinct.values())


@given(label_rows())
def test_means_along_the_chain_are_those_of_its_values(rows: Rows) -> None:
    steps, _ = tables(rows)
    found = aggregates.value_by_position(steps)
    for outcome, position, mean, low, high, count in found.iter_rows():
        values = [
            value
            for row in rows
            for step, value in enumerate(shown(row))
            if OUTCOME[row["outcome"]] == outcome
            and value is not None
            and position_of(step, len(row["label"])) == position
        ]
        assert count == len(values)
        assert mean == pytest.approx(sum(values) / len(values))
        assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    assert found["steps"].sum() == sum(value is not None for row in rows for value in shown(row))


def position_of(step: int, steps: int) -> int:
    return next(
        position
        for position in range(aggregates.POSITION_BINS + 1)
        if position * steps >= step * aggregates.POSITION_BINS
    )


@given(label_rows())
def test_drops_and_widths_count_every_chain_and_prefix_once(rows: Rows) -> None:
    steps, chains = tables(rows)
    falls = [fall for fall in map(worst, rows) if fall is not None]
    found = aggregates.drop_counts(chains)
    assert found["all"].sum() == len(falls)
    assert found["all"][0] == sum(fall < 1 / aggregates.DROP_BINS for fall in falls)
    measured = {row["root_prefix_id"] for row in rows} | {
        prefix
        for row in rows
        for prefix, origin in zip(row["prefix_ids"], row["origin"], strict=True)
        if origin != "terminal"
    }
    widths = aggregates.widths(steps)
    assert widths["prefixes"].sum() == len(measured)
    assert widths["from_rollouts"].n_unique() <= aggregates.ROLLOUT_BINS


def test_a_verdict_of_what_was_stopped_is_not_reported() -> None:
    log = pl.DataFrame(
        {
            "step_index": [0, 0, 1],
            "finish": ["stop", "abort", "length"],
            "verdict": ["correct", "no_answer", "no_answer"],
            "rollouts": [5, 2, 7],
            "tokens": [50, 3, 700],
        }
    )
    counts = aggregates.verdict_counts(log)
    assert counts.rows() == [("no_answer", 7, 700), ("correct", 5, 50), ("aborted", 2, 3)]


@given(label_rows())
def test_a_surprise_is_an_outcome_that_the_value_before_the_last_step_makes_unlikely(rows: Rows) -> None:
    _, chains = tables(rows)
    found = aggregates.unlikely_outcomes(chains)
    known = [(row["outcome"], row["p_outcome"]) for row in rows if row["p_outcome"] is not None]
    assert found.chains == len(known)
    assert found.right == sum(outcome and chance < aggregates.UNLIKELY for outcome, chance in known)
    assert found.wrong == sum(not outcome and chance < aggregates.UNLIKELY for outcome, chance in known)
