"""`report tree=PROBLEM`: where the page is, what is in it, and what a reader does with it in Chromium."""

import base64
import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, Keys

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.analysis.browser.parts import MOST_NODES
from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from pipeline.analysis.trees.report import build_tree, trees_json
from pipeline.config.changes import AuditConfig
from pipeline.core.errors import UsageError
from pipeline.display.document import Page
from pipeline.display.page import html
from pipeline.storage.starts import is_tree_page, tree_page
from pipeline.storage.stored_trees import ProblemTree
from pipeline.trees.tree import LabelledSteps, StepLabel, WrittenRollout
from tests.report.reader import ARABIC, IMAGE, SCRIPT, TURNED, Reader, watched, without_scripts
from tests.runtime.adaptive import labels, settings, sums
from tests.runtime.in_process import label_in_process
from tests.searches.handmade import Ended, Searched, search_run
from tests.trees.growing import chain, grown, rollout

pytestmark = pytest.mark.slow

LARGE = 5_000
VALUE = StepLabel(value=0.75, value_sd=0.1, correct=3, rollouts=4, label=1)
CHAIN = chain("a one", "b two", "7", labels=[VALUE, VALUE, VALUE._replace(value=0.25, label=0), StepLabel(label=1)])
LOG = [
    rollout("", "a one\nc three\n5", "incorrect"),
    rollout("", "d four\n5", "incorrect", 1),
    *(rollout("a one", "b two\n7", number=number) for number in (2, 3)),
    rollout("a one|b two", "x\n5", "timeout", 4),
]


def problem(
    chains: list[LabelledSteps], log: list[WrittenRollout], text: str = "What is it?", gold: str = "7"
) -> ProblemTree:
    return ProblemTree(problem=text, gold_answer=gold, source_ids=("one", "two"), tree=grown(chains, log))


def written(path: Path, *found: ProblemTree) -> Path:
    path.write_bytes(html(Page(title="run", kind="tree", inset=build_tree(found, 1.0))))
    return path


def large() -> ProblemTree:
    """A tree of 5,000 steps: wide at first, and some of it deep."""
    log = [
        rollout("a one", f"way {number % 70}\nstep {number}\nend {number}", number=number) for number in range(2_600)
    ]
    log.append(rollout("a one", "\n".join(f"line {number}" for number in range(300)), number=9_999))
    return problem([CHAIN], log)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("trees")
    hostile = [rollout("", f"{SCRIPT}\n{IMAGE} {ARABIC}\n{TURNED}")]
    return {
        "small": written(folder / "small.html", problem([CHAIN], LOG)),
        "large": written(folder / "large.html", large()),
        "hostile": written(folder / "hostile.html", problem([CHAIN], hostile, f"What? {IMAGE}{SCRIPT}", IMAGE)),
        "units": written(folder / "units.html", problem([CHAIN], LOG), problem([CHAIN], LOG[:1])),
    }


@pytest.fixture
def reader(driver: Chrome, pages: dict[str, Path]) -> Iterator[Reader]:
    with watched(driver, pages["small"]) as found:
        yield found


def rows(reader: Reader) -> list[str]:
    """The rows: their indentation, value, text and counts."""
    ask = """return [...document.querySelectorAll('.tree-row')].map((row) => '  '.repeat(row.ariaLevel - 1) +
      (row.classList.contains('step') ? [row.querySelector('.chip b').textContent,
         row.querySelector('.tree-text').firstChild.textContent,
         '(' + row.querySelector('.tree-facts').textContent + ')'].join(' ') : row.textContent))"""
    return list(reader.driver.execute_script(ask))


def focused(reader: Reader) -> str:
    return str(reader.driver.switch_to.active_element.text).replace("\n", " ")


def test_a_tree_shows_values_counts_and_labels_of_each_step(reader: Reader) -> None:
    assert rows(reader) == [
        "0.75 the problem (0 of 2 right · 2 began here)",
        "0.75 a one (2 of 3 right · 2 began here)",
        "  or 1 other step, best 0.08",
        "    ~0.08 d four (0 of 1 right)",
        "    0.00 5 (0 of 1 right)",
        "0.25 b two (2 of 2 right · 1 not graded)",
        "  or 1 other step, best 0.30",
        "    ~0.30 c three (0 of 1 right)",
        "    0.00 5 (0 of 1 right)",
        "1.00 7 (2 of 2 right)",
        "  or 1 other step, best 0.84",
        "    ~0.84 x (0 of 0 right · 1 not graded)",
        "    ~0.84 5 (0 of 0 right · 1 not graded)",
    ]
    assert reader.texts(".tree-row.taken .tree-text .prose") == ["a one", "b two", "7"]
    assert reader.texts(".tree-row .label") == ["+ good", "− bad", "+ good"]
    assert reader.texts(".tree-row .tree-end") == ["✗ ends, wrong", "✗ ends, wrong", "✓ ends, right", "? ends, open"]
    hint = reader.texts(".tree-row.step .numbers")[1]
    assert "unbiased trials: 2 of 3 right" in hint
    assert "±0.10" in hint
    assert reader.texts(".chain-facts dd")[:2] == ["7", "one, two"]


