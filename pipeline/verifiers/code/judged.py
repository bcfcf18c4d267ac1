"""How far the tests of a problem judge a step: whether it completes what they call, and what they leave out. Pure."""

import ast
from collections.abc import Collection
from itertools import chain

from pipeline.verifiers.code.names import definitions, reached, undefined
from pipeline.verifiers.code.stated import StatedTests
from pipeline.verifiers.programs import Program
from pipeline.verifiers.sentences import in_a_line


def completes(program: Program, tests: StatedTests) -> bool:
    """Whether the last step of a program defines something that the tests need, and nothing that they need is missing."""
    defined = definitions(program.trees)
    needed = reached(tests.names, defined)
    return (
        tests.names <= defined.keys()
        and undefined(program.sources).isdisjoint(chain.from_iterable(each.uses for each in needed.values()))
        and not any(each.is_stub for each in needed.values())
        and any(each.step == len(program.steps) for each in needed.values())
    )


def why_part(program: Program, tests: StatedTests) -> str:
    """Why these tests prove a part of a step only, in words. Empty: they prove all of it."""
    cell = program.cell
    if cell.words.strip():
        return "its words are not looked at"
    if any(_keeps_state(tree) for tree in program.trees if tree is not None):
        return "it may keep something from one call to the next"
    needed = reached(tests.names, definitions(program.trees)).keys()
    for node in cell.tree.body:
        if not _is_looked_at(node, needed):
            return f"not looked at: {in_a_line(ast.unparse(node), 80)}"
    return tests.written_in(cell.tree)


def _keeps_state(tree: ast.Module) -> bool:
    """Whether calls may depend on calls before them: names of the program or attributes that functions set, values that can
    be changed in the program or as a default."""
    for node in ast.walk(tree):
        match node:
            case ast.Global() | ast.Nonlocal():
                return True
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name != "self":
                return True
            case ast.arguments(defaults=defaults, kw_defaults=others) if not all(
                map(_is_fixed, (*defaults, *filter(None, others)))
            ):
                return True
            case ast.Module(body=body) | ast.ClassDef(body=body):
                values = [each.value for each in body if isinstance(each, ast.Assign | ast.AnnAssign) and each.value]
                if not all(map(_is_fixed, values)):
                    return True
    return False


def _is_fixed(node: ast.expr) -> bool:
    """Whether a value is written out and cannot be changed."""
    match node:
        case ast.Constant() | ast.Name() | ast.Attribute() | ast.Lambda():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_fixed(operand)
        case ast.BinOp(left=left, right=right):
            return _is_fixed(left) and _is_fixed(right)
        case ast.Tuple(elts=parts):
            return all(map(_is_fixed, parts))
    return False


def _is_looked_at(node: ast.stmt, needed: Collection[str]) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name in needed or name == "test" or name.startswith("test_")
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name in needed
    return False
