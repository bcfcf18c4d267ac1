"""What a test source asks of a program, found in its syntax tree: nothing is run.

Not covered: scopes. A name that the tests bind anywhere is theirs everywhere.
"""

import ast
import builtins
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names that tests use and do not bind: those of the program, and standard modules used but not imported."""

    program: frozenset[str]
    modules: frozenset[str]


def holds_tests(tree: ast.Module, *, entry_point: str | None) -> bool:
    """Whether something is asserted: at the top level, or in functions that the top level or the caller runs."""
    asserts = any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    if entry_point is not None:
        return asserts
    outside = [node for part in tree.body if not _defines(part) for node in ast.walk(part)]
    return asserts and any(isinstance(node, ast.Assert | ast.Call) for node in outside)


def names_used(tree: ast.Module) -> Names:
    """The names that must come from elsewhere. One that is only ever `name.attribute` and a standard module is the module.

    Tests that use no name but built-in ones test a program that defines one of those: MBPP has a function named `sum`.
    """
    loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    unbound = loaded - _bound(tree)
    free = unbound - set(dir(builtins)) or unbound
    owners = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    alone = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in owners}
    modules = (free & sys.stdlib_module_names) - alone
    return Names(program=frozenset(free - modules), modules=frozenset(modules))


def _defines(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _bound(tree: ast.Module) -> set[str]:
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=shown):
                bound.add(shown or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case _:
                pass
    return bound
