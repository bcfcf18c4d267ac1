"""The tests that a problem states: assertions, in its blocks or as lines of its text, and examples of use. Pure."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pipeline.graders.code.examples import examples_in
from pipeline.graders.code.suite import names_used
from pipeline.verifiers.code.outside import outside
from pipeline.verifiers.programs import tree_of

MOST_TESTS = 200
_ASSERTION = re.compile(r"^[ \t]*(?:[-*] +|\d+[.)] +)?`{0,3}(assert\b[^\n]*?)`{0,3}[ \t]*$", re.MULTILINE)
_DOUBT = re.compile(
    r"\b(?:should|must|will|expected to|does) (?:not )?(?:fail|raise|break)|"
    r"\b(?:wrong|failing|incorrect|broken) (?:tests?|assert)|"
    r"\bnot (?:pass|hold)",
    re.IGNORECASE,
)
_TRIVIAL: tuple[object, ...] = (None, True, False, 0, 1, -1, 2, "", (), [], {})


@dataclass(frozen=True, slots=True)
class Case:
    """A test. `wanted`: what an example prints, None for an assertion. `raises`: the exception that it is to raise."""

    source: str
    wanted: str | None = None
    raises: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTests:
    """The tests of a problem, and the names that they need of a program."""

    cases: tuple[Case, ...]
    names: frozenset[str]
    values: frozenset[str]
    """The expected values that are written out and tell something, as `repr` writes them."""


@lru_cache(maxsize=64)
def stated_tests(problem: str) -> StatedTests | None:
    """The tests of a problem. None if there are none, or if its words make them doubtful."""
    if _DOUBT.search(problem):
        return None
    cases = [case for case in dict.fromkeys(_cases(problem)) if _is_usable(case)][:MOST_TESTS]
    if not any(case.wanted or case.wanted is None for case in cases):
        return None
    trees = [tree_of(case.source) for case in cases]
    names = names_used(ast.Module([node for tree in trees for node in tree.body], []))
    values = {repr(value) for case, tree in zip(cases, trees, strict=True) for value in _values(case, tree)}
    return StatedTests(cases=tuple(cases), names=names.program, values=frozenset(values)) if names.program else None


def _cases(problem: str) -> Iterator[Case]:
    for example in examples_in(problem):
        raises = example.exception
        yield Case(example.source, "" if raises is not None else example.wanted, raises)
    for match in _ASSERTION.finditer(problem):
        yield Case(match[1])


def _is_usable(case: Case) -> bool:
    if case.raises == "":
        return False
    try:
        tree = tree_of(case.source)
    except SyntaxError:
        return False
    return bool(tree.body) and not outside(tree)


def _values(case: Case, tree: ast.Module) -> Iterator[object]:
    if case.wanted:
        yield from _literal(case.wanted)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
            for side in (node.test.left, *node.test.comparators):
                yield from _literal(side)


def _literal(node: str | ast.expr) -> Iterator[object]:
    try:
        value = ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return
    if not any(type(value) is type(trivial) and value == trivial for trivial in _TRIVIAL):
        yield value


def literals_in(tree: ast.AST) -> set[str]:
    """All values that a program writes out, as `repr` writes them."""
    return {repr(value) for node in ast.walk(tree) if isinstance(node, ast.expr) for value in _literal(node)}