@pytest.mark.nightly
def test_arrows_move_through_a_tree_and_open_and_close_it(reader: Reader) -> None:
    reader.driver.execute_script("document.querySelector('.tree-row').focus()")
    reader.press(Keys.ARROW_DOWN)
    assert "a one" in focused(reader)
    reader.press(*[Keys.ARROW_DOWN] * 2)
    assert "d four" in focused(reader)
    reader.press(Keys.ARROW_LEFT)
    assert reader.driver.switch_to.active_element.get_attribute("aria-expanded") == "false"
    assert "+1 step" in focused(reader)
    assert len(rows(reader)) == 12
    reader.press(Keys.ARROW_LEFT)
    assert "or 1 other step" in focused(reader)
    reader.press(Keys.ARROW_LEFT)
    assert len(rows(reader)) == 11
    reader.press(Keys.ARROW_DOWN)
    assert "b two" in focused(reader)
    reader.press(Keys.END, Keys.ARROW_LEFT, Keys.ARROW_UP)
    assert "1.00" in focused(reader)
    reader.press(Keys.HOME)
    assert "the problem" in focused(reader)
    assert len(reader.all(".tree-row[tabindex='0']")) == 1
    close = reader.all(".tree-bar button")[1]
    close.click()
    assert len(rows(reader)) == 7


@pytest.mark.nightly
def test_screen_readers_hear_a_tree(reader: Reader) -> None:
    tree = reader.wait(".tree")
    assert (tree.get_attribute("role"), tree.get_attribute("aria-label")) == ("tree", "Tree of the problem")
    found = [(row.get_attribute("role"), row.get_attribute("aria-level")) for row in reader.all(".tree-row")][:3]
    assert found == [("treeitem", "1"), ("treeitem", "1"), ("treeitem", "2")]
    assert reader.texts(".chip .unseen").count("estimate ") == 4


def test_hostile_text_stays_text(driver: Chrome, pages: dict[str, Path]) -> None:
    with watched(driver, pages["hostile"]) as reader:
        text = reader.wait("#browser-one").text
        assert f"What? {IMAGE}{SCRIPT}" in text
        assert SCRIPT in reader.wait(".tree").text
        assert f"{IMAGE} {ARABIC}" in text
        assert "It is [U+202E]21[U+202D]." in text
    raw = pages["hostile"].read_text("utf-8")
    assert IMAGE not in raw
    assert "owned" not in raw


@pytest.mark.nightly
def test_of_a_large_tree_only_what_is_open_is_drawn(driver: Chrome, pages: dict[str, Path]) -> None:
    with watched(driver, pages["large"]) as reader:
        reader.wait(".tree-row")
        assert len(reader.all(".tree-row")) < 10
        reader.all(".tree-row.group")[0].click()
        assert 50 < len(reader.all(".tree-row")) < 400
        assert reader.wait(".tree-bar p").text.startswith(f"{len(large().tree.nodes) - 1:,} distinct steps")
        assert "with few rollouts not shown" in reader.wait(".tree-bar p").text
        reader.driver.execute_script("document.querySelector('.tree-row').focus()")
        reader.press(*[Keys.ARROW_DOWN] * 40, Keys.END)
        assert len(reader.all(".tree-row[tabindex='0']")) == 1
        more = reader.all(".tree-row.more")
        before = len(reader.all(".tree-row"))
        more[0].click()
        assert len(reader.all(".tree-row")) > before
        reader.all(".tree-bar button")[0].click()
        reader.until(lambda: len(reader.all(".tree-row.step")) == LARGE, 60)


@pytest.mark.nightly
def test_each_unit_has_a_tree_of_its_own(driver: Chrome, pages: dict[str, Path]) -> None:
    with watched(driver, pages["units"]) as reader:
        assert [title.split(":")[0] for title in reader.texts("#browser-one h3")] == ["Tree 1 of 2", "Tree 2 of 2"]
        assert len(reader.all(".tree")) == 2
        close = reader.all(".tree-bar button")
        close[3].click()
        shown = reader.driver.execute_script(
            "return [...document.querySelectorAll('.tree')].map((tree) => tree.querySelectorAll('.tree-row').length)"
        )
        assert shown == [13, 5]


@pytest.mark.nightly
def test_a_phone_scrolls_down_only(driver: Chrome, pages: dict[str, Path]) -> None:
    for name in ("small", "hostile"):
        with watched(driver, pages[name]) as reader:
            reader.emulate("setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
            assert reader.width() == 360


@pytest.mark.nightly
def test_paper_has_what_is_open_and_no_buttons(reader: Reader) -> None:
    reader.emulate("setEmulatedMedia", media="print", features=[])
    assert all(row.is_displayed() for row in reader.all(".tree-row"))
    assert not any(button.is_displayed() for button in reader.all(".tree-bar button"))


def test_without_scripts_a_line_says_so(driver: Chrome, pages: dict[str, Path]) -> None:
    assert "rollouts/*.parquet" in without_scripts(driver, pages["small"])


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    rows = sums(3, 2)
    for row in rows[:2]:
        row["problem"] = "What is <i>3 + 3</i> + 1?"
    label_in_process(settings(folder, rows, "estimator=fixed", "run.unit_problems=2"))
    return folder


@pytest.fixture
def folder(labelled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(labelled, tmp_path / "copy"))


def reported(folder: Path, tree: str, **other: Any) -> list[str]:
    return report(ReportConfig(run_dir=str(folder / "run"), tree=tree, **other))


def data_of(page: Path) -> dict[str, Any]:
    (found,) = re.findall(r'id="browser-entry">([^<]*)<', page.read_text("utf-8"))
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found)))
    return data


