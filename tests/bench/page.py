"""What the page of a run costs its reader: until it is seen, until its chains can be used, and to filter them.

Steps are words drawn at random, so that they are as long as a policy's; rollouts are the oracle's, which are short.
Filters are timed in the page, from the change of a field until the list is drawn again.
"""

import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome

from pipeline.__main__ import compose_label
from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from tests.chromium import INSTALLED, REMEDY, chromium
from tests.runtime.in_process import label_in_process

PROBLEMS = 2_500
CHAINS = 4
STEPS = 8
WORDS = 16
"""Of a step."""
VOCABULARY = 3_000
ROLLOUTS = 4
TURNS = 7
_READY = "return document.getElementById('browser')?.dataset.ready !== undefined"
_PAINT = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
_FILTER = """
const [id, value, done] = arguments;
const field = document.querySelector(id);
const before = performance.now();
if (field.type === "radio") field.checked = true;
else field.value = value;
field.dispatchEvent(new Event("input", { bubbles: true }));
document.getElementById("browser-list").getBoundingClientRect();
const drawn = performance.now() - before;
setTimeout(() => done(drawn));
"""


def page() -> None:
    """Prints the figures; says so where there is no browser."""
    print(f"\npage: {PROBLEMS * CHAINS:,} chains of {STEPS} steps, in Chromium")
    if not INSTALLED:
        print(f"  {REMEDY}")
        return
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
        folder = Path(name)
        _label(folder)
        out = folder / "report.html"
        began, worked = time.monotonic(), time.process_time()
        report(ReportConfig(run_dir=str(folder / "run"), out=str(out)))
        seconds, of_processor = time.monotonic() - began, time.process_time() - worked
        print(
            f"  written in {seconds:.1f} s ({of_processor:.1f} s of processor time), {out.stat().st_size / 1e6:.1f} MB"
        )
        driver = chromium()
        try:
            _report(driver, out)
        finally:
            driver.quit()


def _report(driver: Chrome, out: Path) -> None:
    paints, ready = zip(*(_opened(driver, out) for _ in range(TURNS)), strict=True)
    print(f"  first paint      {_spread(paints)}")
    print(f"  list can be used {_spread(ready)}")
    word = _words(random.Random(0), 1)
    fields = {
        "by outcome": ("#browser-filters input[value=w]", ["w"]),
        "by drop": ("#browser-drop", ["0.25", "0.5", "0.75", "0.9"]),
        "by text": ("#browser-text", [word, f"{word} ", "no such text", "1234", "answer is 12"]),
        "by order": ("#browser-sort", ["drop", "uncertainty", "least", "input"]),
    }
    for name, (field, values) in fields.items():
        _opened(driver, out)
        _read_texts(driver)
        print(f"  filter {name:<10}{_spread([_filtered(driver, field, value) for value in values * TURNS])}")


def _opened(driver: Chrome, out: Path) -> tuple[float, float]:
    """Milliseconds until something is seen, and until the list is drawn."""
    driver.get("about:blank")
    driver.get(out.as_uri())
    ready = _wait(driver)
    return float(_asked(driver, _PAINT)), ready


def _wait(driver: Chrome) -> float:
    while not _asked(driver, _READY):
        time.sleep(0.01)
    return float(_asked(driver, "return performance.now()"))


def _read_texts(driver: Chrome) -> None:
    """The page shows how many of its texts it has read only after a reader has opened a text."""
    _filtered(driver, "#browser-text", "no such text")
    while "read" in driver.find_element("id", "browser-count").text:
        time.sleep(0.05)
    _filtered(driver, "#browser-text", "")


def _filtered(driver: Chrome, field: str, value: str) -> float:
    return float(driver.execute_async_script(_FILTER, field, value))


def _asked(driver: Chrome, script: str) -> Any:
    return driver.execute_script(script)


def _spread(found: Any) -> str:
    return f"{statistics.median(found):7.0f} ms (at most {max(found):.0f})"


def _label(folder: Path) -> None:
    luck = random.Random(0)
    data = folder / "rows.jsonl"
    with data.open("w", encoding="utf-8") as file:
        for problem in range(PROBLEMS):
            text = f"{_words(luck, 3 * WORDS)}, {problem}?"
            for chain in range(CHAINS):
                steps = [*(_words(luck, WORDS) for _ in range(STEPS - 1)), f"The answer is {problem + chain % 2}."]
                row = {"id": f"{problem}-{chain}", "problem": text, "answer": str(problem), "steps": steps}
                file.write(json.dumps(row) + "\n")
    settings = ["policy=oracle", "estimator=fixed", f"sampling.rollouts={ROLLOUTS}"]
    label_in_process(compose_label([f"data.path={data}", f"run_dir={folder / 'run'}", *settings]))


def _words(luck: random.Random, count: int) -> str:
    """Made-up words, the first of the vocabulary more often than the last."""
    ranks = (int(VOCABULARY ** luck.random()) for _ in range(count))
    return " ".join("".join(chr(97 + (rank * 7919 // 26**at) % 26) for at in range(2 + rank % 7)) for rank in ranks)
