"""Nobody outside a door asks for an implementation by its name: `make lint` runs this.

Seen are comparisons of something that chooses an implementation (`config.name`, `row["estimator"]`) with one of our names, and
such names in `match`. Not seen is a name that goes through a variable first.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from pipeline.engines.registry import ENGINES
from pipeline.estimators.registry import ESTIMATORS
from pipeline.export.registry import EXPORTS
from pipeline.graders.registry import GRADERS

DOORS = {
    "estimators": {*ESTIMATORS.ours},
    "graders": {*GRADERS.ours},
    "engines": {*ENGINES.ours},
    "export": {*EXPORTS.ours},
}
"""Packages of doors, and the names that belong to them."""
CHOSEN_BY = {"name", "kind", "format", "estimator", "policy"}
"""What a name would be compared with: `config.name`, `row["estimator"]`."""


def questions(folder: Path) -> Iterator[str]:
    """Every question for a name of another package's door, as `FILE:LINE: ...`."""
    for path in sorted(folder.rglob("*.py")):
        package = path.relative_to(folder).parts[0]
        others = set().union(*(names for door, names in DOORS.items() if door != package))
        for line, name in named(ast.parse(path.read_text("utf-8"))):
            if name in others:
                yield f"{path}:{line}: asks for {name!r}: ask the door what differs (its base.py)"


def named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Comparisons of something that chooses an implementation with a text, and such texts in `match`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and _chooses(node.left):
            for each in node.comparators:
                for text in ast.walk(each):
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield node.lineno, text.value
        elif isinstance(node, ast.Match) and _chooses(node.subject):
            for text in ast.walk(node):
                if isinstance(text, ast.MatchValue) and isinstance(text.value, ast.Constant):
                    yield node.lineno, str(text.value.value)


def _chooses(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in CHOSEN_BY or (node.attr == "value" and _chooses(node.value))
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value in CHOSEN_BY
    return isinstance(node, ast.Name) and node.id in CHOSEN_BY


def main() -> int:
    found = list(questions(Path(__file__).parents[1] / "pipeline"))
    print("\n".join(found) if found else "Nobody outside a door asks for a name.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
