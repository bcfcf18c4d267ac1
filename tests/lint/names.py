"""Nobody but an implementation itself and its registry asks for it by its name: `make lint` runs this.

Seen are comparisons of something that chooses an implementation (`config.name`, `row["estimator"]`, `getattr(config, "kind")`)
with one of our names, such names in `match`, and classes of an implementation's settings in `match` and `isinstance`. A name
that goes through a variable first is not seen.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.core.registry import Registry
from pipeline.engines.registry import ENGINES
from pipeline.estimators.registry import ESTIMATORS
from pipeline.export.registry import EXPORTS
from pipeline.graders.registry import GRADERS
from pipeline.judges.registry import JUDGES
from pipeline.scorers.registry import SCORERS
from pipeline.searches.registry import SEARCHES
from pipeline.verifiers.registry import VERIFIERS

REGISTRIES: tuple[Registry[Any], ...] = (ESTIMATORS, GRADERS, ENGINES, EXPORTS, SCORERS, JUDGES, SEARCHES, VERIFIERS)
CHOSEN_BY = {"name", "kind", "format", "method", "estimator", "policy", "grader", "implementation"}
"""What a name would be compared with: `config.name`, `row["estimator"]`."""
_LOOKS_UP = {"getattr", "get"}
_PLAIN = {"str", "lower", "strip", "casefold"}
"""Calls that leave a name what it is."""


def homes() -> dict[str, set[str]]:
    """Name, or class of own settings -> the modules that may ask for it: those of the implementation."""
    found: dict[str, set[str]] = {}
    for registry in REGISTRIES:
        for name, where in registry.ours.items():
            module = where.partition(":")[0]
            found.setdefault(name, set()).add(module)
            settings = registry.settings(name)
            if settings is not None:
                found.setdefault(settings.__name__, set()).add(module)
    return found


def questions(folder: Path) -> Iterator[str]:
    """Every question for a name by a module that is not of its implementation, as `FILE:LINE: ...`."""
    known = homes()
    modules = set().union(*known.values())
    for path in sorted(folder.rglob("*.py")):
        module = ".".join(("pipeline", *path.relative_to(folder).with_suffix("").parts))
        if module.endswith(".registry"):
            continue
        for line, name in named(ast.parse(path.read_text("utf-8"))):
            if name in known and not any(_is_of(module, home, modules) for home in known[name]):
                yield f"{path}:{line}: asks for {name!r}: call a method or capability of its base.py instead"


def _is_of(module: str, home: str, homes: set[str]) -> bool:
    """Whether a module is the implementation's, or stands in its package where it has that to itself."""
    package = home.rpartition(".")[0]
    shared = any(other != home and other.startswith(f"{package}.") for other in homes)
    return module == home or (not shared and module.startswith(f"{package}."))


def named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Comparisons of something that chooses an implementation with a text, such texts in `match`, and classes asked for."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                if any(map(_chooses, sides)):
                    yield from ((node.lineno, text) for side in sides if not _chooses(side) for text in _texts(side))
            case ast.Subscript(value=ast.Dict(keys=keys), slice=asked) if _chooses(asked):
                yield from ((node.lineno, text) for key in keys if key is not None for text in _texts(key))
            case ast.Match():
                for each in ast.walk(node):
                    if isinstance(each, ast.MatchClass):
                        yield each.lineno, ast.unparse(each.cls).rpartition(".")[2]
                    elif isinstance(each, ast.MatchValue) and _chooses(node.subject):
                        yield from ((node.lineno, text) for text in _texts(each))
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                for each in ast.walk(kinds):
                    if isinstance(each, ast.Name | ast.Attribute):
                        yield node.lineno, ast.unparse(each).rpartition(".")[2]


def _texts(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def _chooses(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=attr, value=value):
            return attr in CHOSEN_BY or (attr == "value" and _chooses(value))
        case ast.Subscript(slice=ast.Constant(value=key)):
            return key in CHOSEN_BY
        case ast.Name(id=name):
            return name in CHOSEN_BY
        case ast.Call(func=function, args=args):
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if called in _LOOKS_UP:
                return any(isinstance(each, ast.Constant) and each.value in CHOSEN_BY for each in args)
            inner = [*args, *([function.value] if isinstance(function, ast.Attribute) else [])]
            return called in _PLAIN and any(map(_chooses, inner))
    return False


def main() -> int:
    found = list(questions(Path(__file__).parents[2] / "pipeline"))
    print("\n".join(found) if found else "Nobody but an implementation itself asks for its name.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
