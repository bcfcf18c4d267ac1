"""Fixtures of tests that open a page."""

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from tests.chromium import INSTALLED, REMEDY, chromium


@pytest.fixture(scope="session")
def driver() -> Iterator[Chrome]:
    """One browser for all tests of a process; they skip where there is none."""
    if not INSTALLED:
        pytest.skip(REMEDY)
    found = chromium()
    try:
        yield found
    finally:
        found.quit()
