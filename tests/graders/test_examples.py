"""Examples of use in texts, and values that are nearly right."""

import doctest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graders.code.cells import near, near_texts
from pipeline.graders.code.examples import examples_in

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
def test_any_text_is_read(text: str) -> None:
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
