"""Fingerprints of objects: what changes them, what does not, and that every process gives the same."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.fingerprints import SHOWN, fingerprint, is_own_module
from tests.conftest import ROOT

TEXT = '''
import math
from dataclasses import dataclass, field
from enum import Enum

WORDS = {"yes", "no", "maybe", "never"}

class Kind(Enum):
    A = 1
    B = 2

def helper(x):
    return math.floor(x) + 1

@dataclass(kw_only=True, slots=True)
class Settings:
    share: float = 0.5
    names: list = field(default_factory=lambda: ["a"])

class Thing:
    """Text."""
    limit = 3
    def __init__(self, settings): self.settings = settings
    def work(self, x):
        """Works."""
        return [helper(y) for y in range(x) if y in WORDS] or Kind.A
    @property
    def one(self): return self.work(1)
    @staticmethod
    def two(): return Thing(Settings())
'''


def of(text: str) -> str:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<cell>", "exec"), space)
    return fingerprint(space["Thing"], space["Settings"])


@pytest.mark.parametrize(("before", "after"), [
    ("math.floor(x) + 1", "math.floor(x) + 2"),
    ("math.floor", "math.ceil"),
    ('"never"', '"ever"'),
    ("share: float = 0.5", "share: float = 0.4"),
    ('["a"]', '["b"]'),
    ("limit = 3", "limit = 4"),
    ("B = 2", "B = 3"),
    ("self.work(1)", "self.work(2)"),
    ("Thing(Settings())", "Thing(None)"),
    ("def work(self, x)", "def work(self, x=1)"),
])  # fmt: skip
def test_a_change_of_code_is_seen(before: str, after: str) -> None:
    assert before in TEXT
    assert of(TEXT.replace(before, after)) != of(TEXT)


@pytest.mark.parametrize(("before", "after"), [
    ("WORDS =", "# A comment.\n\nWORDS ="),
    ('"""Text."""', '"""Other text."""'),
    ("def helper", "def unused(): ...\ndef helper"),
    ("share: float", "share: int"),
    ('{"yes", "no", "maybe", "never"}', '{"never", "maybe", "no", "yes"}'),
])  # fmt: skip
def test_what_changes_no_result_is_not(before: str, after: str) -> None:
    assert before in TEXT
    assert of(TEXT.replace(before, after)) == of(TEXT)


def test_another_process_gives_the_same(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        TEXT + "\nfrom pipeline.core.fingerprints import fingerprint\nprint(fingerprint(Thing, Settings))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, str(file)],
            env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {of(TEXT)}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(values, values)
def test_values_have_the_same_fingerprint_where_they_are_equal(one: object, other: object) -> None:
    assert len(fingerprint(one)) == SHOWN
    assert (fingerprint(one) == fingerprint(other)) == (repr(one) == repr(other))


def test_what_goes_round_ends() -> None:
    round_: list[object] = []
    round_.append({"it": round_})
    assert fingerprint(round_) == fingerprint(round_)


def test_whose_code_is_whose() -> None:
    assert is_own_module("__main__")
    assert is_own_module(__name__)
    assert not any(map(is_own_module, ("pipeline.label", "json", "numpy", "polars", "builtins")))
