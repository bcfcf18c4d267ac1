"""The pure modules of `code`: blocks, names, and what lies outside a program."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graders.code.composition import names_in
from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.code.names import definitions, reached
from pipeline.verifiers.code.outside import MODULES, outside
from pipeline.verifiers.code.stated import stated_tests
from pipeline.verifiers.programs import NotProgram, program_of
from pipeline.verifiers.reading import NotRead, blocks_in
from tests.verifiers.programs.generated import fenced, known_steps

LINES = st.lists(
    st.sampled_from(["```python", "```", "```Py", "```text", "x = 1", "words", "  ```", "~~~", ""]), max_size=12
)
TEXTS = st.text(alphabet="`py\n x=(:)1#'\"def", max_size=120)


@given(LINES)
def test_blocks_and_words_are_all_of_a_text(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        found = blocks_in(text, {"python", "py"})
    except NotRead:
        return
    if found is not None:
        texts, words = found
        assert sum(len(part.split("\n")) if part else 0 for part in texts) <= len(lines)
        assert set("\n".join((*texts, words)).split()) <= set(text.split())
    else:
        assert not any(line.strip().lower() in ("```python", "```py") for line in lines[:1])


@given(TEXTS, TEXTS, TEXTS)
def test_any_step_is_read_or_refused(problem: str, earlier: str, step: str) -> None:
    stated_tests(problem)
    try:
        program = program_of(StepInContext(problem=problem, earlier=(earlier,), step=step))
    except NotProgram:
        return
    assert program is None or program.cell.source.strip()


def test_names_know_scopes() -> None:
    def of(source: str) -> set[str]:
        return set(names_in(ast.parse(source)))

    assert of("def f(a, b=c):\n    d = a + e\n    return [g for g in d if h(g)]") == {"c", "e", "h"}
    assert of("def f():\n    global x\n    x = x + 1") == {"x"}
    assert of("y = lambda n: n + m") == {"m"}
    assert of("class A:\n    def f(self):\n        return self.g(z)") == {"z"}


def test_definitions_are_the_last_ones() -> None:
    trees = [ast.parse(text) for text in ("def f(): pass", "def g(): return f()", "def f(): return k\nk = 1")]
    defined = definitions(trees)
    assert {name: each.step for name, each in defined.items()} == {"f": 2, "g": 1, "k": 2}
    assert set(reached({"g"}, defined)) == {"g", "f", "k"}
    assert definitions(trees[:2])["f"].is_stub


@pytest.mark.parametrize(
    "source",
    [
        "import random", "from os import path", "import numpy as np", "from . import x", "open('x')", "x = input()",
        "eval('1')", "print(__builtins__)", "().__class__.__bases__", "f.__globals__", "import sys\nsys.exit()",
        "getattr(x, '__cla' + 'ss__')",
        "getattr(x, '__class__')", "from datetime import datetime\ndatetime.now()", "hash('a')", "id(x)", "AssertionError = 1",
        "import importlib", "g.gi_frame", "from sys import exit", "import os.path", "x.f_back",
    ],
)  # fmt: skip
def test_what_lies_outside_is_seen(source: str) -> None:
    assert outside(ast.parse(source))


def test_usual_programs_lie_inside() -> None:
    for name in MODULES:
        assert not outside(ast.parse(f"import {name}"))
    assert not outside(
        ast.parse("import sys\nsys.setrecursionlimit(5)\ngetattr(x, 'name')\nif __name__ == '__main__': print(1)")
    )
    for known in known_steps(30, 2):
        program = program_of(known.step)
        assert program is not None
        assert not outside(program.cell.tree)


def test_tests_of_a_problem() -> None:
    problem = (
        "Tests:\nassert f(3) == 9\n1. `assert f(2) == 4`\nassert f(\n>>> f(5)\n25\n>>> print(f(1))\n1\n>>> open('x')\n"
    )
    tests = stated_tests(problem)
    assert tests is not None
    assert [(case.source, case.wanted) for case in tests.cases] == [
        ("f(5)", "25"), ("print(f(1))", "1"), ("assert f(3) == 9", None), ("assert f(2) == 4", None)
    ]  # fmt: skip
    assert tests.names == {"f"}
    assert stated_tests("Nothing here.") is None
    assert stated_tests("assert 1 == 1") is None
    assert stated_tests("This test should fail: assert f(1) == 2\nassert f(1) == 2") is None
    assert tests.written_in(ast.parse("{3: 9, 5: 25, 4: 2}"))
    assert not tests.written_in(ast.parse("x * x + 3"))


def test_a_step_after_fences_is_no_cell_by_itself() -> None:
    step = StepInContext(problem="", earlier=(fenced("x = 1"),), step="import x")
    assert program_of(step) is None
