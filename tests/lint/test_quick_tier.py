"""What `make check` runs: a new test is in it unless it is marked, and every package has tests in it."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

PIPELINE, TESTS = ROOT / "pipeline", ROOT / "tests"
_MODULE = re.compile(r"pipeline(?:\.[a-z_]+)+")


def left_out() -> set[str]:
    """The marks whose tests `make check` leaves out."""
    found = re.search(r"^QUICK +:= (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    terms = found.group(1).split(" and ")
    assert all(term.startswith("not ") for term in terms)
    return {term.removeprefix("not ") for term in terms}


def marks(tree: ast.AST) -> set[str]:
    """The names of the marks that stand in a part of a module."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "mark"
    }


def is_quick(module: ast.Module, without: set[str]) -> bool:
    """Whether a test of the module is run by `make check`."""
    for node in module.body:
        if (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == "pytestmark"
            and marks(node.value) & without
        ):
            return False
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return any(not any(marks(decorator) & without for decorator in test.decorator_list) for test in tests)


def packages_of(module: ast.Module) -> Iterator[str]:
    """The packages of `pipeline` that a module imports from."""
    for node in ast.walk(module):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        # The name of a module, for `import_module`.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE.fullmatch(node.value):
            names = [node.value]
        yield from (name.split(".")[1] for name in names if name.startswith("pipeline."))


@cache
def modules() -> dict[Path, ast.Module]:
    paths = (path for path in sorted(TESTS.rglob("test_*.py")) if path.parent.name != "lint")
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def test_every_package_has_quick_tests() -> None:
    without = left_out()
    covered = {package for module in modules().values() if is_quick(module, without) for package in packages_of(module)}
    packages = {path.parent.name for path in PIPELINE.glob("*/__init__.py")}
    assert len(packages) > 10
    assert packages <= covered


def test_the_marks_are_declared_and_each_is_used() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    declared = {line.partition(":")[0] for line in options["markers"]}
    assert left_out() == declared
    assert left_out() <= {mark for module in modules().values() for mark in marks(module)}


def test_a_mark_takes_a_module_or_a_test_out() -> None:
    plain, marked = "def test_a(): pass\n", "@pytest.mark.ray\ndef test_a(): pass\n"
    for text, expected in (
        (plain, True),
        (marked, False),
        (marked + "def test_b(): pass\n", True),
        ("pytestmark = pytest.mark.slow\n" + plain, False),
        ("pytestmark = [pytest.mark.timeout(9), pytest.mark.nightly]\n" + plain, False),
        ("pytestmark = pytest.mark.timeout(9)\n" + plain, True),
        ("import pytest\n", False),
    ):
        assert is_quick(ast.parse(text), {"ray", "slow", "nightly"}) is expected
