"""Programs are found in outputs as people write them; examples of use in texts, and values that are nearly right."""

import doctest
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graders.code.cells import near, near_texts
from pipeline.graders.code.examples import examples_in
from pipeline.graders.code.program import BLOCK_END, blocks, program_in

ADD = "def add(a, b):\n    return a + b"
HOSTILE = ["```\n", "```py\na\n```\n", "for x in", " ", "~", "def f(\n", "@a.", "[DONE]\n", "A: b "]
FENCE_LINE = re.compile(r"[ \t]*(`{3,}|~{3,})")
lines = st.text(st.characters(exclude_characters="\n"), max_size=30).filter(lambda line: not FENCE_LINE.match(line))
programs = st.lists(lines, min_size=1, max_size=8).map("\n".join).filter(str.strip)


@pytest.mark.parametrize(
    ("output", "program"),
    [
        (f"```py\nfirst = 1\n```\n```Python\n{ADD}\n```", f"first = 1{BLOCK_END}{ADD}"),
        (f"```python\n{ADD}\n```\nIt prints\n```text\n3\n```", ADD),
        (f"```c\nint x;\n```\n~~~\n{ADD}\n~~~", ADD),
        (f"1. do it:\n   ```python\n   {ADD.replace(chr(10), chr(10) + '   ')}\n   ```", ADD),
        (f"````python\n{ADD}\n```\n````", f"{ADD}\n```"),
        (f"```python\r\n{ADD}\r\n```\r\n", f"{ADD}\r"),
        ("I do not know.", None),
        ("The answer is \\boxed{3}", None),
        ("```python\n\n```", None),
        ("", None),
    ],
)
def test_the_program_of_an_output(output: str, program: str | None) -> None:
    assert program_in(output) == program


def test_an_output_cut_short_counts_only_where_its_block_is_closed() -> None:
    assert program_in(f"```python\n{ADD}\n```\nSo", complete=False) == ADD
    assert program_in(f"```python\nx = 1\n```\nBetter:\n```python\n{ADD}", complete=False) == "x = 1"
    assert program_in(f"```python\n{ADD}", complete=False) is None
    assert program_in(ADD, complete=False) is None


@given(programs, st.sampled_from(["python", "py", "Python3", ""]), st.sampled_from(["```", "~~~~"]), lines, lines)
def test_a_fenced_program_comes_back_unchanged(program: str, tag: str, fence: str, before: str, after: str) -> None:
    output = f"{before}\n{fence}{tag}\n{program}\n{fence}\n{after}"
    assert program_in(output) == program
    assert program_in(output, complete=False) == program
    assert [closed for *_, closed in blocks(output)] == [True]


@given(st.text(alphabet=st.sampled_from([*"`~ \t\r\npython#d=(\x00\ud800é"]), max_size=200), st.booleans())
def test_any_text_is_read(output: str, complete: bool) -> None:
    program = program_in(output, complete=complete)
    assert program is None or program.strip()


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_texts_are_read_in_linear_time(shape: str) -> None:
    began = time.process_time()
    for text in (shape * (10**6 // len(shape)), "```" + shape * (10**6 // len(shape)) + "`"):
        program_in(text)
    assert time.process_time() - began < 10


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)  # fmt: skip
LINES = st.lists(
    st.sampled_from([">>> f(2)", "4", "... + 1", "    >>> g()", "", "text", '    """', "```", "'a'"]), max_size=12
)


def test_an_output_ends_where_a_docstring_does() -> None:
    text = 'def f():\n    """Do.\n\n    >>> f(1)\n    2\n    >>> f(\n    ...   2)\n    [1,\n     2]"""\n    return 3\n'
    found = [(each.source, each.wanted) for each in examples_in(text)]
    assert found == [("f(1)", "2"), ("f(\n  2)", "[1,\n 2]")]
    fenced = "```\n>>> f(1)\n2\n```\nThat is all."
    assert [each.wanted for each in examples_in(fenced)] == ["2"]
    (raising,) = examples_in(">>> f()\nTraceback (most recent call last):\n  ...\nValueError: bad\n")
    assert raising.exception == "ValueError"


@given(LINES)
def test_doctest_finds_the_same_examples(lines: list[str]) -> None:
    text = "\n".join(line for line in lines if '"""' not in line and "```" not in line)
    try:
        expected = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return
    found = list(examples_in(text))
    assert [each.source for each in found] == [each.source.removesuffix("\n") for each in expected]
    assert ["".join(each.wanted.split()) for each in found] == ["".join(each.want.split()) for each in expected]


@given(st.text(max_size=200))
def test_any_text_may_hold_examples(text: str) -> None:
    assert all(each.source is not None for each in examples_in(text))


@given(PLAIN)
def test_a_value_is_near_itself(value: Any) -> None:
    assert near(value, value)
    assert near_texts(repr(value), repr(value))


@pytest.mark.parametrize(
    ("value", "wanted", "is_near"),
    [
        (3, 4, False), (3.0, 3, True), (3.1416, 3.14159, True), (3.5, 3.14, False), (True, 1, True), (True, 2, False),
        ([1, 2], (1, 2), True), ([1, 2], [2, 1], False), ({"a": 1.0}, {"a": 1}, True), ("a b", "a  b", True),
        ("ab", "a b", False), (10**400, 1.5, False), ([1, [2.0]], [1, [2]], True), (None, 0, False), ("4", 4, False),
    ],
)  # fmt: skip
def test_near_values(value: Any, wanted: Any, is_near: bool) -> None:
    assert near(value, wanted) is is_near
