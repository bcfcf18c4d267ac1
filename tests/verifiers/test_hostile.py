"""Hostile steps get an answer in bounded time, and nothing of them is executed."""

import ast
import builtins
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline.verifiers.base import StepVerdict
from tests.deadlines import bounded, calls_of
from tests.verifiers.hostile import HOSTILE, LONG
from tests.verifiers.steps import ASKED, finding

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("step", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ASKED)
def test_a_hostile_step_is_answered(name: str, step: str) -> None:
    with bounded():
        found = finding(name, step, problem=step, earlier=(step,))
    assert found.verdict is not StepVerdict.REFUTED, found


@pytest.mark.parametrize("name", ASKED)
def test_a_step_of_100_kb_is_unknown_at_once(name: str) -> None:
    with bounded():
        for step in ("1 + 1 = 3 " * 10_000, "9" * 100_000 + " = 1", "(" * 100_000 + " = 1", "2^" * 50_000 + "2 = 1"):
            assert finding(name, step).verdict is StepVerdict.UNKNOWN


@pytest.mark.parametrize("name", ASKED)
def test_four_times_the_text_makes_about_four_times_the_calls(name: str) -> None:
    for piece in ("1 + 1 = 2 and ", "(1 + 2) * 3 = 9, so ", "word "):
        few, many = (
            calls_of(partial(finding, name, piece * (length // len(piece)) + "= 1"))
            for length in (LONG // 8, LONG // 2)
        )
        assert many < 5 * few, piece


def test_nothing_is_evaluated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parsed: Any = compile

    def refuse(*given: Any, flags: int = 0, **named: Any) -> Any:
        if flags & ast.PyCF_ONLY_AST:
            return parsed(*given, flags=flags, **named)
        raise AssertionError("text was evaluated")

    monkeypatch.chdir(tmp_path)
    step = "__import__('os').system('touch canary') = 1, exec('1') = 2, 2x + 3 = 7, so x = 2, and 1 + 1 = 2"
    before = [finding(name, step) for name in ASKED]
    with monkeypatch.context() as patched:
        for function in ("eval", "exec", "compile"):
            patched.setattr(builtins, function, refuse)
        found = [finding(name, step) for name in ASKED]
    assert found == before
    assert [each.verdict for each in found[:2]] == [StepVerdict.HOLDS, StepVerdict.HOLDS]
    assert {each.verdict for each in found[2:]} == {StepVerdict.UNKNOWN}
    assert not list(tmp_path.iterdir())
