"""Golds in the common formats are parsed into suites. Everything else is rejected and never run."""

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graders.code.suite import (
    MAX_GOLD_CHARS,
    MAX_TESTS,
    Assertions,
    Calls,
    OversizedSuiteError,
    Streams,
    UnreadableSuiteError,
    holds_tests,
    names_used,
    read_suite,
)

texts = st.text(max_size=20)
plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("gold", "suite"),
    [
        ("assert f(1) == 2", Assertions(source="assert f(1) == 2")),
        (["assert f(1) == 2", "assert f(2) == 3"], Assertions(source="assert f(1) == 2\nassert f(2) == 3")),
        (
            {"test_list": ["assert f(1) == 2"], "test_setup_code": "import math"},
            Assertions(source="import math\nassert f(1) == 2"),
        ),
        ({"test_list": ["assert f()"], "test_imports": ["import math"]}, Assertions(source="import math\nassert f()")),
        (
            {
                "test": "def check(candidate):\n    assert candidate(1) == 2",
                "entry_point": "f",
                "prompt": "import math",
            },
            Assertions(
                source="def check(candidate):\n    assert candidate(1) == 2", entry_point="f", prelude="import math"
            ),
        ),
        ({"inputs": ["1\n", ["2", "3"]], "outputs": ["2\n", ["5"]]}, Streams(tests=(("1\n", "2\n"), ("2\n3", "5")))),
        ([{"input": "1", "output": "2", "testtype": "stdin"}], Streams(tests=(("1", "2"),))),
        (
            {"inputs": [[1, [2]]], "outputs": [3], "fn_name": "Solution.add"},
            Calls(function="add", tests=(((1, [2]), 3),)),
        ),
        (
            {"inputs": ["[1, 2]\n3"], "outputs": ["[4]"], "fn_name": "add"},
            Calls(function="add", tests=((([1, 2], 3), [4]),)),
        ),
    ],
)
def test_formats(gold: object, suite: object) -> None:
    assert read_suite(gold if isinstance(gold, str) else json.dumps(gold)) == suite


@pytest.mark.parametrize(
    "gold",
    [
        " ",
        "{}",
        "[]",
        "[1]",
        '{"inputs": [], "outputs": []}',
        '{"inputs": ["1"], "outputs": []}',
        '{"inputs": [1], "outputs": ["1"]}',
        '{"inputs": [1], "outputs": [1], "fn_name": "f"}',
        '{"inputs": [[1]], "outputs": [1], "fn_name": "f()"}',
        '{"inputs": ["{"], "outputs": ["1"], "fn_name": "f"}',
        '{"test": "assert True"}',
        '{"test_list": [3]}',
        '[{"input": "1"}]',
    ],
)
def test_what_is_no_suite_is_refused(gold: str) -> None:
    with pytest.raises(UnreadableSuiteError):
        read_suite(gold)


def test_suites_have_limits() -> None:
    many = ["1"] * MAX_TESTS
    suite = read_suite(json.dumps({"inputs": many, "outputs": many}))
    assert isinstance(suite, Streams)
    assert len(suite.tests) == MAX_TESTS
    with pytest.raises(OversizedSuiteError):
        read_suite(json.dumps({"inputs": [*many, "1"], "outputs": [*many, "1"]}))
    with pytest.raises(OversizedSuiteError):
        read_suite("#" * (MAX_GOLD_CHARS + 1))


@given(texts | plain.map(json.dumps))
def test_any_gold_is_read_or_refused(gold: str) -> None:
    try:
        suite = read_suite(gold)
    except UnreadableSuiteError:
        return
    assert isinstance(suite, Assertions) or suite.tests


@given(st.lists(st.tuples(st.lists(plain, max_size=3), plain), min_size=1, max_size=4))
def test_calls_keep_their_values(pairs: list[tuple[list[Any], Any]]) -> None:
    gold = {"inputs": [given for given, _ in pairs], "outputs": [wanted for _, wanted in pairs], "fn_name": "f"}
    suite = read_suite(json.dumps(gold))
    assert isinstance(suite, Calls)
    assert [(list(given), wanted) for given, wanted in suite.tests] == pairs


@pytest.mark.parametrize(
    ("source", "entry_point", "holds"),
    [
        ("assert f(1)", None, True),
        ("for i in [1]:\n    assert f(i)", None, True),
        ("def check(c):\n    assert c(1)\ncheck(f)", None, True),
        ("def check(c):\n    assert c(1)", "f", True),
        ("def check(c):\n    assert c(1)", None, False),
        ("def check(c):\n    pass", "f", False),
        ("f(1)", None, False),
    ],
)
def test_a_suite_must_assert_something(source: str, entry_point: str | None, holds: bool) -> None:
    assert holds_tests(ast.parse(source), entry_point=entry_point) is holds


@pytest.mark.parametrize(
    ("source", "program", "modules"),
    [
        ("assert f(len([1])) == g", {"f", "g"}, set()),
        ("import math\nassert math.isclose(f(), 1)", {"f"}, set()),
        ("assert math.isclose(f(), 1)", {"f"}, {"math"}),
        ("assert bisect([1], 2) == 1", {"bisect"}, set()),
        ("x = f()\nfor y in x:\n    assert y", {"f"}, set()),
        ("from a.b import c as d\nimport e.g\nassert d(e.g, f)", {"f"}, set()),
        ("def h(a, *b, **k):\n    return a, b, k\nassert h(f)", {"f"}, set()),
        ("try:\n    f()\nexcept ValueError as e:\n    assert str(e)", {"f"}, set()),
        ("assert sum(10, 15) == 6", {"sum"}, set()),
    ],
)
def test_names_that_tests_use(source: str, program: set[str], modules: set[str]) -> None:
    used, loaded = names_used(ast.parse(source))
    assert (set(used), set(loaded)) == (program, modules)
