"""A reader of the interactive part of a page, in Chromium."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

T = TypeVar("T")
SCRIPT = "<script>document.title = 'owned'</script></script><!--"
IMAGE = "<img src=x onerror=\"document.title = 'owned'\">"
ARABIC = "نضيف 3 إلى 4 فنحصل على 7."
OWNED = "document.title='owned'"
PAYLOADS = (
    f"<svg onload={OWNED}>", f"<svg><script>{OWNED}</script>", f"<body onload={OWNED}>",
    f"<iframe srcdoc='<script>parent.{OWNED}</script>'>", f"<a href=javascript:{OWNED}>x</a>",
    f"<details open ontoggle={OWNED}>", f"<math><mtext></style><img src=x onerror={OWNED}>",
    f"<input autofocus onfocus={OWNED}>", f"'><img src=x onerror={OWNED}>", f'"><img src=x onerror={OWNED}>',
    f"`><img src=x onerror={OWNED}>", f"</script><script>{OWNED}</script>", f"</style><script>{OWNED}</script>",
    f"</title><script>{OWNED}</script>", f"--><script>{OWNED}</script>", f"]]><script>{OWNED}</script>",
    f"{{{{constructor.constructor('{OWNED}')()}}}}", f"${{{OWNED}}}", "{% raw %}{{ 7*7 }}",
    "<link rel=stylesheet href=//a.test/x>", "<style>*{display:none}</style>", "<base href=//a.test/>",
    "<meta http-equiv=refresh content='0;url=//a.test'>", "<object data=//a.test/x>", "<video poster=//a.test/x>",
    "<form action=//a.test><button>x", "url(//a.test/x)", "&lt;script&gt;", "&#60;script&#62;", "a\u2028b\u2029c\x1b[31m",
    "x" * 3_000, "\u0301" * 300, "<plaintext>",
)  # fmt: skip
"""Texts that a page with one place left open would obey, load, or lose its layout by."""
TURNED = "It is \u202e21\u202d."
"""A number that a reader would see backwards."""


class Reader:
    """What a person does with the page."""

    def __init__(self, driver: Chrome, page: Path) -> None:
        self.driver = driver
        self._page = page

    def open(self, hash: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(self._page.as_uri() + hash)
        self.wait("#browser[data-ready]")

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", selector)

    def wait(self, selector: str) -> WebElement:
        """The first of the elements that are shown."""
        return self.until(lambda: [e for e in self.all(selector) if e.is_displayed()])[0]

    def until(self, found: Callable[[], T], seconds: float = 10) -> T:
        """What is found, once it is something."""
        return WebDriverWait(self.driver, seconds, 0.02, [StaleElementReferenceException]).until(lambda _: found())

    def press(self, *keys: str) -> None:
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def search(self, text: str) -> None:
        box = self.wait("#browser-text")
        box.clear()
        box.send_keys(text)

    def counts(self, text: str) -> None:
        self.until(lambda: self.wait("#browser-count").text == text)

    def texts(self, selector: str) -> list[str]:
        """Of all elements, in one question."""
        ask = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return list(self.driver.execute_script(ask, selector))

    def sources(self) -> list[str]:
        return self.texts(".chain-head .source")

    def opened(self, source: str, inside: str = ".tree") -> WebElement:
        """The body of the chain with that id, alone in the list, once it has what is `inside`."""
        self.search(source)
        self.until(lambda: self.sources() == [source])
        self.wait(".chain-head").click()
        self.wait(f".chain-body {inside}")
        return self.wait(".chain-body")

    def focused(self) -> str:
        return str(self.driver.switch_to.active_element.get_attribute("class"))

    def width(self) -> int:
        return int(self.driver.execute_script("return document.documentElement.scrollWidth"))

    def emulate(self, command: str, **settings: object) -> None:
        self.driver.execute_cdp_cmd(f"Emulation.{command}", settings)


@contextmanager
def watched(driver: Chrome, page: Path) -> Iterator[Reader]:
    """The opened page. After that, it has requested nothing, logged nothing, and executed no text."""
    logged(driver, "browser")
    logged(driver, "performance")
    reader = Reader(driver, page)
    reader.emulate("setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
    reader.emulate("setEmulatedMedia", features=[], media="")
    reader.open()
    yield reader
    assert logged(driver, "browser") == []
    requests = [json.loads(entry["message"])["message"] for entry in logged(driver, "performance")]
    addresses = [
        asked["params"]["request"]["url"] for asked in requests if asked["method"] == "Network.requestWillBeSent"
    ]
    assert any(address.startswith("file://") for address in addresses)
    assert not [address for address in addresses if not address.startswith(("file://", "data:", "about:"))]
    assert "owned" not in driver.title
    assert not driver.find_elements("css selector", "main img, main script")


def without_scripts(driver: Chrome, page: Path) -> str:
    """What the interactive part of a page says in a browser that runs no scripts."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(page.as_uri())
        return driver.find_element("css selector", "#browser").text
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def logged(driver: Chrome, kind: str) -> list[dict[str, str]]:
    """What was logged since the last call."""
    return list(driver.get_log(kind))  # type: ignore[no-untyped-call]