def test_the_page_is_in_the_run_directory_under_the_id_of_the_problem(folder: Path) -> None:
    row = labels(folder).filter(source_id="3-0").row(0, named=True)
    before = (folder / "run" / "report.html").exists()
    lines = reported(folder, "3-1")
    page = folder / "run" / f"tree-{row['problem_id']}.html"
    assert lines[-1] == f"report    {page.as_uri()}"
    assert re.fullmatch(r"tree      \d+ steps of \d+ rollouts and the chains", lines[0])
    assert (folder / "run" / "report.html").exists() == before
    data = data_of(page)
    assert data["problem"] == row["problem"]
    assert [each[1] for each in data["facts"]] == [row["gold_answer"], "3-0, 3-1", row["problem_id"]]
    (tree,) = data["trees"]
    at = tree["texts"].index(row["steps"][0])
    assert tree["values"][at] == round(row["value"][0], 3)
    assert "<i>" not in page.read_text("utf-8")
    assert "made up" in page.read_text("utf-8"), "the policy is the oracle"
    assert reported(folder, row["problem"])[-1] == lines[-1]
    out = folder / "tree.html"
    assert reported(folder, row["problem_id"], out=str(out))[-1] == f"report    {out.as_uri()}"
    assert data_of(out) == data


def test_an_audit_knows_the_page(folder: Path) -> None:
    reported(folder, "3-1")
    found = audit(AuditConfig(run_dir=str(folder / "run")))
    assert not found.findings
    assert not found.orphans.foreign
    (folder / "run" / "tree-of mine.html").write_text("mine")
    assert audit(AuditConfig(run_dir=str(folder / "run"))).orphans.foreign == ("tree-of mine.html",)


def test_a_name_of_a_page_has_no_text_of_a_problem() -> None:
    assert is_tree_page(tree_page("972877002fa905030c7a"))
    assert not is_tree_page(tree_page("../a"))
    assert not is_tree_page("report.html")


def test_what_cannot_be_shown_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no labelled problem 'nothing'"):
        reported(folder, "nothing")
    with pytest.raises(UsageError, match="the page of a tree has no plan"):
        reported(folder, "3-1", planned="plan.json")
    with pytest.raises(ValueError, match=r"tree=.*null with two run directories"):
        ReportConfig(run_dir=["a", "b"], tree="3-1")
    with pytest.raises(ValueError, match=r"tree=' '.*the id of a row, a problem_id or the text of a problem"):
        ReportConfig(run_dir="a", tree=" ")
    searched = search_run(tmp_path / "search", [Searched(problem="one", candidates=[Ended()], chosen=0)])
    with pytest.raises(UsageError, match="the report of a run of `search` has the tree of each problem"):
        report(ReportConfig(run_dir=str(searched), tree="one"))


def test_a_name_of_several_problems_is_refused(tmp_path: Path) -> None:
    rows = sums(2, 1)
    rows[0]["id"] = rows[1]["problem"] = "same"
    label_in_process(settings(tmp_path, rows))
    with pytest.raises(UsageError, match="tree=same: 2 problems have that name: give the problem_id of one, such as"):
        reported(tmp_path, "same")


def test_the_command_prints_where_the_page_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", f"run_dir={folder / 'run'}", "tree=4-0"]) == 0
    assert "/tree-" in capsys.readouterr().out


def test_a_page_has_the_steps_with_the_most_rollouts_and_cuts_long_texts() -> None:
    log = [rollout("a", f"s{number % 7_000}\n{'x' * 6_000}", number=number) for number in range(7_100)]
    found = ProblemTree(
        problem="y" * 5_000, gold_answer="7", source_ids=tuple("abcdefg"), tree=grown([chain("a", "7")], log)
    )
    data = json.loads(trees_json([found], 1.0))
    (tree,) = data["trees"]
    assert len(tree["parents"]) == len(tree["texts"]) == len(tree["tails"]) == MOST_NODES
    assert tree["summary"].startswith("14,002 distinct steps of 7,100 rollouts")
    assert f"{14_003 - MOST_NODES:,} steps with few rollouts not shown" in tree["summary"]
    assert all(parent < place for place, parent in enumerate(tree["parents"]))
    assert {f"s{number}" for number in range(100)} <= set(tree["texts"])
    assert max(map(len, tree["texts"])) < 4_100
    assert data["problem"].endswith(" ... (5,000 characters, full text in labels/*.parquet)")
    assert data["facts"][1] == ["id", "a, b, c, d, e and 2 more rows"]
