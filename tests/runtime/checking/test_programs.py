"""Steps of Python and formal ones in the processes of `check`: what is found, what ends, and that nothing stays."""

from pathlib import Path

import psutil
import pytest

from tests.deadlines import until
from tests.runtime.checking.runs import checked_rows
from tests.verifiers.programs.generated import fenced

pytestmark = pytest.mark.slow

PROBLEM = "Write a function.\n" + "\n".join(f"assert square({n}) == {n * n}" for n in (3, -4, 7, 12))
RIGHT = fenced("def square(x: int) -> int:\n    return x * x")
WRONG = fenced("def square(x: int) -> int:\n    return x + x")
CALLED_WRONGLY = fenced("square('a')")


def _processes_with(folder: Path) -> list[int]:
    """Processes whose environment or arguments name a folder, without this one's own environment."""
    running = psutil.process_iter(["environ", "cmdline"])
    return [each.pid for each in running if str(folder) in str(each.info)]


def test_programs_are_run_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    chains = ([RIGHT, CALLED_WRONGLY], [WRONG, "So it is done."], [fenced("while True:\n    pass")])
    found = checked_rows(tmp_path, [(PROBLEM, steps) for steps in chains], "code")
    raised = "TypeError: can't multiply sequence by non-int of type 'str', at `return x * x`"
    assert set(found.select("verdict", "covers", "evidence").rows()) == {
        ("holds", "whole", "passes 4 tests of the problem"),
        ("unknown", "part", f"{raised}; but it is raised in the code of an earlier step"),
        ("refuted", "part", "the problem's test assert square(3) == 9 fails: square(3) is 6"),
        ("unknown", "part", ""),
        ("unknown", "part", "the program reaches a limit of processor time, threads or files"),
    }
    until(lambda: not [*folder.iterdir(), *_processes_with(folder)])


def test_formal_steps_are_proved_and_refuted_within_limits(tmp_path: Path) -> None:
    pytest.importorskip("z3")
    names = "(declare-const ann Int) (declare-const bob Int)"
    problem = f"{names}\n(assert (= ann (* 2 bob)))\n(assert (> bob 3))"
    hard = "(declare-const x Int)(declare-const y Int)(declare-const z Int)"
    cubes = "(assert (not (= (+ (* x x x) (* y y y) (* z z z)) 42)))"
    found = checked_rows(tmp_path, [(problem, ["(assert (>= ann 8))", "(assert (> ann 8))"]), (hard, [cubes])], "z3")
    said = {tuple(row) for row in found.select("verdict", "covers").rows()}
    assert said == {("holds", "whole"), ("refuted", "whole"), ("unknown", "part")}
    assert found.filter(found["verdict"] == "refuted")["evidence"].item().endswith("it is false where ann = 8, bob = 4")
    assert found["fault"].null_count() == found.height
