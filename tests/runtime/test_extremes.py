"""Extreme input and settings, for every estimator: each chain gets its labels, and the invariants hold."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pipeline.core.progress import Summary
from pipeline.core.records import Completion, Grade, Problem, Verdict
from pipeline.engines import oracle
from pipeline.estimators.registry import ESTIMATORS
from pipeline.runtime import labelling
from pipeline.runtime.async_grader import AsyncGrader
from tests.runtime.adaptive import labels, log, long_chain, proved, settings, sums
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

NAMES = list(ESTIMATORS.ours)
ONE_STEP = {"id": "one", "problem": "What is 1?", "answer": "1", "steps": ["The answer is 1."]}
OPEN_STEP = {"id": "open", "problem": "What is 2?", "answer": "2", "steps": ["Let me see."]}
LONG = 500
TIMEOUT = Grade(verdict=Verdict.TIMEOUT, answer="", ms=1.0)

every_estimator = pytest.mark.parametrize("name", NAMES)


def pairs(*kinds: object) -> list[object]:
    """Estimators with kinds of input: `make test` takes each of both at least once, `make nightly` all pairs."""
    fewer = min(len(kinds), len(NAMES))
    return [
        pytest.param(name, kind, marks=() if turn % fewer == at % fewer else pytest.mark.nightly)
        for at, kind in enumerate(kinds)
        for turn, name in enumerate(NAMES)
    ]


def labelled(folder: Path, rows: list[dict[str, Any]], *overrides: str) -> Summary:
    summary = label_in_process(settings(folder, rows, *overrides))
    assert labels(folder).height == len(rows)
    proved(folder)
    assert label_in_process(settings(folder, rows, *overrides)).units_done_now == 0
    return summary


@every_estimator
def test_chains_of_one_step(tmp_path: Path, name: str) -> None:
    labelled(tmp_path, [ONE_STEP, OPEN_STEP], f"estimator={name}")
    found = {row["source_id"]: row for row in labels(tmp_path).to_dicts()}
    assert found["one"]["origin"] == ["terminal"]
    assert found["one"]["label"] == [1]
    assert found["open"]["outcome"] is None


@every_estimator
def test_chains_of_500_steps(tmp_path: Path, name: str) -> None:
    budget = ["estimator.budget=40", "estimator.budget_unit=rollouts"] if name == "pooled" else []
    few = ("sampling.rollouts=1", "data.max_steps=500", *budget)
    labelled(tmp_path, [long_chain(LONG)], f"estimator={name}", *few)
    (row,) = labels(tmp_path).to_dicts()
    assert len(row["label"]) == len(row["value"]) == LONG
    if name == "pooled":
        assert len(log(tmp_path)) == 40
    if name == "bisect":
        assert len(log(tmp_path)) <= 10


@every_estimator
def test_one_rollout_for_each_prefix(tmp_path: Path, name: str) -> None:
    summary = labelled(tmp_path, sums(2), f"estimator={name}", "sampling.rollouts=1")
    assert summary.totals.rollouts <= summary.totals.prefixes


def test_a_target_that_its_budget_cannot_meet_leaves_chains_uncertain(tmp_path: Path) -> None:
    summary = labelled(tmp_path, sums(3), "estimator=pooled", "estimator.target_sd=0.001")
    assert summary.totals.spent == summary.totals.chains == 6
    assert labels(tmp_path)["value_sd"].explode().null_count() == 0


@pytest.mark.parametrize(("name", "value"), pairs(0.0, 1.0))
def test_policies_that_are_always_wrong_or_always_right(tmp_path: Path, name: str, value: float) -> None:
    with patch.object(oracle, "true_value", lambda *_: value):
        labelled(tmp_path, sums(3), f"estimator={name}", "sampling.rollouts=8")
    verdicts = {verdict for _, verdict, _ in log(tmp_path).values()}
    assert verdicts == {"correct" if value else "incorrect"}
    for row in labels(tmp_path).to_dicts():
        measured = [label for label, origin in zip(row["label"], row["origin"], strict=True) if origin == "measured"]
        taken_to_be_right = name == "bisect" and row["outcome"]
        assert set(measured) <= {1 if taken_to_be_right else int(value), None}
        assert all(mean is None or abs(mean - value) < 0.35 for mean in row["value"][:-1])


@pytest.mark.parametrize(("name", "every"), pairs(2, 1))
def test_graders_that_run_out_of_time(tmp_path: Path, name: str, every: int) -> None:
    """On every second rollout of a prefix, or on all."""

    class LateGrader(AsyncGrader):
        def at_once(self, problem: Problem, completion: Completion, stem: str) -> Grade | None:
            late = completion.request.issue_index % every == 0
            return TIMEOUT if late else super().at_once(problem, completion, stem)

    with patch.object(labelling, "AsyncGrader", LateGrader):
        summary = labelled(tmp_path, sums(3), f"estimator={name}", "sampling.rollouts=8")
    totals = summary.totals
    assert totals.ungraded > 0
    assert (totals.ungraded == totals.rollouts) is (every == 1)
    if every == 1:
        measured = [row for row in labels(tmp_path).to_dicts() if row["outcome"] is not None]
        assert all(value is None for row in measured for value in row["unbiased_value"][:-1])
