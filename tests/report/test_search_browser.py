"""The problems and trees on the page of a search, in Chromium: what a reader does with them, and what text of a model cannot
do."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys

from pipeline.analysis.browser.searches import build_search_browser
from pipeline.analysis.searches.trees import SearchedProblem
from pipeline.display.document import Page
from pipeline.display.page import html
from tests.report.reader import ARABIC, IMAGE, SCRIPT, TURNED, Reader, watched, without_scripts
from tests.searches.trees import grown_tree, written_problem

pytestmark = pytest.mark.slow

LARGE = 5_000
MANY = 45
"""Problems of one step: more than a page of the list has."""
PROBLEMS = MANY + 6


def problems() -> list[SearchedProblem]:
    chains = [
        ["a one\n", "b two\n", "c three. The answer is 7."],
        ["a one\n", "b two\n", "d four. The answer is 5."],
        ["a one\n", "x five\n", "y six. The answer is 5."],
        ["z seven. The answer is 5."],
    ]
    hostile = [[f"We add. {SCRIPT}\n", f"{IMAGE} Two. {ARABIC}"], [TURNED], [f"{SCRIPT}\n", "The answer is 5."]]
    large = grown_tree(7, LARGE)
    named = [
        written_problem(chains, 0, source_id="branched", confidence=0.875, trusted=True),
        written_problem(hostile, 1, source_id=f"hostile-{IMAGE}", problem=f"What? {IMAGE}{SCRIPT}", final_answer=IMAGE),
        SearchedProblem(search=written_problem([["a"]], 2, source_id="large").search, tree=large, answers=()),
        written_problem([], 3, source_id="nothing", final_answer=None, outcome=None, verdict=None, confidence=None),
        written_problem([["a"], ["b"]], 4, source_id="wrong", outcome=False, trusted=False, final_answer="5"),
        written_problem([[f"step {number}\n" for number in range(1, 61)]], 5, source_id="deep"),
    ]
    return named + [written_problem([["a"]], row, source_id=f"many-{row}") for row in range(6, PROBLEMS)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "page.html"
    browser = build_search_browser([problems()], PROBLEMS, 10_000)
    path.write_bytes(html(Page(title="run", kind="search", inset=browser)))
    return path


@pytest.fixture
def reader(driver: Chrome, page: Path) -> Iterator[Reader]:
    with watched(driver, page) as found:
        yield found


def rows(reader: Reader) -> list[str]:
    """The rows of the tree: steps with their number, score and text, groups in words."""
    ask = """return [...document.querySelectorAll('.tree-row')].map((row) => row.classList.contains('step')
      ? [row.querySelector('.tree-number').lastChild.textContent, row.querySelector('.chip b').textContent,
         row.querySelector('.tree-text .prose').textContent].join(' ') : row.querySelector('.tree-group').textContent)"""
    return list(reader.driver.execute_script(ask))


def focused(reader: Reader) -> str:
    return str(reader.driver.switch_to.active_element.get_attribute("data-key"))


def test_filters_and_orders_list_the_problems_that_they_name(reader: Reader) -> None:
    reader.counts(f"{PROBLEMS} problems")
    reader.wait(".browser-outcomes input[value=w] + span").click()
    reader.counts(f"1 of {PROBLEMS} problems")
    assert reader.sources() == ["wrong"]
    reader.wait(".browser-outcomes input[value=o] + span").click()
    assert reader.sources() == ["nothing"]
    reader.wait(".browser-outcomes input[value=''] + span").click()
    for name, found in {"trusted": ["branched"], "untrusted": ["wrong"], "unanswered": ["nothing"]}.items():
        reader.open(f"#problems?which={name}")
        assert reader.sources() == found
    reader.open("#problems?sort=sure")
    assert reader.sources()[0] == "branched"
    reader.open("#problems?sort=unsure")
    assert reader.sources()[0] == "nothing"
    reader.open("#problems?sort=steps")
    assert reader.sources()[:3] == ["large", "deep", "branched"]
    reader.open("#problems?sort=constructor&which=__proto__&outcome=x")
    reader.counts(f"{PROBLEMS} problems")
    reader.search("no such problem")
    reader.counts(f"0 of {PROBLEMS} problems")
    reader.wait("#browser-all").click()
    reader.counts(f"{PROBLEMS} problems")


def test_a_tree_shows_the_chosen_chain_and_opens_what_else_was_sampled(reader: Reader) -> None:
    reader.opened("branched", ".chain-facts")
    path = ["1 1.00 a one", "2 0.50 b two", "3 0.33 c three. The answer is 7."]
    first, second, third = "or 1 other step, best 1.00", "or 1 other step, best 0.50", "or 1 other step, best 0.33"
    assert rows(reader) == [path[0], first, path[1], second, path[2], third]
    assert reader.texts(".tree-row.taken .tree-text .prose") == ["a one", "b two", "c three. The answer is 7."]
    assert [row.split()[0] for row in reader.texts(".tree-row.weak .tree-number")] == ["step"]
    assert reader.texts(".tree-row.weak .tree-text .prose") == ["c three. The answer is 7."]
    assert reader.texts(".tree-row .pill.differs") == ["weakest step"]
    reader.all(".tree-row.group")[1].click()
    assert rows(reader)[4] == "2 0.50 x five"
    assert [row.get_attribute("aria-level") for row in reader.all(".tree-row")][2:6] == ["1", "2", "3", "1"]
    assert reader.wait(".tree").get_attribute("aria-label") == "Tree of the problem"
    assert reader.texts(".tree-row.step:not(.taken) .tree-marks small")[-1] == " +1 step, best end 0.33"
    reader.all(".tree-row.step:not(.taken)")[0].click()
    assert rows(reader)[5] == "3 0.33 y six. The answer is 5."
    buttons = reader.all(".tree-bar button")
    buttons[0].click()
    assert len(rows(reader)) == 7 + 3
    buttons[1].click()
    assert rows(reader) == [path[0], first, path[1], second, path[2], third]
    reader.wait(".tree-picture .dot[data-at='5']").click()
    assert "x five" in reader.driver.switch_to.active_element.text
    cells = reader.texts(".tree-answers td")
    assert [cells[at : at + 2] for at in (0, 4)] == [["✗ wrong,  5", "3"], ["✓ right,  7 chosen", "1"]]


@pytest.mark.nightly
def test_scores_of_a_long_chain_do_not_cover_each_other(reader: Reader) -> None:
    reader.opened("deep", ".chain-facts")
    reader.wait(".tree-picture .dot-score")
    places = [label.rect for label in reader.all(".tree-picture .dot-score")]
    assert len(places) > 10
    places.sort(key=lambda place: place["x"])
    assert all(one["x"] + one["width"] < other["x"] for one, other in pairwise(places))


def test_hostile_text_stays_text(reader: Reader) -> None:
    reader.opened(f"hostile-{IMAGE}", ".chain-facts")
    reader.wait(".tree-bar button").click()
    body = reader.wait(".chain-body").text
    assert f"What? {IMAGE}{SCRIPT}" in body
    assert f"We add. {SCRIPT}" in body
    assert f"{IMAGE} Two. {ARABIC}" in body
    assert "It is [U+202E]21[U+202D]." in body
    assert not reader.all("main img, main script")


@pytest.mark.nightly
def test_keys_move_through_problems_and_through_a_tree(reader: Reader) -> None:
    reader.press("/")
    assert reader.driver.switch_to.active_element.get_attribute("id") == "browser-text"
    reader.press("branched", Keys.ENTER)
    assert "chain-head" in reader.focused()
    reader.press(Keys.ENTER)
    reader.wait(".tree")
    reader.press(*[Keys.TAB] * 3)
    assert "tree-row" in reader.focused()
    reader.press(Keys.ARROW_DOWN)
    assert focused(reader) == "g0"
    reader.press(Keys.ARROW_RIGHT)
    assert reader.driver.switch_to.active_element.get_attribute("aria-expanded") == "true"
    reader.press(Keys.ARROW_RIGHT)
    assert "z seven" in reader.driver.switch_to.active_element.text
    reader.press(Keys.ARROW_LEFT)
    assert focused(reader) == "g0"
    reader.press(Keys.ARROW_LEFT)
    assert reader.driver.switch_to.active_element.get_attribute("aria-expanded") == "false"
    reader.press(Keys.END)
    assert "or 1 other step, best 0.33" in reader.driver.switch_to.active_element.text
    reader.press(Keys.ENTER, Keys.ARROW_DOWN)
    assert "d four" in reader.driver.switch_to.active_element.text
    reader.press(Keys.HOME)
    assert "a one" in reader.driver.switch_to.active_element.text
    assert len(reader.all(".tree-row[tabindex='0']")) == 1
    reader.press(Keys.ESCAPE)
    assert not reader.all(".chain-head[aria-expanded=true]")
    assert "chain-head" in reader.focused()


@pytest.mark.nightly
def test_a_large_tree_opens_completely(reader: Reader) -> None:
    reader.opened("large", ".chain-facts")
    reader.wait(".tree-row")
    steps = int(reader.wait(".tree-bar p").text.split()[0].replace(",", ""))
    assert steps > LARGE / 2
    assert len(reader.all(".tree-picture .dot")) == steps + 1
    reader.wait(".tree-bar button").click()
    reader.until(lambda: len(reader.all(".tree-row.step")) == steps, 60)
    reader.driver.execute_script("document.querySelector('.tree-row').focus()")
    reader.press(Keys.END)
    assert len(reader.all(".tree-row[tabindex='0']")) == 1


@pytest.mark.nightly
def test_many_next_steps_come_in_parts(driver: Chrome, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    wide = written_problem([[f"step {at}"] for at in range(120)], 0, source_id="wide")
    path.write_bytes(html(Page(title="run", kind="search", inset=build_search_browser([[wide]], 1, 1))))
    with watched(driver, path) as reader:
        reader.opened("wide", ".chain-facts")
        assert rows(reader) == ["1 1.00 step 0", "or 119 other steps, best 1.00"]
        reader.wait(".tree-row.group").click()
        assert len(reader.all(".tree-row.step")) == 51
        assert rows(reader)[-1] == "69 more: Enter shows 50"
        reader.all(".tree-row.more")[0].click()
        reader.all(".tree-row.more")[0].click()
        assert len(reader.all(".tree-row.step")) == 120
        assert not reader.all(".tree-row.more")


def test_a_problem_without_a_step_says_so(reader: Reader) -> None:
    reader.opened("nothing", ".chain-facts")
    assert reader.texts(".chain-body .browser-note") == ["No step was sampled."]
    assert "no answer" in reader.texts(".chain-head .pill")


@pytest.mark.nightly
def test_a_phone_scrolls_down_only(reader: Reader) -> None:
    reader.emulate("setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
    for name in ("branched", f"hostile-{IMAGE}"):
        reader.opened(name, ".chain-facts")
        reader.wait(".tree-bar button").click()
        assert reader.width() == 360


def test_without_scripts_a_line_says_so(driver: Chrome, page: Path) -> None:
    assert "samples/*.parquet" in without_scripts(driver, page)
