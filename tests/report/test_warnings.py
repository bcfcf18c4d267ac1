"""Warnings about labels, against runs whose truth is known."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.report.warnings import (
    LEAST_ROLLOUTS,
    LONG,
    repeated_texts,
    ungraded_rollouts,
    warning_lines,
    zeros_at_ends,
    zeros_of_unsolved,
)
from pipeline.estimators.target_places import LEAST_TARGETS
from pipeline.estimators.tree import Floats

CHAINS, STEPS = 150, 5


def run(lost_if_wrong: float, lost_if_right: float, seed: int = 0, rollouts: int = 8) -> tuple[pl.DataFrame, Floats]:
    """Prefixes with known values, whose rollouts are lost to the grader with these probabilities."""
    random = np.random.default_rng(seed)
    truth = random.random((CHAINS, STEPS))
    right = random.random((CHAINS, STEPS, rollouts)) < truth[:, :, None]
    lost = random.random(right.shape) < np.where(right, lost_if_right, lost_if_wrong)
    graded, correct = (~lost).sum(axis=2).ravel(), (right & ~lost).sum(axis=2).ravel()
    frame = pl.DataFrame(
        {
            "chain": np.repeat(np.arange(CHAINS), STEPS),
            "step": np.tile(np.arange(STEPS), CHAINS),
            "value": np.where(graded > 0, correct / np.maximum(graded, 1), 0.5),
            "n_correct": correct,
            "n_rollouts": graded,
            "n_ungraded": rollouts - graded,
            "counts": True,
            "label": None,
            "origin": "measured",
        },
        schema_overrides={"label": pl.Int8},
    )
    return frame, truth


@pytest.mark.parametrize(("kept", "tokens", "warned"), [(0.0, LONG, False), (0.5, LONG, True), (0.5, LONG - 1, False)])
def test_long_rollouts_that_a_server_repeats_are_marked(kept: float, tokens: int, warned: bool) -> None:
    """`kept`: the share of requests that a server answers from its cache, each prefix with its first answer."""
    random = np.random.default_rng(1)
    texts = [
        ("first" if random.random() < kept else f"{prefix} {rollout}") for prefix in range(50) for rollout in range(8)
    ]
    log = pl.DataFrame({"prefix_id": np.repeat(np.arange(50), 8).astype(str), "text": texts, "n_tokens": tokens})
    lines = list(warning_lines(run(0.0, 0.0)[0], repeated_texts(log)))
    assert [("cache of answers" in line) for line in lines] == [True] * warned


@pytest.mark.parametrize(("wrong", "right"), [(0.35, 0.05), (0.05, 0.35), (0.1, 0.0)])
def test_grading_that_depends_on_the_answer_is_detected_and_bounded(wrong: float, right: float) -> None:
    steps, truth = run(wrong, right)
    found = ungraded_rollouts(steps)
    assert found is not None
    assert found.depends_on_values
    assert (found.low > found.high) == (wrong > right)
    assert found.all_wrong - 0.02 <= truth.mean() <= found.all_right + 0.02
    assert abs(found.mean - truth.mean()) > 0.01
    (line,) = warning_lines(steps)
    assert "depends on its answer" in line


@pytest.mark.parametrize(("wrong", "right", "bounds"), [(1.0, 0.0, (0.56, 1.0)), (0.3, 0.3, (0.35, 0.65))])
def test_many_ungraded_rollouts_are_bounded_where_no_difference_shows(
    wrong: float, right: float, bounds: tuple[float, float]
) -> None:
    """Also if all wrong rollouts are ungraded, so that no value is low."""
    (line,) = warning_lines(run(wrong, right)[0].filter(pl.col("n_rollouts") > 0))
    assert "% if all of them were incorrect" in line
    low, high = (
        float(share) / 100 for share in re.findall(r"would be (\d+) %.* and (\d+) % if all were correct", line)[0]
    )
    assert (low, high) == pytest.approx(bounds, abs=0.05)


def test_grading_that_fails_by_chance_alone_is_rarely_reported() -> None:
    false_alarms = 0
    for seed in range(100):
        found = ungraded_rollouts(run(0.2, 0.2, seed)[0])
        assert found is not None
        false_alarms += found.depends_on_values
    assert false_alarms <= 10


def test_nothing_is_said_of_a_run_without_ungraded_rollouts_or_with_nothing_else() -> None:
    assert ungraded_rollouts(run(0.0, 0.0)[0]) is None
    assert ungraded_rollouts(run(1.0, 1.0)[0]) is None
    assert list(warning_lines(run(0.0, 0.0)[0])) == []


def test_a_run_without_any_graded_rollout_is_reported() -> None:
    (line,) = warning_lines(run(1.0, 1.0)[0])
    assert line.startswith(f"none of {CHAINS * STEPS * 8:,} rollouts could be graded")


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 3))
def test_labels_0_that_are_mostly_ends_are_reported(ends: int, inner: int, good: int) -> None:
    steps, _ = run(0.0, 0.0)
    labels = [0] * (ends + inner) + [1] * good
    origins = ["terminal"] * ends + ["measured"] * (inner + good)
    labelled = steps.head(len(labels)).with_columns(
        label=pl.Series(labels, dtype=pl.Int8), origin=pl.Series(origins, dtype=pl.String)
    )
    labelled = labelled.with_columns(step=pl.lit(1))
    assert zeros_at_ends(labelled) == (ends, ends + inner)
    alone = [line for line in warning_lines(labelled) if line.startswith("no chain has a step before its last one")]
    assert bool(alone) == (ends > 0 and not inner and not good)
    said = [line for line in warning_lines(labelled) if "only repeat the outcome" in line]
    assert bool(said) == (ends > inner and ends + inner >= LEAST_TARGETS and not alone)


@pytest.mark.parametrize(
    ("correct", "graded", "words"),
    [
        (5, LEAST_ROLLOUTS, "only 5 of 100 graded rollouts (5.0 %) are correct"),
        (6, LEAST_ROLLOUTS, ""),
        (LEAST_ROLLOUTS, LEAST_ROLLOUTS, "100 of 100 graded rollouts (100 %) are correct"),
        (94, LEAST_ROLLOUTS, ""),
        (0, LEAST_ROLLOUTS - 1, ""),
    ],
)
def test_a_policy_that_solves_nothing_or_everything_is_reported(correct: int, graded: int, words: str) -> None:
    steps = run(0.0, 0.0)[0].head(1).with_columns(n_correct=pl.lit(correct), n_rollouts=pl.lit(graded))
    said = list(warning_lines(steps))
    assert len(said) == bool(words)
    assert all(line.startswith(words) and "teach nothing about steps" in line for line in said)


@given(st.integers(0, 40), st.integers(0, 40))
def test_labels_0_of_problems_that_are_never_solved_are_reported(unsolved: int, others: int) -> None:
    roots = pl.DataFrame({"chain": [0, 1], "step": [0, 0], "value": [0.05, 0.6], "label": [None, None]})
    zeros = pl.DataFrame({"chain": [0] * unsolved + [1] * others, "step": 1, "value": 0.0, "label": 0})
    steps = pl.concat([roots, zeros], how="vertical_relaxed").with_columns(
        origin=pl.lit("measured"), counts=True, n_correct=4, n_rollouts=8, n_ungraded=0
    )
    assert zeros_of_unsolved(steps) == (unsolved, unsolved + others)
    said = [line for line in warning_lines(steps) if "cannot solve the problem" in line]
    assert bool(said) == (unsolved > others and unsolved + others >= LEAST_TARGETS)
