"""What is known of the code of an object: what changes the text, what does not, and what is not looked at."""

import importlib
import linecache
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.core.code_of import NOTEBOOK, code_of

TEXT = '''
def helper(x): return x + 1

class Thing:
    """Text."""
    limit = 3
    def work(self, x): return helper(x)
    @property
    def one(self): return self.work(1)
'''


def in_module(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    return code_of(importlib.import_module(name).Thing, {})


def in_cell(text: str, number: int) -> str:
    """As IPython runs a cell: its text can be looked up by the name that its code has."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), space)
    return code_of(space["Thing"], {})


def test_an_own_module_is_known_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = in_module(tmp_path, "own_a", TEXT, monkeypatch)
    assert len(first) == 16
    assert in_module(tmp_path, "own_b", TEXT, monkeypatch) == first
    assert in_module(tmp_path, "own_c", TEXT.replace("x + 1", "x + 2"), monkeypatch) != first


def test_a_class_of_a_distribution_is_known_by_its_version() -> None:
    assert code_of(pl.DataFrame, {}) == f"of polars {pl.__version__}"
    assert code_of(pl.DataFrame, {"a": 1}).startswith(f"of polars {pl.__version__} ")


def test_a_class_of_a_notebook_is_known_by_the_text_of_its_methods() -> None:
    first = in_cell(TEXT, 1)
    assert first.startswith(f"{NOTEBOOK} ")
    assert in_cell(f"# A comment.\n{TEXT}", 2) == first
    assert in_cell(TEXT.replace("x + 1", "x + 2"), 3) == first, "what it calls is not looked at"
    assert in_cell(TEXT.replace("return helper(x)", "return x"), 4) != first
    assert in_cell(TEXT.replace("work(1)", "work(2)"), 5) != first


def test_a_class_without_a_text_is_only_marked() -> None:
    assert code_of(type("Thing", (), {"__module__": "__main__"}), {}) == NOTEBOOK


def test_what_an_object_holds_counts_as_far_as_it_is_plain() -> None:
    def text(held: Any) -> str:
        return code_of(pl.DataFrame, {"held": held})

    assert text(("a", "b")) == text(["a", "b"]) != text(["a"])
    assert text({"a": 1.0}) != text({"a": 2.0})
    assert text(threading.Lock()) == text(threading.Lock()) != text(len) != text(max)
    assert text({("a", "b"): 1}) == text({})
