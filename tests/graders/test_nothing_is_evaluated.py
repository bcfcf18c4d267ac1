"""The checker at work in processes where every evaluation of text raises an error. See `mines/sitecustomize.py`."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
MINES = HERE / "mines" / "sitecustomize.py"
# Tests that grade model output. Tests of the checker of programs do not belong here, because it runs programs on purpose.
SUITE = ("test_compare.py", "test_extract.py", "test_golden.py", "test_hostile.py", "test_limits.py", "test_pool.py")
# Tests of how the checker's processes start, end and are lost. Other tests in this list grade the same texts.
ABOUT_PROCESSES = (
    "test_hostile.py::test_a_flood_outlives_its_processes",
    "test_pool.py::test_a_stopped_child_is_a_timeout",
    "test_pool.py::test_an_answer_whose_child_is_killed_is_graded_by_another",
    "test_pool.py::test_an_answer_of_which_two_children_die_is_a_crash",
    "test_pool.py::test_a_child_without_memory_costs_one_more_try",
    "test_pool.py::test_a_child_has_the_memory_limit_of_the_settings",
    "test_pool.py::test_closing_ends_the_children",
    "test_pool.py::test_nothing_symbolic_is_loaded_into_the_caller_and_a_child_ends_when_it_dies",
)
SECONDS = 280
# Every kind of case, and the children that some of them need.
CASES = f"""
import json, pathlib
from pipeline.graders.registry import checker_for
from tests.settings import grader_settings
cases = [json.loads(line) for line in pathlib.Path({str(HERE / "cases.jsonl")!r}).read_text().splitlines()]
with checker_for(grader_settings()) as checker:
    for case in cases:
        grade = checker.grade if case["extracts"] else checker.grade_answer
        verdict = grade((case["gold"],), case["prediction"]).verdict
        assert verdict == case["verdict"], (case, verdict)
"""

HARMLESS = (
    "sympy.factor(x**2 - 1)",
    "x == 'x'",
    "sympy.integrate(sympy.exp(-x**2), (x, 0, sympy.oo))",  # looks up constants of sympy's own
)
# The last ones are how the installed grammar reads numbers, and how sympy adds up a series.
EXPLOSIVE = (
    "sympy.sympify('1+1')",
    "sympy.sympify(['1'])",
    "sympy.S('1')",
    "sympy.simplify('x+x')",
    "sympy.N('2')",
    "sympy.Number('12')",
    "sympy.parsing.sympy_parser.parse_expr('1')",
    "sympy.parsing.latex.parse_latex('1')",
    "sympy.parsing.mathematica.parse_mathematica('1')",
    "sympy.lambdify(x, x + 1)",
    "sympy.nsimplify(sympy.sqrt(2) + 0.25)",
    "math_verify.parse('1/2')",
    "latex2sympy('12')",
    "sympy.Sum(1 / x**3 / 2**x, (x, 1, sympy.oo)).evalf(30)",
)
# The same ones in a process like the checker's.
DISARMED = {
    "evaluate_nothing()": "passed",
    "latex2sympy('12') + latex2sympy('1,000.5')": "passed",
    "latex2sympy(r'\\gcd(\\sqrt{2}, 0.5)')": "passed",
    "sympy.Sum(1 / x**3 / 2**x, (x, 1, sympy.oo)).evalf(20)": "passed",
    "sympy.S('x')": "SympifyError",
}
FATES = dict.fromkeys(HARMLESS, "passed") | dict.fromkeys(EXPLOSIVE, "EvaluatedError") | DISARMED
CONTROL = f"""
import math_verify, sympy, sympy.parsing.latex, sympy.parsing.mathematica, sympy.parsing.sympy_parser
from latex2sympy2_extended import latex2sympy
from pipeline.graders.math.child import evaluate_nothing
x = sympy.Symbol("x")
for line in {list(FATES)!r}:
    try:
        eval(line)
    except BaseException as error:
        print(type(error).__name__, line, sep="|")
    else:
        print("passed", line, sep="|")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minefield:
    """A folder for PYTHONPATH, and the notes that processes leave in it."""

    folder: Path

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)])}

    def explosions(self) -> str:
        notes = self.folder / "explosions.txt"
        return notes.read_text() if notes.exists() else ""

    def armed(self) -> str:
        return (self.folder / "armed.txt").read_text()


@pytest.fixture
def minefield(tmp_path: Path) -> Minefield:
    folder = tmp_path / "mines"
    folder.mkdir()
    shutil.copy(MINES, folder)
    return Minefield(folder=folder)


def test_the_mines_work(minefield: Minefield) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONTROL],
        env=minefield.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    fates = (line.split("|") for line in done.stdout.splitlines())
    assert {line: fate for fate, line in fates} == FATES
    assert len(minefield.explosions().splitlines()) == len(EXPLOSIVE)


def graded(minefield: Minefield, *words: str) -> str:
    """What a program says that grades texts, none of which is evaluated."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=minefield.environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert minefield.explosions() == ""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert any("-m pipeline.graders." in command for command in minefield.armed().splitlines())
    return done.stdout


def test_no_text_of_a_case_is_evaluated(minefield: Minefield) -> None:
    graded(minefield, "-c", CASES)


@pytest.mark.nightly
def test_no_text_is_evaluated_anywhere_in_the_checkers_tests(minefield: Minefield) -> None:
    left_out = [f"--deselect={HERE.relative_to(ROOT) / name}" for name in ABOUT_PROCESSES]
    said = graded(minefield, "-m", "pytest", "-p", "no:cacheprovider", *(str(HERE / name) for name in SUITE), *left_out)
    assert f"{len(ABOUT_PROCESSES)} deselected" in said
    assert any("-m pytest" in command for command in minefield.armed().splitlines())
