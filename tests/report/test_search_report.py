"""`report` and `status` of runs of `search`: what they say is what the tables hold, also of unfinished runs and of problems
without a known answer."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from selenium.webdriver import Chrome

from pipeline.__main__ import main
from pipeline.analysis.browser.searches import WEAK
from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from pipeline.core.errors import StoreError, UsageError
from tests.library import Library
from tests.report.reader import watched
from tests.searches.runs import search_in, sums

pytestmark = pytest.mark.slow

PROBLEMS = 12
Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def made(library: Library, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    names = ("best_of_n", "beam", "majority", "unknown")
    return {name: library.copy(name, tmp_path_factory.mktemp(name)) for name in names}


def searches(run_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(run_dir / "searches" / "*.parquet").sort("row")


def tiles(page: str) -> dict[str, tuple[str, str]]:
    """Name -> value and note."""
    found = re.findall(r'<h2>([^<]*)</h2><p class="value">([^<]*)</p>\s*(?:<p class="note">([^<]*)</p>)?', page)
    return {name: (value, note) for name, value, note in found}


def written(run_dir: Path, **settings: Any) -> tuple[str, list[str]]:
    """The page and the lines."""
    lines = report(ReportConfig(run_dir=str(run_dir), **settings))
    return (run_dir / "report.html").read_text("utf-8"), lines


def test_the_figures_are_those_of_the_tables(made: dict[str, Path]) -> None:
    page, lines = written(made["beam"])
    stored, found = searches(made["beam"]), tiles(page)
    assert stored["outcome"].n_unique() == stored["trusted"].n_unique() == 2
    right, trusted = int(stored["outcome"].sum()), int(stored["trusted"].sum())
    assert found["Problems"][0] == str(PROBLEMS)
    assert found["Accuracy"][0] == f"{right / PROBLEMS:.0%}".replace("%", " %")
    assert "95 % interval" in found["Accuracy"][1]
    assert found["Trusted"][0] == f"{trusted / PROBLEMS:.0%}".replace("%", " %")
    assert found["Policy tokens"][0] == f"{stored['policy_tokens'].sum():,}"
    computed, read = int(stored["scorer_computed"].sum()), int(stored["scorer_tokens"].sum())
    assert found["Scorer tokens"] == (
        f"{computed:,}",
        f"computed of {read:,} read; {100 * (1 - computed / read):.0f} % from caches",
    )
    assert f"problems  {PROBLEMS}, by beam with n=4; {PROBLEMS} with a chosen chain" in lines
    chains = f"{int(stored['candidates'].sum()) / PROBLEMS:.1f} chains"
    assert f"          of {chains} on average" in lines
    assert f"beam, n = 4, {chains} per problem" in page
    assert any(line.startswith("trust     search.accept=0.6: ") for line in lines)
    for stop, count in stored["stopped"].cast(pl.String).value_counts().iter_rows():
        words = {"done": "all was sampled that the settings ask for", "accepted": "search.accept was reached"}[stop]
        assert re.search(rf'dir="auto">{re.escape(words)}</td>\s*<td class="number"[^>]*>{count}</td>', page)
    assert re.search(rf"<td[^>]*>100 %</td>\s*<td[^>]*>{PROBLEMS}</td>\s*<td[^>]*>{right / PROBLEMS:.3f}</td>", page)
    assert "The steps are made up" in page


def test_a_search_without_scores_has_no_figures_of_a_scorer(made: dict[str, Path]) -> None:
    page, _ = written(made["majority"])
    assert "Scorer tokens" not in tiles(page)


def test_accuracy_is_not_claimed_without_known_answers(made: dict[str, Path]) -> None:
    page, lines = written(made["unknown"])
    assert tiles(page)["Accuracy"][0] == "not claimed"
    assert not any(line.startswith("right") for line in lines)
    assert any(f"accuracy is not claimed for {PROBLEMS} of {PROBLEMS} searches" in line for line in lines)
    assert re.search(rf'dir="auto">no known answer</td>\s*<td class="number"[^>]*>{PROBLEMS}</td>', page)


def test_the_page_shows_each_problem_with_the_tree_that_the_log_has(made: dict[str, Path], driver: Chrome) -> None:
    written(made["beam"])
    stored = searches(made["beam"])
    candidates = pl.read_parquet(made["beam"] / "candidates" / "*.parquet").filter("chosen").sort("row")
    with watched(driver, made["beam"] / "report.html") as reader:
        assert reader.sources() == stored["source_id"].to_list()
        marks = {"✓ right, ": True, "✗ wrong, ": False}
        assert [marks[mark] for mark in reader.texts(".chain-head .mark")] == stored["outcome"].to_list()
        marked = set()
        for place in range(PROBLEMS):
            reader.all(".chain-head")[place].click()
            reader.wait(f"#problem-{place} .tree")
            shown = f"#problem-{place} .tree-row.taken"
            (chosen,) = candidates.filter(pl.col("row") == place).to_dicts()
            assert reader.texts(f"{shown} .tree-text > .prose") == chosen["steps"]
            scores = [float(score) for score in reader.texts(f"{shown} .chip b")]
            assert scores == pytest.approx(chosen["step_scores"], abs=0.006)
            weak = reader.texts(f"#problem-{place} .tree-row.weak .tree-number")
            is_weak = min(chosen["step_scores"]) < WEAK
            assert weak == [f"step {stored['weakest_step'][place]}"] * is_weak
            marked.add(is_weak)
    assert marked == {True, False}


def test_the_chain_of_the_input_is_marked_in_its_tree(tmp_path: Path, driver: Chrome) -> None:
    long = "It is easy. " + "Very easy. " * 400
    rows = [{**row, "steps": [long, f"The answer is {row['answer']}."]} for row in sums(2)]
    run_dir = search_in(tmp_path / "run", rows, "search=regenerate", "search.n=2")
    written(run_dir)
    with watched(driver, run_dir / "report.html") as reader:
        reader.all(".chain-head")[0].click()
        reader.wait("#problem-0 .tree")
        for button in reader.all("#problem-0 .tree-bar button")[:1]:
            button.click()
        of_input = [row for row in reader.texts("#problem-0 .tree-row.step") if "of the input" in row]
        assert len(of_input) == 2
        assert "It is easy." in of_input[0]
        assert "full text in candidates/*.parquet" in of_input[0]
        assert "tokens" not in of_input[0]
        assert "✓" in of_input[1]


def test_scores_that_are_missing_are_reported_everywhere(tmp_path: Path, capsys: Printed) -> None:
    for share, words in (("1.0", "none of "), ("0.5", " beginnings of chains have none (")):
        run_dir = search_in(tmp_path / share, sums(4), "search=beam", "search.n=4", f"scorer.lab.unreadable={share}")
        page, lines = written(run_dir)
        assert [line for line in lines if line.startswith("scores    ") and words in line]
        assert "Scores: " in page
        assert words in page
        assert main(["status", f"run_dir={run_dir}"]) == 0
        assert words in capsys.readouterr().out.partition("\nscores    ")[2].partition("\n")[0]


def test_an_unfinished_run_shows_what_is_finished(made: dict[str, Path], tmp_path: Path) -> None:
    run_dir = Path(shutil.copytree(made["best_of_n"], tmp_path / "run"))
    for record in sorted((run_dir / "commits").glob("unit-*"))[:1]:
        record.unlink()
    page, lines = written(run_dir)
    assert "units     1 of 3 units is unfinished" in lines
    assert "everything below is about the other 2" in page
    assert int(tiles(page)["Problems"][0]) < PROBLEMS
    for record in (run_dir / "commits").glob("unit-*"):
        record.unlink()
    page, lines = written(run_dir)
    assert "there is no result yet" in page
    assert not tiles(page)


def test_fewer_problems_are_listed_where_asked(made: dict[str, Path]) -> None:
    page, _ = written(made["best_of_n"], chains=3)
    assert f"This page lists 3 of the run's {PROBLEMS} problems" in page
    assert 'id="searches"' not in written(made["best_of_n"], chains=0)[0]


def test_what_cannot_be_reported_is_refused(made: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a run of `search` has no plan"):
        written(made["best_of_n"], planned="plan.json")
    foreign = tmp_path / "page.html"
    foreign.write_text("mine")
    with pytest.raises(UsageError, match="out="):
        written(made["best_of_n"], out=str(foreign))
    run_dir = Path(shutil.copytree(made["best_of_n"], tmp_path / "run"))
    victim = next((run_dir / "samples").iterdir())
    victim.write_bytes(victim.read_bytes()[:-9])
    with pytest.raises(StoreError, match="samples"):
        written(run_dir)


def test_status_counts_problems_answers_and_tokens(made: dict[str, Path], capsys: Printed) -> None:
    stored = searches(made["beam"])
    assert main(["status", f"run_dir={made['beam']}"]) == 0
    said = capsys.readouterr().out
    right = int(stored["outcome"].sum())
    assert f"rows      {PROBLEMS} read = {PROBLEMS} used + 0 rejected\n" in said
    assert f"searches  {PROBLEMS} problems, {stored['steps'].sum():,} sampled steps\n" in said
    assert f"{right} right, {PROBLEMS - right} wrong, 0 without an answer, 0 ungraded\n" in said
    tokens, computed = stored["policy_tokens"].sum(), stored["scorer_computed"].sum()
    assert f"tokens    {tokens:,} of the policy, {computed:,} computed by the scorer\n" in said
    assert main(["status", f"run_dir={made['beam']}", "json=true"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["command"], found["totals"]["problems"], found["units_done"]) == ("search", PROBLEMS, found["units"])


def test_status_says_what_unfinished_units_have(made: dict[str, Path], tmp_path: Path, capsys: Printed) -> None:
    run_dir = Path(shutil.copytree(made["unknown"], tmp_path / "run"))
    for record in sorted((run_dir / "commits").glob("unit-*"))[:1]:
        record.unlink()
    assert main(["status", f"run_dir={run_dir}"]) == 0
    said = capsys.readouterr().out
    assert "units     2 of 3 finished\n" in said
    assert "right" not in said
