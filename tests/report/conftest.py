"""Fixtures of tests that open a page."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from tests.chromium import INSTALLED, REMEDY, chromium
from tests.report.reader import Reader, watched


@dataclass(slots=True)
class _Browser:
    """The browser of a process, once a test has asked for it."""

    driver: Chrome | None = None

    def living(self) -> Chrome:
        """The browser. A new one where the old one's driver has ended: a machine without memory left may have ended it."""
        if self.driver is None or self.driver.service.process.poll() is not None:
            self.driver = chromium()
        return self.driver


@pytest.fixture(scope="session")
def browser() -> Iterator[_Browser]:
    """One browser for all tests of a process."""
    found = _Browser()
    try:
        yield found
    finally:
        if found.driver is not None:
            found.driver.quit()


@pytest.fixture
def driver(browser: _Browser) -> Chrome:
    """The browser. Tests skip where there is none."""
    if not INSTALLED:
        pytest.skip(REMEDY)
    return browser.living()


@pytest.fixture(scope="module")
def page(run_dir: Path) -> Path:
    """That of the `run_dir` of a module."""
    path = run_dir.parent / "page.html"
    report(ReportConfig(run_dir=str(run_dir), out=str(path)))
    return path


@pytest.fixture
def reader(driver: Chrome, page: Path) -> Iterator[Reader]:
    """The opened `page` of a module, see `watched`."""
    with watched(driver, page) as found:
        yield found
