"""The browser of chains, in Chromium: what a reader does with it, and what text of a model cannot do."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest
from selenium.webdriver import ActionChains, Chrome, Keys

from pipeline.engines import oracle
from tests.audit.runs import labels
from tests.conftest import write_rows
from tests.report.reader import ARABIC, IMAGE, PAYLOADS, SCRIPT, Reader, without_scripts
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label

pytestmark = pytest.mark.slow

LATEX = r"So $\frac{3}{4} < \sqrt{x}$ & \(x^2 \le 1\)."
EMOJI = "👩‍👩‍👧‍👦 has 🍎🍎🍎."
SUMS = 50
"""Problems with a right and a wrong chain each: more than a page of the list has."""
LONG = 1_000_000
CHAINS = 2 * SUMS + 6 + len(PAYLOADS)


def rows() -> list[dict[str, object]]:
    sums: list[dict[str, object]] = [
        {
            "id": f"sum-{n}-{'right' if last == 2 * n + 1 else 'wrong'}",
            "problem": f"What is {n} + {n} + 1?",
            "answer": str(2 * n + 1),
            "steps": [f"{n} + {n} = {2 * n}.", f"{2 * n} + 1 = {last}.", f"The answer is {last}."],
        }
        for n in range(SUMS)
        for last in (2 * n + 1, 2 * n + 3)
    ]
    others = {
        f"hostile-{IMAGE}": [f"We add. {SCRIPT}", f"{IMAGE} Two.", "The answer is 7."],
        "arabic": [ARABIC, "The answer is 7."],
        "latex": [LATEX, "The answer is 7."],
        "emoji": [EMOJI, "The answer is 7."],
        "long": ["We count: " + "x" * LONG, "The answer is 7."],
        "unfinished": ["3 + 4 is", "what it is."],
    }
    others |= {f"payload {at} {text}": [text, f"{text}.", text] for at, text in enumerate(PAYLOADS)}
    problem = f"What is 3 + 4? {IMAGE}"
    return sums + [{"id": name, "problem": problem, "answer": "7", "steps": steps} for name, steps in others.items()]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    data = write_rows(folder / "rows.jsonl", rows())
    # With this seed, rollouts of the hostile chain are wrong, and so end in what `_wrong` says.
    settings = [
        *("policy=oracle", "policy.oracle.seed=1", "estimator=fixed", "sampling.rollouts=4"),
        f"data.max_chars={2 * LONG}",
    ]
    with patch.object(oracle, "_wrong", lambda *_: f"none, {IMAGE}{SCRIPT}"):
        label_in_process(compose_label([f"data.path={data}", f"run_dir={folder / 'run'}", *settings]))
    return folder / "run"


def test_filters_by_outcome_drop_and_text_count_what_the_labels_say(reader: Reader, run_dir: Path) -> None:
    stored = labels(run_dir)
    reader.counts(f"{len(stored)} chains")
    reader.wait(".browser-outcomes input[value=w] + span").click()
    reader.counts(f"{stored.filter(~pl.col('outcome')).height} of {len(stored)} chains")
    reader.wait(".browser-outcomes input[value=''] + span").click()
    before = pl.concat_list("root_value", pl.col("value").list.head(pl.col("value").list.len() - 1))
    known = stored.filter(pl.col("value").list.eval(pl.element().is_null()).list.any().not_())
    fallen = known.filter((before.list.eval(pl.element()) - pl.col("value")).list.max() >= 0.5 - 1e-9)
    reader.search("sum-")
    reader.counts(f"{2 * SUMS} of {len(stored)} chains")
    reader.wait("#browser-drop").send_keys(*[Keys.ARROW_RIGHT] * 10)
    reader.counts(f"{fallen.filter(pl.col('source_id').str.starts_with('sum-')).height} of {len(stored)} chains")
    assert reader.wait("#browser-drop-text").text == "0.50"


def test_a_click_on_a_bar_lists_its_chains(reader: Reader, run_dir: Path) -> None:
    wanted: Counter[str] = Counter()
    for each in labels(run_dir).to_dicts():
        outcome = {True: "r", False: "w", None: "o"}[each["outcome"]]
        before_ends = [at for at, origin in enumerate(each["origin"]) if origin != "terminal"]
        values = [each["root_value"], *each["value"]]
        falls = [before - after for before, after in pairwise(values) if None not in (before, after)]
        # A value on an edge belongs to the bin above it; the last bin has 1 too.
        bars = {f"v{min(19, int(20 * each['value'][at]))}" for at in before_ends if each["value"][at] is not None}
        bars |= {{1: "good", 0: "bad", 2: "neutral", None: "uncertain"}[each["label"][at]] for at in before_ends}
        bars |= {f"d{min(19, int(20 * max(0.0, *falls)))}"} if falls else set()
        wanted.update(f"outcome={outcome}&bar={bar}" for bar in bars)
    links = [str(link.get_dom_attribute("href")).partition("#chains?")[2] for link in reader.all("figure a")]
    assert {link for link in links if "outcome" in link} == {*wanted}
    for query, chains in wanted.items():
        reader.driver.execute_script("location.hash = arguments[0]", f"chains?{query}")
        reader.counts(f"{chains} of {CHAINS} chains")
    query = next(query for query in wanted if "bar=d" in query)
    bar = reader.wait(f"figure a[href='#chains?{query}']")
    ActionChains(reader.driver, duration=0).scroll_to_element(bar).click(bar).perform()
    reader.counts(f"{wanted[query]} of {CHAINS} chains")
    assert reader.wait("#browser-bar").get_attribute("value") == query.partition("bar=")[2]


def test_text_is_found_in_problems_steps_and_ids_whatever_its_case(reader: Reader) -> None:
    for text, found in {
        "what IS 7 + 7 ": 2,
        "84 + 1 = 87.": 1,
        "SUM-9-wrong": 1,
        ARABIC: 1,
        r"\frac{3}": 1,
        "no such": 0,
    }.items():
        reader.search(text)
        reader.counts(f"{found} of {CHAINS} chains")
    reader.wait("#browser-all").click()
    reader.counts(f"{CHAINS} chains")
    assert not reader.all("#browser-all")[0].is_displayed()


def test_orders_put_the_largest_drop_and_the_most_uncertain_first(reader: Reader) -> None:
    first = set()
    for name, key in {
        "drop": Keys.ARROW_DOWN,
        "uncertainty": Keys.ARROW_DOWN,
        "least": Keys.END,
        "input": Keys.HOME,
    }.items():
        reader.wait("#browser-sort").send_keys(key)
        assert reader.wait("#browser-sort").get_attribute("value") == name
        first.add(reader.sources()[0])
        if name == "drop":
            shown = [float(lost.split()[1]) for lost in reader.texts(".chain-head .lost:not(.none)")]
            assert shown == sorted(shown, reverse=True)
            assert len(set(shown)) > 1
    assert reader.sources()[0] == "sum-0-right"
    assert len(first) > 1


def test_a_chain_shows_its_steps_as_they_are_stored_and_a_step_its_rollouts(reader: Reader, run_dir: Path) -> None:
    body = reader.opened("sum-7-wrong")
    (stored,) = labels(run_dir).filter(pl.col("source_id") == "sum-7-wrong").to_dicts()
    assert reader.texts(".tree-text > .prose") == stored["steps"]
    assert reader.texts(".tree-row.step .chip b") == [
        f"{value:.2f}" for value in (stored["root_value"], *stored["value"])
    ]
    counts = [f"{right}/{of}" for right, of in zip(stored["n_correct"], stored["n_rollouts"], strict=True)]
    assert reader.texts(".tree-row.step .tree-facts")[1:-1] == counts[:-1]
    values = [stored["root_value"], *stored["value"]]
    steepest = max(range(1, len(values)), key=lambda step: values[step - 1] - values[step])
    lows, highs = ([stored[f"root_{name}"], *stored[name]] for name in ("low", "high"))
    sure = [f"step {steepest}"] * (highs[steepest] < lows[steepest - 1])
    assert (
        reader.texts(".tree-row.weak .tree-number") == reader.texts(".tree-row:has(.pill.differs) .tree-number") == sure
    )
    assert "wrong" in body.text
    first = reader.all(".tree-row.step")[1]
    ActionChains(reader.driver, duration=0).move_to_element(first).perform()
    assert f"{stored['n_correct'][0]} of 4 graded rollouts correct" in reader.wait(".numbers").text
    first.click()
    reader.wait(".example")
    log = pl.read_parquet(run_dir / "rollouts" / "*.parquet").filter(pl.col("prefix_id") == stored["prefix_ids"][0])
    examples = reader.texts(".example-text")
    assert len(examples) == 3
    assert set(examples) <= set(log["text"])
    verdicts = [verdict.split(" · ")[0] for verdict in reader.texts(".example .verdict")]
    assert {verdict.replace(" ", "_") for verdict in verdicts} <= set(log["verdict"].cast(pl.String).to_list())
    reader.all(".tree-row.step")[1].click()
    assert not reader.all(".rollouts")


def test_hostile_text_stays_text_in_ids_problems_steps_and_rollouts(reader: Reader) -> None:
    body = reader.opened(f"hostile-{IMAGE}")
    assert SCRIPT in body.text
    assert f"{IMAGE} Two." in body.text
    assert f"What is 3 + 4? {IMAGE}" in body.text
    for at in range(len(reader.all(".tree-row.step"))):
        reader.all(".tree-row.step")[at].click()
    reader.until(lambda: f"none, {IMAGE}{SCRIPT}" in body.text)


@pytest.mark.parametrize("width", [390, 1200])
def test_no_payload_is_obeyed_or_widens_the_page(reader: Reader, width: int) -> None:
    reader.emulate("setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    reader.search("payload ")
    reader.counts(f"{len(PAYLOADS)} of {CHAINS} chains")
    reader.driver.execute_script("for (const head of document.querySelectorAll('.chain-head')) head.click();")
    reader.until(lambda: len(reader.all(".tree")) == len(PAYLOADS))
    assert len(reader.all(".tree-row.step")) == 4 * len(PAYLOADS)
    assert {*PAYLOADS} <= set(reader.texts(".tree-text > .prose"))
    assert reader.width() <= width


def test_other_scripts_formulas_and_very_long_steps_are_shown(reader: Reader) -> None:
    for name, text in {"latex": LATEX, "emoji": EMOJI, "arabic": ARABIC}.items():
        assert text in reader.opened(name).text
    assert reader.wait(".tree-text > .prose[dir=auto]").value_of_css_property("direction") == "rtl"
    long = reader.opened("long").text
    assert f"... ({LONG + 10:,} characters, full text in labels/*.parquet)" in long
    assert len(long) < LONG / 100
    assert "open" in reader.opened("unfinished").text


def test_keys_search_move_open_and_close(reader: Reader) -> None:
    reader.press("/")
    assert reader.driver.switch_to.active_element.get_attribute("id") == "browser-text"
    reader.press("sum-7-", Keys.ENTER)
    assert "chain-head" in reader.focused()
    reader.press("j", "k", Keys.ENTER)
    reader.wait(".chain-body .tree")
    reader.press(Keys.ARROW_DOWN, "j", Keys.ENTER)
    assert "tree-row" in reader.focused()
    reader.wait(".example")
    assert reader.wait(".numbers").is_displayed()
    reader.press(Keys.ESCAPE)
    assert not reader.all(".tree-row[aria-expanded=true]")
    reader.press(Keys.ESCAPE)
    assert not reader.all(".chain-head[aria-expanded=true]")
    assert "chain-head" in reader.focused()


def test_pages_of_the_list_turn_by_button_and_by_key(reader: Reader) -> None:
    first = reader.sources()
    reader.wait("#browser-later").click()
    assert not set(first) & set(reader.sources())
    reader.press("k")
    assert reader.sources() == first
    assert reader.wait("#browser-place").text == f"1–{len(first)} of {CHAINS}"


def test_an_address_brings_back_what_was_open(reader: Reader, run_dir: Path) -> None:
    reader.opened("sum-41-wrong")
    reader.until(lambda: "open=" in reader.driver.current_url)
    reader.open("#" + reader.driver.current_url.partition("#")[2])
    reader.wait(".chain-body .tree")
    assert reader.sources() == ["sum-41-wrong"]
    (chain_id,) = labels(run_dir).filter(pl.col("source_id") == "sum-45-right")["chain_id"]
    reader.open(f"#chains?open={chain_id}")
    reader.wait(".chain.open .tree")
    assert reader.wait(".chain.open .source").text == "sum-45-right"
    reader.open("#chains?drop=nan&sort=constructor&outcome=x")
    reader.counts(f"{CHAINS} chains")


def test_a_phone_scrolls_down_only_and_a_tap_reports_the_numbers(reader: Reader) -> None:
    reader.emulate("setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
    assert reader.width() == 360
    for name in ("long", f"hostile-{IMAGE}", "latex"):
        reader.opened(name)
        for at in range(len(reader.all(".tree-row.step"))):
            reader.all(".tree-row.step")[at].click()
        assert reader.wait(".numbers").is_displayed()
        assert reader.width() == 360


def test_dark_mode_and_paper_have_their_own_look(reader: Reader) -> None:
    def ground() -> str:
        return reader.wait(".browser-list").value_of_css_property("background-color")

    light = ground()
    reader.emulate("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert ground() != light
    reader.opened("sum-7-right")
    reader.search("sum-7")
    reader.counts(f"2 of {CHAINS} chains")
    reader.emulate("setEmulatedMedia", media="print", features=[])
    assert [chain.is_displayed() for chain in reader.all(".chain")] == [True, False]
    assert not reader.all("#browser-filters")[0].is_displayed()
    assert all(numbers.is_displayed() for numbers in reader.all(".chain.open .numbers"))


def test_without_scripts_a_line_says_so(driver: Chrome, page: Path) -> None:
    shown = without_scripts(driver, page)
    assert "labels/*.parquet" in shown
    assert "being unpacked" not in shown
