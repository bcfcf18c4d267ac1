"""`python -m tests.report.screenshots PAGE FOLDER`: makes the documents' pictures of a report, of `label` or of `search`."""

import base64
import sys
from dataclasses import dataclass
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.chromium import INSTALLED, REMEDY, chromium

MOST_BYTES = 300_000
ABOVE_PIXELS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A part of the page, from a little above the element `at` on, in a window of this size in CSS pixels.

    `scale`: device pixels of each. `opened`: selectors of buttons that are pressed first, with `;` between.
    """

    name: str
    at: str
    width: int
    height: int
    scheme: str
    scale: float = 1.0
    opened: str = ""


OPENED = ".chain-head;.tree-row.step"
"""The first chain, and the rollouts of its first step."""
OPENED_TREE = ".chain-head;.tree-row.group"
"""The first problem, and the other first steps of its tree."""
PICTURES = (
    Picture(name="report-light", at="body", width=1200, height=1500, scheme="light"),
    Picture(name="report-dark", at="#chains", width=1200, height=1100, scheme="dark", opened=OPENED),
    Picture(name="report-phone", at="#browser-list", width=360, height=800, scheme="light", scale=2.0, opened=OPENED),
)
OF_A_SEARCH = (
    Picture(name="search-tree", at="#browser-list", width=1200, height=1180, scheme="light", opened=OPENED_TREE),
)


def main() -> int:
    page, folder = (Path(argument) for argument in sys.argv[1:])
    if not INSTALLED:
        print(REMEDY, file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    browser = chromium()
    try:
        for picture in OF_A_SEARCH if 'stepvalue search"' in page.read_text("utf-8") else PICTURES:
            data = _taken(browser, page, picture)
            (folder / f"{picture.name}.png").write_bytes(data)
            print(f"{picture.name}: {len(data):,} bytes, at most {MOST_BYTES:,}")
    finally:
        browser.quit()
    return 0


def _taken(browser: Chrome, page: Path, picture: Picture) -> bytes:
    size = {"width": picture.width, "height": picture.height, "deviceScaleFactor": picture.scale, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": picture.scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(page.resolve().as_uri())
    browser.implicitly_wait(30)
    for selector in filter(None, picture.opened.split(";")):
        browser.find_element(By.CSS_SELECTOR, selector).click()
    element = browser.find_element(By.CSS_SELECTOR, picture.at)
    top = browser.execute_script("return arguments[0].getBoundingClientRect().top + scrollY", element)
    top = max(0, top - ABOVE_PIXELS)
    clip = {"x": 0, "y": top, "width": picture.width, "height": picture.height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    sys.exit(main())
