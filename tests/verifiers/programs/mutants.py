"""Small mistakes planted into programs: another operator, comparison or number, one place at a time."""

import ast
from collections.abc import Iterator

_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
}  # fmt: skip


def mutants(source: str) -> Iterator[str]:
    """The source with one mistake, in each way and place."""
    places = len(list(ast.walk(ast.parse(source))))
    for place in range(places):
        tree = ast.parse(source)
        node = list(ast.walk(tree))[place]
        if _changed(node):
            yield ast.unparse(tree)


def _changed(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in _OPERATORS:
            node.op = _OPERATORS[type(operator)]()
        case ast.Compare(ops=[comparison]) if type(comparison) in _COMPARISONS:
            node.ops = [_COMPARISONS[type(comparison)]()]
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            node.value = value + 1
        case ast.Return(value=ast.Constant(value=bool(value))):
            node.value = ast.Constant(not value)
        case _:
            return False
    return True
