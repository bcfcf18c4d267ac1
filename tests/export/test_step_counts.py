"""An export says why its counts are not those of the run: steps and chains that it leaves out, and ends that the run counts
apart."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.export.result import CARD, result_lines
from pipeline.export.settings import UncertainSteps
from tests.export.rows import exported
from tests.runtime.adaptive import settings, sums
from tests.runtime.in_process import label_in_process


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    asked = ["estimator=fixed", "sampling.rollouts=4", "estimator.rule=posterior", "estimator.certainty=0.9"]
    label_in_process(settings(folder, sums(20, chains=4), *asked))
    return folder / "run"


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"after_error": True},
        {"uncertain": UncertainSteps.cut},
        {"uncertain": UncertainSteps.merge, "after_error": True},
        {"uncertain": UncertainSteps.drop},
        {"layout": "qwen", "min_p_outcome": 0.3},
        {"layout": "qwen", "validation": 0.3},
        {"layout": "parquet"},
    ],
    ids=str,
)
def test_every_step_of_the_run_is_written_or_accounted_for(
    asked: dict[str, Any], run_dir: Path, tmp_path: Path
) -> None:
    found = exported(run_dir, tmp_path / "out", **asked)
    counts = found.step_counts
    labels = pl.read_parquet(run_dir / "labels" / "*.parquet")
    assert counts.total + found.steps_left_out == found.steps == labels["steps"].list.len().sum()
    assert counts.written == sum(file.labels.total for file in found.files.values())
    assert 0 < counts.ends <= sum(file.rows for file in found.files.values())
    assert (found.steps_left_out > 0) == bool(found.left_out)
    text = "\n".join(result_lines(found))
    for number in (counts.after_error, counts.merged, found.steps_left_out):
        assert not number or f"+ {number:,} " in text
    assert f"{counts.ends:,} of those written are last steps of chains" in text
    assert "of those written are last steps of chains" in (tmp_path / "out" / CARD).read_text()


def test_the_reason_stands_beside_its_number(run_dir: Path, tmp_path: Path) -> None:
    lines = list(result_lines(exported(run_dir, tmp_path / "a", uncertain=UncertainSteps.merge)))
    (steps,) = [line for line in lines if line.startswith("steps ")]
    assert "after the first bad step of their chain (after_error=true writes them)" in steps
    assert "without a target, cut or merged into the next step" in steps
    whole = list(result_lines(exported(run_dir, tmp_path / "b", "parquet")))
    assert any(line.startswith("steps ") and line.endswith("in the run, all written") for line in whole)


def test_rows_that_are_no_chains_have_no_such_line(run_dir: Path, tmp_path: Path) -> None:
    lines = list(result_lines(exported(run_dir, tmp_path / "out", "preference", threshold=0.5)))
    assert not [line for line in lines if line.startswith("steps ")]
