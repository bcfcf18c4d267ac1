"""Parses the gold of a code problem into a test suite, and finds the names that its source needs. Golds are never run here.

| gold | suite |
|---|---|
| Python source with `assert`s | `Assertions`, run after the program (MBPP) |
| JSON list of such texts, or `{"test_list": [...], "test_setup_code": ...}` | `Assertions`, joined (MBPP) |
| JSON `{"test": ..., "entry_point": ..., "prompt": ...}`; `prompt` may be missing | `Assertions` (HumanEval) |
| JSON `{"inputs": [...], "outputs": [...]}`, or a list of `{"input", "output"}` | `Streams`: standard input and output |
| JSON `{"inputs": [...], "outputs": [...], "fn_name": ...}` | `Calls` of that function or method (APPS, TACO) |

A child process parses source, because Python's parser can crash on hostile text. Not covered: scopes. A name that the tests
bind anywhere counts as bound everywhere.
"""

import ast
import builtins
import json
import sys
from dataclasses import dataclass
from typing import Any

from pipeline.core.json_size import has_too_many_values

MAX_GOLD_CHARS = 32_000_000
MAX_TESTS = 2_000
"""A suite with more tests is over the limit."""

LEETCODE_PRELUDE = """\
import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from typing import *
"""
"""The imports that sites with call-based tests add to every solution. Their solutions rely on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertions:
    """Test source that calls the functions of a program. If `entry_point` is set, `check(entry point)` is called after it."""

    source: str
    entry_point: str | None = None
    prelude: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Tests of a program that reads standard input and writes standard output: what is given, and what is wanted."""

    tests: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Tests of a function: plain arguments and the expected plain value."""

    function: str
    tests: tuple[tuple[tuple[Any, ...], Any], ...]
    prelude: str = LEETCODE_PRELUDE


Suite = Assertions | Streams | Calls


class UnreadableSuiteError(Exception):
    """The gold is in none of the formats, or contains no test."""


class OversizedSuiteError(Exception):
    """The gold exceeds `MAX_GOLD_CHARS`, `MAX_TESTS` or `json_size.MAX_VALUES`."""


def read_suite(gold: str) -> Suite:
    """The suite of a gold. Raises only UnreadableSuiteError and OversizedSuiteError."""
    if len(gold) > MAX_GOLD_CHARS or has_too_many_values(gold):
        raise OversizedSuiteError
    value = _json(gold)
    try:
        suite = Assertions(source=gold) if value is None else _suite(value)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UnreadableSuiteError from error
    if isinstance(suite, Assertions):
        if not suite.source.strip():
            raise UnreadableSuiteError
    elif not suite.tests:
        raise UnreadableSuiteError
    elif len(suite.tests) > MAX_TESTS:
        raise OversizedSuiteError
    return suite


def _json(gold: str) -> Any:
    """The gold as a JSON object or list, or None if it is neither."""
    if gold.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(gold)
    except (ValueError, RecursionError):
        return None


def _suite(value: Any) -> Suite:
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            return Assertions(source="\n".join(value))
        return Streams(tests=tuple((_lines(item["input"]), _lines(item["output"])) for item in value))
    if "test" in value:
        prompt = value.get("prompt") or ""
        return Assertions(source=_text(value["test"]), entry_point=_name(value["entry_point"]), prelude=_text(prompt))
    if "test_list" in value:
        setup = value.get("test_setup_code") or "\n".join(value.get("test_imports") or [])
        return Assertions(source="\n".join([_text(setup), *map(_text, value["test_list"])]))
    pairs = list(zip(value["inputs"], value["outputs"], strict=True))
    if value.get("fn_name"):
        return Calls(function=_name(value["fn_name"]), tests=tuple(_call(given, wanted) for given, wanted in pairs))
    return Streams(tests=tuple((_lines(given), _lines(wanted)) for given, wanted in pairs))


def _lines(value: Any) -> str:
    """A stream as one text. TACO writes some streams as a list of lines."""
    return "\n".join(map(_text, value)) if isinstance(value, list) else _text(value)


def _call(given: Any, wanted: Any) -> tuple[tuple[Any, ...], Any]:
    """Read one call. LiveCodeBench writes the arguments as lines of JSON and the value as JSON text, others as plain JSON."""
    if isinstance(given, str):
        return tuple(map(json.loads, given.splitlines())), json.loads(_text(wanted))
    if not isinstance(given, list):
        raise TypeError
    return tuple(given), wanted


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _name(value: Any) -> str:
    """The name of a function. APPS writes the name of the class before some of them."""
    name = _text(value).rpartition(".")[2]
    if not name.isidentifier():
        raise ValueError
    return name


def holds_tests(tree: ast.Module, *, entry_point: str | None) -> bool:
    """Whether source contains an assertion that runs: at the top level, or in functions that it or the caller calls."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    outside = [node for part in tree.body if not isinstance(part, definitions) for node in ast.walk(part)]
    runs = entry_point is not None or any(isinstance(node, ast.Assert | ast.Call) for node in outside)
    return runs and any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def names_used(tree: ast.Module) -> tuple[frozenset[str], frozenset[str]]:
    """The names that tests use but do not bind: names of the program, and standard modules that are not imported.

    A name of a standard module that occurs only as `name.attribute` is the module.

    If tests use only built-in names, the program defines one of these: MBPP has a function named `sum`.
    """
    loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    unbound = loaded - _bound(tree)
    free = unbound - set(dir(builtins)) or unbound
    owners = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    alone = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in owners}
    modules = frozenset(free & sys.stdlib_module_names) - alone
    return frozenset(free - modules), modules


def _bound(tree: ast.Module) -> set[str]:
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                bound.add(name)
            case ast.alias(name=name, asname=shown):
                bound.add(shown or name.partition(".")[0])
            case _ if isinstance(own := getattr(node, "name", None), str):  # of a definition, a handler or a pattern
                bound.add(own)
    return bound
