"""Labels by consensus on the page: both opinions on each step, the chains on which they disagree, and what was left out."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from selenium.webdriver import Chrome, Keys

from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from pipeline.consensus.kept import differs, label_place, witness_places
from tests.consensus_labels import Row, Votes, consensus_edition, errs_on_even, same_as_monte_carlo
from tests.library import Library
from tests.report.reader import IMAGE, SCRIPT, Reader, watched
from tests.runtime.adaptive import settings, sums
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

HOSTILE = f"judge:{IMAGE}{SCRIPT}"
OTHER = "scores:prm"
PROBLEMS = 30


def all_votes(row: Row) -> Votes | None:
    return [2, 2, 2, 0] if row["source_id"] == "sum-9-1" else errs_on_even(row)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("consensus-page")
    rows = [{**row, "id": f"sum-{row['id']}"} for row in sums(PROBLEMS)]
    label_in_process(settings(folder, rows, "estimator.rule=threshold", "run.unit_problems=8"))
    consensus_edition(folder / "run", {HOSTILE: all_votes, OTHER: same_as_monte_carlo}, soft=True)
    return folder / "run"


@pytest.fixture(scope="module")
def labels(run_dir: Path) -> list[dict[str, Any]]:
    return list(pl.read_parquet(run_dir / "labels" / "*.parquet").to_dicts())


def disagree(row: dict[str, Any]) -> bool:
    return differs(label_place(row["mc_label"]), witness_places(row["opinions"]))


def choose(reader: Reader, choice: str) -> None:
    """As a person does who has no mouse."""
    down = ["", "differ", "kept", "out"].index(choice)
    reader.wait("#browser-opinions").send_keys(Keys.HOME, *[Keys.ARROW_DOWN] * down)


def test_the_filter_shows_the_chains_on_which_opinions_differ(reader: Reader, labels: list[dict[str, Any]]) -> None:
    total = len(labels)
    gone = sum(row["left_out"] is not None for row in labels)
    differing = {row["source_id"] for row in labels if disagree(row)}
    assert 0 < len(differing) < total
    assert 0 < gone < total
    choose(reader, "differ")
    reader.counts(f"{len(differing)} of {total} chains")
    assert set(reader.sources()) <= differing
    assert len(reader.all(".pill.differs")) == len(reader.sources())
    choose(reader, "out")
    reader.counts(f"{gone} of {total} chains")
    choose(reader, "kept")
    reader.counts(f"{total - gone} of {total} chains")
    assert reader.all(".pill") == []


@pytest.mark.nightly
def test_the_filter_is_part_of_the_address(reader: Reader, labels: list[dict[str, Any]]) -> None:
    choose(reader, "differ")
    reader.until(lambda: "opinions=differ" in reader.driver.current_url)
    reader.open("#" + reader.driver.current_url.partition("#")[2])
    reader.counts(f"{sum(map(disagree, labels))} of {len(labels)} chains")
    assert reader.wait("#browser-opinions").get_property("value") == "differ"
    reader.open("#chains?opinions=toString")
    reader.counts(f"{len(labels)} chains")


def test_each_step_has_every_opinion(reader: Reader, labels: list[dict[str, Any]]) -> None:
    (row,) = (row for row in labels if row["source_id"] == "sum-9-1")
    body = reader.opened("sum-9-1")
    said = reader.texts(".opinions")
    assert len(said) == len(row["steps"])
    marks = {1: "good", 0: "bad", None: "uncertain"}
    for number, (text, mc, free) in enumerate(zip(said, row["mc_label"], row["p_error_free"], strict=True), start=1):
        assert f"Monte Carlo {'+' if mc else '−' if mc == 0 else '?'} {marks[mc]}" in text
        assert f"{HOSTILE} {'first error 75 %' if number == 2 else '0 %'}" in text
        assert f"no error so far {free:.2f}" in text
    assert [text.split(" first")[0] for text in reader.texts(".tree-row.step:nth-child(3) .opinion.named")] == [HOSTILE]
    facts = " ".join(reader.texts(".chain-facts"))
    assert "left out: first error differs" in facts
    assert f"first error, {HOSTILE}step 2, 75 %" in facts
    assert "step 2, 75 %" in body.text


@pytest.mark.nightly
def test_a_witness_that_says_nothing_of_a_chain_is_not_shown_there(
    reader: Reader, labels: list[dict[str, Any]]
) -> None:
    (row,) = (row for row in labels if row["source_id"] == "sum-10-0")
    assert [each["witness"] for each in row["opinions"]] == [OTHER]
    reader.opened("sum-10-0")
    assert HOSTILE not in " ".join(reader.texts(".chain-body"))


@pytest.mark.nightly
def test_the_section_counts_what_the_labels_say(reader: Reader, labels: list[dict[str, Any]]) -> None:
    gone = [row["left_out"] for row in labels if row["left_out"]]
    tables = " ".join(reader.texts("#consensus table"))
    assert f"first error differs\n{gone.count('first_error_differs')}\n" in tables
    assert HOSTILE in tables
    assert "Labels by consensus" in " ".join(reader.texts(".tiles"))
    assert "Left out by value of the bare problem" in reader.texts("#consensus figcaption, #consensus h3")


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(reader: Reader, scheme: str) -> None:
    reader.emulate("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    reader.emulate("setDeviceMetricsOverride", width=320, height=700, deviceScaleFactor=1, mobile=True)
    reader.open()
    reader.opened("sum-9-1")
    assert reader.width() <= 320


@pytest.mark.nightly
def test_other_labels_have_no_filter_and_no_section(library: Library, driver: Chrome, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    report(ReportConfig(run_dir=str(library.copy("mixed", tmp_path)), out=str(path)))
    with watched(driver, path) as reader:
        assert not reader.all("#browser-opinions")[0].is_displayed()
        assert reader.all("#consensus") == []
        reader.wait(".chain-head").click()
        reader.wait(".chain-body .tree")
        assert reader.all(".opinions") == []


@pytest.mark.nightly
def test_exact_labels_have_no_probability(library: Library, driver: Chrome, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    report(ReportConfig(run_dir=str(library.copy("consensus", tmp_path)), out=str(path)))
    with watched(driver, path) as reader:
        reader.wait(".chain-head").click()
        reader.wait(".chain-body .tree")
        assert reader.texts(".opinions")
        assert "no error so far" not in " ".join(reader.texts(".opinions"))
