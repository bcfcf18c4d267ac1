"""SECURITY.md names a test for each promise, and each named test is there."""

import re

from tests.conftest import ROOT

TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
_TEST = re.compile(r"`((?:\w+/)*test_\w+\.py)`")


def test_every_test_that_it_names_is_there() -> None:
    named = set(_TEST.findall(TEXT))
    assert len(named) > 40
    assert sorted(name for name in named if not (ROOT / "tests" / name).is_file()) == []


def test_every_promise_names_a_test() -> None:
    promises = TEXT.partition("## What we own")[2].partition("\n## ")[0].split("\n- ")[1:]
    assert len(promises) > 12
    assert [promise[:60] for promise in promises if not _TEST.search(promise)] == []
