"""A gold of a code problem -> its test suite. Golds are read, never run, here.

| gold | suite |
|---|---|
| Python source with `assert`s | `Assertions`, run after the program (MBPP) |
| JSON list of such texts, or `{"test_list": [...], "test_setup_code": ...}` | the same, joined (MBPP) |
| JSON `{"test": ..., "entry_point": ..., "prompt": ...}`; `prompt` may be missing | `Assertions` (HumanEval) |
| JSON `{"inputs": [...], "outputs": [...]}`, or a list of `{"input", "output"}` | `Streams`: standard input and output |
| JSON `{"inputs": [...], "outputs": [...], "fn_name": ...}` | `Calls` of that function or method (APPS, TACO) |

Not covered: whether Python source is Python; that is looked at in the child, since its parser can crash on hostile text.
"""

import json
from dataclasses import dataclass
from typing import Any

MAX_GOLD_CHARS = 32_000_000
MAX_TESTS = 2_000
"""A suite of more tests is over the limit."""

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
"""What sites with call-based tests import for every solution, so that their solutions do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertions:
    """Test source that runs beside a program. With an `entry_point`, `check(entry point)` is called behind it."""

    source: str
    entry_point: str | None = None
    prelude: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One test of a program that reads standard input and writes standard output."""

    given: str
    wanted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    tests: tuple[Stream, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One test of a function: plain arguments, and the plain value wanted."""

    arguments: tuple[Any, ...]
    wanted: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    function: str
    tests: tuple[Call, ...]
    prelude: str = LEETCODE_PRELUDE


Suite = Assertions | Streams | Calls


class UnreadableSuiteError(Exception):
    """The gold is not in one of the formats, or holds no test."""


class OversizedSuiteError(Exception):
    """The gold is over `MAX_GOLD_CHARS` or `MAX_TESTS`."""


def read_suite(gold: str) -> Suite:
    """The suite that a gold states. Raises UnreadableSuiteError or OversizedSuiteError, and nothing else."""
    if len(gold) > MAX_GOLD_CHARS:
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
    """The JSON object or list that a gold is, None where it is neither."""
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
        return Streams(tests=tuple(_stream(item["input"], item["output"]) for item in value))
    if "test" in value:
        prompt = value.get("prompt") or ""
        return Assertions(source=_text(value["test"]), entry_point=_name(value["entry_point"]), prelude=_text(prompt))
    if "test_list" in value:
        setup = value.get("test_setup_code") or "\n".join(value.get("test_imports") or [])
        return Assertions(source="\n".join([_text(setup), *map(_text, value["test_list"])]))
    pairs = list(zip(value["inputs"], value["outputs"], strict=True))
    if value.get("fn_name"):
        return Calls(function=_name(value["fn_name"]), tests=tuple(_call(given, wanted) for given, wanted in pairs))
    return Streams(tests=tuple(_stream(given, wanted) for given, wanted in pairs))


def _stream(given: Any, wanted: Any) -> Stream:
    return Stream(given=_lines(given), wanted=_lines(wanted))


def _lines(value: Any) -> str:
    """TACO writes some streams as a list of lines."""
    return "\n".join(map(_text, value)) if isinstance(value, list) else _text(value)


def _call(given: Any, wanted: Any) -> Call:
    """LiveCodeBench writes the arguments as lines of JSON and the value as JSON text, the others write them as they are."""
    if isinstance(given, str):
        return Call(arguments=tuple(map(json.loads, given.splitlines())), wanted=json.loads(_text(wanted)))
    if not isinstance(given, list):
        raise TypeError
    return Call(arguments=tuple(given), wanted=wanted)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _name(value: Any) -> str:
    """A function's name; APPS writes some behind the name of their class."""
    name = _text(value).rpartition(".")[2]
    if not name.isidentifier():
        raise ValueError
    return name
