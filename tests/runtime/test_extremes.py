"""Extreme input and settings, for every estimator: each chain gets its labels, and the invariants hold. What uses such a run,
reports, exports in every format and training, ends with a result, or with one line that says what is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pipeline.__main__ import main
from pipeline.core.progress import Summary
from pipeline.core.records import Completion, Grade, Problem, Verdict
from pipeline.engines import oracle
from pipeline.estimators.registry import ESTIMATORS
from pipeline.export.registry import EXPORTS
from pipeline.runtime import labelling
from pipeline.runtime.async_grader import AsyncGrader
from tests.export.known_runs import ungraded_run
from tests.runtime.adaptive import labels, log, long_chain, proved, settings, sums
from tests.runtime.in_process import label_in_process
from tests.tiny.policy import ASSET

pytestmark = pytest.mark.slow

NAMES = list(ESTIMATORS.ours)
ONE_STEP = {"id": "one", "problem": "What is 1?", "answer": "1", "steps": ["The answer is 1."]}
OPEN_STEP = {"id": "open", "problem": "What is 2?", "answer": "2", "steps": ["Let me see."]}
LONG = 500
TIMEOUT = Grade(verdict=Verdict.TIMEOUT, answer="", ms=1.0)
Printed = pytest.CaptureFixture[str]
Make = Callable[[Path, str], Path]


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


def _one_step(folder: Path, estimator: str) -> Path:
    labelled(folder, [ONE_STEP, OPEN_STEP], estimator)
    return folder / "run"


def _long(folder: Path, estimator: str) -> Path:
    budget = ["estimator.budget=40", "estimator.budget_unit=rollouts"] if estimator == "estimator=pooled" else []
    labelled(folder, [long_chain(LONG)], estimator, "sampling.rollouts=1", f"data.max_steps={LONG}", *budget)
    return folder / "run"


@every_estimator
def test_chains_of_one_step(tmp_path: Path, name: str) -> None:
    _one_step(tmp_path, f"estimator={name}")
    found = {row["source_id"]: row for row in labels(tmp_path).to_dicts()}
    assert found["one"]["origin"] == ["terminal"]
    assert found["one"]["label"] == [1]
    assert found["open"]["outcome"] is None


@every_estimator
def test_chains_of_500_steps(tmp_path: Path, name: str) -> None:
    _long(tmp_path, f"estimator={name}")
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


def _always(value: float) -> Make:
    def make(folder: Path, estimator: str) -> Path:
        with patch.object(oracle, "true_value", lambda *_: value):
            label_in_process(settings(folder, sums(3), estimator))
        return folder / "run"

    return make


RUNS: dict[str, Make] = {
    "all right": _always(1.0),
    "all wrong": _always(0.0),
    "ungraded": ungraded_run,
    "one step": _one_step,
    "500 steps": _long,
}


@pytest.mark.parametrize(("name", "kind"), pairs(*RUNS))
def test_what_uses_an_extreme_run_ends_with_a_result_or_a_line(
    name: str, kind: str, tmp_path: Path, capsys: Printed
) -> None:
    run_dir = RUNS[kind](tmp_path, f"estimator={name}")
    capsys.readouterr()

    def ended(*arguments: str) -> int:
        code = main([*arguments[:1], f"run_dir={run_dir}", *arguments[1:]])
        said = capsys.readouterr().err
        assert code == 0 or (code == 2 and said.startswith("stepvalue: ") and said.count("\n") == 1), said
        return code

    assert ended("report") == 0
    assert ended("export", "format=parquet", f"out={tmp_path / 'all'}") == 0
    for layout in EXPORTS.ours:
        ended("export", f"format={layout}", f"out={tmp_path / layout}")
        ended(
            "export", f"format={layout}", f"out={tmp_path / layout}-filtered", "min_p_outcome=0.1", "min_root_value=0.1"
        )
    small = [f"model={ASSET}", r"separator='\n'", "epochs=1", "layers=0", "validation=0"]
    # At night each kind of input has both, with one estimator or another.
    loss = ("soft", "hard")[NAMES.index(name) % 2]
    code = ended("train", *small, f"loss={loss}", f"out={tmp_path / loss}")
    # 15 of 500 steps fit into the model, and not every estimator labels one of these.
    assert code == 0 or kind == "500 steps"
