"""The tests that a problem states: assertions, in its blocks or as lines of its text, and examples of use. Pure."""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from pipeline.graders.code.examples import examples_in, literal
from pipeline.graders.code.suite import names_used
from pipeline.verifiers.code.outside import outside
from pipeline.verifiers.programs import tree_of

MOST_TESTS = 200
_ASSERTION = re.compile(r"^[ \t]*(?:[-*] +|\d+[.)] +)?`{0,3}(assert\b[^\n]*?)`{0,3}[ \t]*$", re.MULTILINE)
_EQUATION = re.compile(
    r"^[ \t]*(?:[-*>] +|\d+[.)] +)?`?(\w+\([^\n]*\))`?[ \t]*(?:==|=>|->|➞|→|# ?=>)[ \t]*`?([^\n`]+?)`?[.;]?[ \t]*$",
    re.MULTILINE,
)
"""A call and its value, as people write them: `f(2) == 4`, `f(2) -> 4`."""
_DOUBT = re.compile(
    r"\b(?:should|must|will|expected to|does) (?:not )?(?:fail|raise|break)|"
    r"\b(?:wrong|failing|incorrect|broken) (?:tests?|assert)|"
    r"\bnot (?:pass|hold)|"
    r"\b(?:current|actual|wrong|incorrect|unexpected) (?:output|result|behaviou?r|value|answer)",
    re.IGNORECASE,
)
_TRIVIAL = frozenset({"0", "1", "2", "10", "None", "True", "False", "Ellipsis"})
MOST_WORDS = 10_000
"""Characters of a constant that are looked at."""


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
    words: frozenset[str]
    """The words and numbers in arguments and expected values that tell something."""

    def written_in(self, tree: ast.AST) -> str:
        """How much of the tests a program writes out, in words. Empty: little. A table of results passes tests, too."""
        written = self.words & _words_of(tree, working=True)
        many = len(written) > 1 and 2 * len(written) >= len(self.words)
        return f"it writes out {len(written)} of {len(self.words)} words and numbers of the tests" if many else ""


@lru_cache(maxsize=64)
def stated_tests(problem: str) -> StatedTests | None:
    """The tests of a problem. None if there are none, or if its words make them doubtful, or one says two things."""
    if _DOUBT.search(problem):
        return None
    cases = [case for case in dict.fromkeys(_cases(problem)) if _is_usable(case)][:MOST_TESTS]
    is_doubled = len({case.source for case in cases}) < len(cases)
    if is_doubled or not any(case.wanted or case.wanted is None for case in cases):
        return None
    trees = [tree_of(case.source) for case in cases]
    names, _ = names_used(ast.Module([node for tree in trees for node in tree.body], []))
    words = {word for tree in trees for word in _words_of(tree)}
    words |= {word for case in cases for word in _words_in(case.wanted or "")}
    return StatedTests(cases=tuple(cases), names=names, words=frozenset(words)) if names else None


def _cases(problem: str) -> Iterator[Case]:
    for example in examples_in(problem):
        raises = example.exception
        yield Case(example.source, "" if raises is not None else example.wanted, raises)
    for match in _ASSERTION.finditer(problem):
        yield Case(match[1])
    for match in _EQUATION.finditer(problem):
        if _is_plain_call(match[1]) and literal(match[2]):
            yield Case(match[1], match[2])


def _is_plain_call(source: str) -> bool:
    """Whether a source calls a function with values that are written out."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        match ast.parse(source, mode="eval").body:
            case ast.Call(func=ast.Name(), args=args):
                return all(map(literal, args))
    return False


def _is_usable(case: Case) -> bool:
    with suppress(SyntaxError):
        tree = tree_of(case.source)
        return case.raises != "" and "..." not in case.source and bool(tree.body) and not outside(tree)
    return False


def _words_of(tree: ast.AST, *, working: bool = False) -> set[str]:
    """The words and numbers in constants of a program. `working`: not of docstrings and assertions: they may quote tests."""
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case ast.Constant(value=value):
                found |= _words_in(str(value)[:MOST_WORDS])
            case ast.Assert() | ast.Expr(value=ast.Constant()) if working:
                pass
            case node:
                waiting.extend(ast.iter_child_nodes(node))
    return found


def _words_in(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text) if word not in _TRIVIAL}
