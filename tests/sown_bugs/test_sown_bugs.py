"""Every sown bug fits the code and names its tests; by night, these tests see it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.sown_bugs.bugs import FOLDER, Bug, all_bugs, checkout_copy, complaints_without, lint, misfit, watched

BUGS = all_bugs()
WITHOUT = {"examples"}
"""Packages without code of their own to break."""
FEWEST, FEWEST_UNGUARDED = 30, 20


pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def copy() -> Iterator[Path]:
    with checkout_copy() as made:
        yield made


def test_each_bug_fits_the_code_and_names_tests_that_exist() -> None:
    assert not [found for bug in BUGS if (found := misfit(bug))]


def test_the_bugs_are_those_of_the_folder_and_of_all_packages() -> None:
    assert {bug.patch for bug in BUGS} == set(FOLDER.glob("*.patch"))
    assert {bug.package for bug in BUGS} == {path.parent.name for path in ROOT.glob("pipeline/*/__init__.py")} - WITHOUT
    assert len(BUGS) >= FEWEST
    assert all(1 <= len(bug.tests) <= 3 for bug in BUGS)
    assert sum(not bug.tests[0].startswith("tests/guard/") for bug in BUGS) >= FEWEST_UNGUARDED


@pytest.mark.nightly
def test_without_a_bug_their_tests_are_green(copy: Path) -> None:
    assert not complaints_without(BUGS, copy)


@pytest.mark.nightly
def test_neither_types_nor_lint_show_a_bug(copy: Path) -> None:
    assert not lint(BUGS, copy)


@pytest.mark.nightly
@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_its_tests_see_a_bug(copy: Path, bug: Bug) -> None:
    assert not watched(bug, copy).fault
