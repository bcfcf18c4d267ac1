"""Hostile programs: none holds as a whole, blames another step, leaves something behind, or does not end."""

import os
from pathlib import Path

import pytest

from pipeline.verifiers.base import Covers, StepInContext, StepVerdict
from pipeline.verifiers.code.outside import outside
from pipeline.verifiers.code.verifier import Code
from pipeline.verifiers.programs import tree_of
from pipeline.verifiers.settings import CodeConfig
from tests.verifiers.programs.generated import fenced
from tests.verifiers.programs.hostile import ATTACKS, FILE, after_sabotage, attack

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def code() -> Code:
    return Code(CodeConfig(cpu_seconds=0.5, wall_seconds=3.0))


@pytest.mark.parametrize("kind", ATTACKS)
def test_no_attack_holds_as_a_whole(code: Code, kind: str) -> None:
    found = code.verify(attack(kind, "unique"))
    assert (found.verdict, found.covers) != (StepVerdict.HOLDS, Covers.WHOLE), found
    assert not Path("/tmp", FILE).exists()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ATTACKS)
def test_the_sandbox_alone_stops_them_too(code: Code, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that reach outside are not run. Where they were, none would hold as a whole."""
    step = attack(kind, "unique")
    if not outside(tree_of(step.step.removeprefix("```python\n").removesuffix("\n```"))):
        return
    monkeypatch.setattr("pipeline.verifiers.code.verifier.outside", lambda _: "")
    found = code.verify(step)
    assert (found.verdict, found.covers) != (StepVerdict.HOLDS, Covers.WHOLE), found
    assert not Path("/tmp", FILE).exists()


def test_no_step_is_refuted_for_the_sabotage_of_another(code: Code) -> None:
    for kind, step in after_sabotage().items():
        assert code.verify(step).verdict is not StepVerdict.REFUTED, kind


def test_a_program_that_does_not_end_is_unknown_in_time(code: Code) -> None:
    for source in (
        "while True:\n    pass",
        "x = 9 ** 9 ** 9",
        "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f():\n    f()\nf()",
    ):
        found = code.verify(StepInContext(problem="", earlier=(), step=fenced(source)))
        assert found.verdict is StepVerdict.UNKNOWN, found


@pytest.mark.parametrize(
    "source",
    [
        "-" * 15_000 + "1", "(" * 5_000 + ")" * 5_000, "x = " + "1 + " * 4_000 + "1", "x" + ".a" * 7_000,
        "def f(): pass\n" + "[" * 99 + "]" * 99,
    ],
    ids=["signs", "brackets", "a sum", "attributes", "lists"],
)  # fmt: skip
def test_deep_programs_are_answered(code: Code, source: str) -> None:
    found = code.verify(StepInContext(problem=fenced(source), earlier=(fenced(source),), step=fenced(source)))
    assert found.verdict is StepVerdict.UNKNOWN, found


def test_processes_end_with_the_verifier() -> None:
    verifier = Code(CodeConfig())
    verifier.verify(StepInContext(problem="", earlier=(), step=fenced("x = 1")))
    (child,) = verifier._sandbox._pool.children
    process, folder = child.process, child._folder
    assert process is not None
    assert folder is not None
    assert os.path.isdir(folder)
    del verifier
    assert process.poll() is not None
    assert not os.path.exists(folder)
