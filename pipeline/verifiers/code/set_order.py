"""Whether the order of a set, which differs from run to run, may matter to a program. Pure."""

import ast
from collections.abc import Collection

_WITHOUT_ORDER = frozenset(
    {"all", "any", "bool", "frozenset", "isinstance", "len", "max", "min", "set", "sorted", "sum", "type"}
)
"""Functions of a collection whose result does not depend on its order."""


def order_of_sets(tree: ast.Module) -> str:
    """How the order of a set may matter, in words. Empty: it does not."""
    sets = _names_of_sets(tree)
    free: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name in _WITHOUT_ORDER:
                free.update(map(id, args))
            case ast.SetComp(generators=generators):
                free.update(id(each.iter) for each in generators)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="pop", value=owner), args=[]) if _is_set(owner, sets):
                return "it takes any item of a set"
            case ast.Call(args=args) if id(node) not in free and any(
                _is_set(each, sets) and id(each) not in free for each in args
            ):
                return "the order of a set may matter"
            case ast.For(iter=items) if _is_set(items, sets):
                return "the order of a set may matter"
            case (
                ast.ListComp(generators=generators)
                | ast.DictComp(generators=generators)
                | ast.GeneratorExp(generators=generators)
            ) if id(node) not in free and any(_is_set(each.iter, sets) for each in generators):
                return "the order of a set may matter"
            case ast.Starred(value=value) if _is_set(value, sets):
                return "the order of a set may matter"
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value) if _is_set(value, sets):
                return "the order of a set may matter"
    return ""


def _names_of_sets(tree: ast.Module) -> set[str]:
    """The names that a set is assigned to."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value and _is_set(node.value, ()):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(target.id for target in targets if isinstance(target, ast.Name))
    return found


def _is_set(node: ast.expr, names: Collection[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Name(id=name):
            return name in names
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.Sub(), right=right):
            return _is_set(left, names) or _is_set(right, names)
    return False
