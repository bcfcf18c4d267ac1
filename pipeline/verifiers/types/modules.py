"""The modules that a checked program may import: mypy knows their types before it sees a program. Pure."""

import ast

from pipeline.verifiers.code.outside import MODULES as COMPUTING

MODULES = COMPUTING - {"__future__"} | {
    "collections.abc", "io", "logging", "os", "os.path", "pathlib", "random", "sys", "threading", "time", "timeit",
    "traceback", "types", "uuid", "warnings",
}  # fmt: skip


def unknown_import(tree: ast.AST) -> str:
    """A module that a program imports and mypy does not know, as it is written. Empty: none."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=module, level=level):
                modules = [f"{'.' * level}{module or ''}"]
            case _:
                continue
        for module in modules:
            if module not in MODULES and module != "__future__":
                return module
    return ""
