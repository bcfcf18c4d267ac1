"""Hostile steps get an answer in bounded time, and nothing of them is executed."""

import ast
import builtins
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.verifiers.base import StepVerdict
from tests.verifiers.hostile import HOSTILE, LONG
from tests.verifiers.steps import ASKED, finding

SECONDS = 5.0
"""Of the processor, on a machine that is busy. A step takes a tenth of it where nothing else runs."""


@pytest.mark.parametrize("step", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ASKED)
def test_a_hostile_step_is_answered(name: str, step: str) -> None:
    began = time.process_time()
    found = finding(name, step, problem=step, earlier=(step,))
    assert time.process_time() - began < SECONDS
    assert found.verdict is not StepVerdict.REFUTED, found


@pytest.mark.parametrize("name", ASKED)
def test_a_step_of_100_kb_is_unknown_at_once(name: str) -> None:
    began = time.process_time()
    for step in ("1 + 1 = 3 " * 10_000, "9" * 100_000 + " = 1", "(" * 100_000 + " = 1", "2^" * 50_000 + "2 = 1"):
        assert finding(name, step).verdict is StepVerdict.UNKNOWN
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("name", ASKED)
def test_twice_the_text_takes_about_twice_the_time(name: str) -> None:
    for piece in ("1 + 1 = 2 and ", "(1 + 2) * 3 = 9, so ", "word "):
        times = []
        for length in (LONG // 8, LONG // 2):
            step = piece * (length // len(piece)) + "= 1"
            # The least of some tries: other work on the machine makes some of them slow.
            times.append(min(_seconds(name, step) for _ in range(5)))
        assert times[1] < 12 * times[0] + 0.05, piece


def _seconds(name: str, step: str) -> float:
    began = time.process_time()
    finding(name, step)
    return time.process_time() - began


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
