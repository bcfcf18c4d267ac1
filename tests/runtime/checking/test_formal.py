"""Steps that are given formally, proved and refuted in the processes of `check`, with their limits of time and memory."""

from pathlib import Path

import pytest

from pipeline.config.check import CheckRunConfig
from pipeline.config.label import DataConfig
from tests.conftest import write_rows
from tests.runtime.checking.runs import QUICK, checked, frame

pytestmark = pytest.mark.slow

PROBLEM = "(declare-const ann Int) (declare-const bob Int)\n(assert (= ann (* 2 bob)))\n(assert (> bob 3))"
HARD = "(declare-const x Int)(declare-const y Int)(declare-const z Int)"
CUBES = "(assert (not (= (+ (* x x x) (* y y y) (* z z z)) 42)))"


def test_formal_steps_are_proved_and_refuted_within_limits(tmp_path: Path) -> None:
    pytest.importorskip("z3")
    rows: list[dict[str, object]] = [
        {"problem": PROBLEM, "answer": "8", "steps": ["(assert (>= ann 8))", "(assert (> ann 8))"], "id": "a"},
        {"problem": HARD, "answer": "8", "steps": [CUBES], "id": "b"},
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    checked(
        CheckRunConfig(
            run_dir=str(tmp_path / "run"), checks=["z3"], processes=1, run=QUICK, data=DataConfig(path=str(path))
        )
    )
    found = frame(tmp_path / "run", "z3").sort("chain_id", "step_index")
    said = {tuple(row) for row in found.select("verdict", "covers").rows()}
    assert said == {("holds", "whole"), ("refuted", "whole"), ("unknown", "part")}
    assert found.filter(found["verdict"] == "refuted")["evidence"].item().endswith("it is false where ann = 8, bob = 4")
    assert found["fault"].null_count() == found.height
