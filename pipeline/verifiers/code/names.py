"""Which definitions of a program a piece of it reaches, by the names that are written in it. Pure.

Not covered: names that are made while a program runs.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipeline.graders.code.composition import DEFINITIONS, FUNCTIONS, names_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A name that a cell defines. `step`: its number from 1, 0 for the problem. `uses`: names in it. `is_fixed`: a function or
    class, which does not change while a program runs."""

    name: str
    step: int
    uses: frozenset[str]
    is_stub: bool
    is_fixed: bool


def definitions(trees: Sequence[ast.Module | None]) -> Mapping[str, Definition]:
    """What a program defines at its top level, by name, as it is at the end. `trees`: of the problem and the steps."""
    found: dict[str, Definition] = {}
    for step, tree in enumerate(trees):
        if tree is not None:
            found.update(_definitions(tree, step))
    return found


@lru_cache(maxsize=4096)
def _definitions(tree: ast.Module, step: int) -> Mapping[str, Definition]:
    found: dict[str, Definition] = {}
    for node in tree.body:
        uses = names_in(node)
        for name in _defined(node):
            stub = isinstance(node, FUNCTIONS) and all(map(_does_nothing, node.body))
            fixed = isinstance(node, DEFINITIONS)
            found[name] = Definition(name=name, step=step, uses=uses, is_stub=stub, is_fixed=fixed)
    return found


def reached(names: Iterable[str], defined: Mapping[str, Definition]) -> dict[str, Definition]:
    """The definitions that these names need, directly or not."""
    found: dict[str, Definition] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in defined and name not in found:
            found[name] = defined[name]
            waiting.extend(defined[name].uses)
    return found


def statement_at(tree: ast.Module, line: int) -> ast.stmt | None:
    """The statement of the top level that a line belongs to."""
    return next((node for node in tree.body if node.lineno <= line <= (node.end_lineno or node.lineno)), None)


def _does_nothing(node: ast.stmt) -> bool:
    """Whether a statement stands for a body that is yet to come: a docstring, `pass`, `...` or `raise NotImplementedError`."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
    return False


def _defined(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of the top level defines. An import defines none."""
    if isinstance(node, DEFINITIONS):
        yield node.name
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, DEFINITIONS):
            yield part.name
