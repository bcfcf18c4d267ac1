"""What makes the outcome of a program depend on more than its text: chance, clocks, files, packages, the order of a set. Pure.

Seen are imports, names and attributes that are written out. A program with any of them has no verdict.
"""

import ast
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import chain

from pipeline.graders.code.examples import examples_in

MODULES = frozenset(
    {
        "__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "colorsys",
        "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools",
        "graphlib", "hashlib", "heapq", "html", "itertools", "json", "math", "numbers", "operator", "pprint", "queue", "re",
        "statistics", "string", "struct", "textwrap", "typing", "unicodedata", "zlib",
    }
)  # fmt: skip
"""Modules that compute the same from the same, everywhere."""
_OF_SYS = frozenset({"maxsize", "setrecursionlimit", "getrecursionlimit", "float_info", "int_info", "stdout", "stderr"})
_NAMES = frozenset(
    {
        "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "delattr", "eval", "exec", "exit",
        "globals", "hash", "help", "id", "input", "locals", "memoryview", "open", "quit", "setattr", "vars",
    }
)  # fmt: skip
_WITHOUT_ORDER = frozenset(
    {"all", "any", "bool", "frozenset", "isinstance", "len", "max", "min", "set", "sorted", "sum", "type"}
)
"""Functions of a collection whose result does not depend on its order."""
_CLOCKS = frozenset({"now", "today", "utcnow", "timestamp", "fromtimestamp", "astimezone"})
_DUNDERS = frozenset(
    {
        "__name__", "__main__", "__doc__", "__all__", "__version__", "__author__", "__post_init__", "__slots__", "__init__",
        "__new__", "__str__", "__repr__", "__len__", "__iter__", "__next__", "__contains__", "__getitem__", "__setitem__",
        "__delitem__", "__call__", "__enter__", "__exit__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
        "__hash__", "__bool__", "__add__", "__radd__", "__iadd__", "__sub__", "__rsub__", "__isub__", "__mul__", "__rmul__",
        "__imul__", "__truediv__", "__rtruediv__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__",
        "__rpow__", "__neg__", "__pos__", "__abs__", "__invert__", "__int__", "__float__", "__index__", "__round__",
        "__and__", "__or__", "__xor__", "__lshift__", "__rshift__", "__matmul__", "__reversed__", "__format__", "__missing__",
        "__annotations__",
    }
)  # fmt: skip
_TAMPERS = frozenset(
    {"f_back", "f_locals", "f_globals", "f_builtins", "tb_frame", "gi_frame", "cr_frame", "func_globals"}
)


def outside(tree: ast.Module) -> str:
    """What a program depends on, in words, with the examples in its texts. Empty: nothing outside its text."""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    trees = [tree]
    for example in chain.from_iterable(map(examples_in, texts)):
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            trees.append(ast.parse(example.source))
    return next(filter(None, map(_outside, trees)), "")


def _outside(tree: ast.Module) -> str:
    if order := _order_of_sets(tree):
        return order
    if any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in _outside_functions(tree)):
        return "it awaits outside a function, which a notebook can do"
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=module, level=level):
                modules = ["." if level else module or "."]
            case ast.Name(id=name) if name in _NAMES:
                return f"it uses {name}"
            case ast.Name(id=name) | ast.FunctionDef(name=name) if _is_strange(name):
                return f"it uses {name}"
            case ast.Name(id="AssertionError", ctx=ast.Store()):
                return "it redefines AssertionError"
            case ast.Attribute(value=ast.Name(id="sys"), attr=name) if name not in _OF_SYS:
                return f"it uses sys.{name}"
            case ast.Attribute(attr=name) if name in _TAMPERS or name in _CLOCKS or _is_strange(name):
                return f"it uses {name}"
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]) if name[:1] != "_":
                continue
            case ast.Call(func=ast.Name(id="getattr"), args=[_, _, *_]):
                return "it uses getattr"
            case _:
                continue
        for module in modules:
            top = module.partition(".")[0]
            if top not in MODULES and not (top == "sys" and isinstance(node, ast.Import)):
                return f"it imports {module}"
    return ""


def _outside_functions(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _is_strange(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _DUNDERS


def _order_of_sets(tree: ast.Module) -> str:
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
        seen: list[ast.expr] = []
        match node:
            case ast.Call(func=ast.Attribute(attr="pop", value=owner), args=[]) if _is_set(owner, sets):
                return "it takes any item of a set"
            case ast.Call(args=args) if id(node) not in free:
                seen = args
            case ast.For(iter=value) | ast.Starred(value=value):
                seen = [value]
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
                seen = [value]
            case ast.ListComp() | ast.DictComp() | ast.GeneratorExp() if id(node) not in free:
                seen = [each.iter for each in node.generators]
        if any(_is_set(each, sets) and id(each) not in free for each in seen):
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
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Name(id=name):
            return name in names
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.Sub(), right=right):
            return _is_set(left, names) or _is_set(right, names)
    return False
