"""Which definitions of a program a piece of it reaches, by the names that are written in it. Pure.

Not covered: names that are made while a program runs.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from symtable import SymbolTable, symtable

from pipeline.graders.code.composition import DEFINITIONS, FUNCTIONS, names_in

_GAPS = re.compile(r"Expr\(value=Constant\(value=Ellipsis|Raise\(exc=(?:Call\(func=)?Name\(id='NotImplementedError'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A name that a cell defines. `step`: its number from 1, 0 for the problem. `uses`: names in it. `is_stub`: a part of it is
    yet to come. `is_made`: a function or class. `text`: what it is."""

    name: str
    step: int
    uses: frozenset[str]
    is_stub: bool
    is_made: bool
    text: str


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
        uses, text, made = names_in(node), ast.dump(node), isinstance(node, DEFINITIONS)
        stub = isinstance(node, FUNCTIONS) and (
            _GAPS.search(text) is not None
            or text.count("Expr(value=Constant(") == len(node.body)
            or any(isinstance(each, ast.Pass) for each in node.body)
        )
        for name in _defined(node):
            found[name] = Definition(name=name, step=step, uses=uses, is_stub=stub, is_made=made, text=text)
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


def undefined(sources: Iterable[str]) -> set[str]:
    """The names that a program reads, and that nothing in it binds in any scope."""
    pairs = [*map(_read_and_bound, sources)]
    read, bound = (set[str]().union(*names) for names in zip(*pairs, strict=True))
    return set() if "*" in bound else read - bound


@lru_cache(maxsize=4096)
def _read_and_bound(source: str) -> tuple[set[str], set[str]]:
    read, bound = set[str](), {*dir(builtins), *re.findall(r"import (\*)", source)}
    with suppress(SyntaxError):
        waiting: list[SymbolTable] = [symtable(source, "cell", "exec")]
        while waiting:
            table = waiting.pop()
            waiting += table.get_children()
            for each in table.get_symbols():
                if each.is_assigned() or each.is_imported() or each.is_parameter():
                    bound.add(each.get_name())
                elif each.is_global() and each.is_referenced():
                    read.add(each.get_name())
    return read, bound


def ends_open(last: ast.stmt) -> bool:
    """Whether a function, or the last one of a class, may go on in a later step: after a simple statement or a loop."""
    if isinstance(last, DEFINITIONS):
        return ends_open(last.body[-1])
    closed = isinstance(last, ast.Return | ast.Raise | ast.While | ast.With | ast.Try | ast.Match)
    return not (closed or getattr(last, "orelse", None))


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
