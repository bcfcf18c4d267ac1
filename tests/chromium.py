"""A browser without a window, for tests and benches that open a page; nothing is downloaded for it."""

import os
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from pipeline.engines.vllm.reaper import MARK

CHROMIUM = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")
INSTALLED = CHROMIUM.exists() and DRIVER.exists()
REMEDY = "needs a browser: apt-get install chromium chromium-driver"
"""Debian's packages, which have both at these places."""
# Without motion, a page that scrolls is there at once.
_ARGUMENTS = (
    *("--headless=new", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    "--force-prefers-reduced-motion",
)


def chromium() -> webdriver.Chrome:
    """A browser that is newly started, and keeps logs of its console and its requests. Whoever asks for it ends it (`quit`)."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The end of an engine ends all processes that carry its mark. One that a test has in this process must not end the browser.
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    return webdriver.Chrome(options=options, service=Service(str(DRIVER), env=unmarked))
