"""Steps that are given formally, proved and refuted in the processes of `check`, with their limits of time and memory."""

from pathlib import Path

import pytest

from tests.runtime.checking.runs import checked_rows

pytestmark = pytest.mark.slow

PROBLEM = "(declare-const ann Int) (declare-const bob Int)\n(assert (= ann (* 2 bob)))\n(assert (> bob 3))"
HARD = "(declare-const x Int)(declare-const y Int)(declare-const z Int)"
CUBES = "(assert (not (= (+ (* x x x) (* y y y) (* z z z)) 42)))"


def test_formal_steps_are_proved_and_refuted_within_limits(tmp_path: Path) -> None:
    pytest.importorskip("z3")
    problems = [(PROBLEM, ["(assert (>= ann 8))", "(assert (> ann 8))"]), (HARD, [CUBES])]
    found = checked_rows(tmp_path, problems, "z3")
    said = {tuple(row) for row in found.select("verdict", "covers").rows()}
    assert said == {("holds", "whole"), ("refuted", "whole"), ("unknown", "part")}
    assert found.filter(found["verdict"] == "refuted")["evidence"].item().endswith("it is false where ann = 8, bob = 4")
    assert found["fault"].null_count() == found.height
