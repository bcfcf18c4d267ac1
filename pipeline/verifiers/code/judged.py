"""How far the tests of a problem judge a step: whether it completes what they call, and what they leave out. Pure."""

import ast
from collections.abc import Collection, Mapping

from pipeline.verifiers.code.names import Definition, definitions, reached
from pipeline.verifiers.code.stated import StatedTests, literals_in
from pipeline.verifiers.programs import Program


def defined_by(program: Program) -> Mapping[str, Definition]:
    """What a program defines at its end."""
    return definitions(program.trees)


def completes(program: Program, tests: StatedTests) -> bool:
    """Whether the last step of a program defines something that the tests need, and nothing that they need is missing."""
    defined = defined_by(program)
    needed = reached(tests.names, defined)
    return (
        tests.names <= defined.keys()
        and not any(each.is_stub for each in needed.values())
        and any(each.step == len(program.steps) for each in needed.values())
    )


def why_part(program: Program, tests: StatedTests) -> str:
    """What of a step these tests do not look at. Empty: nothing."""
    cell = program.cell
    if cell.tree is None or cell.words.strip():
        return "words"
    needed = reached(tests.names, defined_by(program)).keys()
    for node in cell.tree.body:
        if not _is_looked_at(node, needed):
            return ast.unparse(node)
    written = literals_in(cell.tree) & tests.values
    if len(written) > 1 and 2 * len(written) >= len(tests.values):
        return f"{len(written)} of the {len(tests.values)} expected values, which it writes out"
    return ""


def _is_looked_at(node: ast.stmt, needed: Collection[str]) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name in needed or name == "test" or name.startswith("test_")
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name in needed
    return False
