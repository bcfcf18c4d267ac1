"""Labels by consensus in the terminal and in a notebook: which chains a condition chooses, and what is said of each."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import open_run
from pipeline.__main__ import main
from pipeline.analysis.chains import chosen
from pipeline.consensus.kept import differs, label_place, witness_places
from pipeline.core.errors import UsageError
from pipeline.core.tables import CONSENSUS, LABELS
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_labels import has_consensus
from pipeline.storage.stored_run import stored_run
from tests.consensus_labels import JUDGE, PROBLEMS, SCORES, consensus_run
from tests.library import Library

pytestmark = pytest.mark.slow

CHAINS = 2 * PROBLEMS


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("consensus-soft", tmp_path_factory.mktemp("lines"))


@pytest.fixture(scope="module")
def labels(run_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(run_dir / "labels" / "*.parquet")


def test_a_condition_chooses_the_chains_on_which_opinions_differ(labels: pl.DataFrame) -> None:
    expected = [
        row["chain_id"]
        for row in labels.iter_rows(named=True)
        if differs(label_place(row["mc_label"]), witness_places(row["opinions"]))
    ]
    assert 0 < len(expected) < CHAINS
    found = chosen(labels, CHAINS, "disagree")
    assert [row["chain_id"] for row in found.rows] == expected
    assert chosen(labels, CHAINS, "NOT disagree").total == CHAINS - len(expected)
    gone = chosen(labels, CHAINS, "left_out = 'first_error_differs' AND disagree")
    assert 0 < gone.total <= len(expected)


def test_labels_by_another_rule_have_no_such_condition(library: Library, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no column disagree"):
        chosen(stored_run(LocalStorage(library.copy("mixed", tmp_path))).frame(LABELS), 1, "disagree")


def test_each_step_has_a_line_with_every_opinion(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chains", f"run_dir={run_dir}", "where=source_id = 'sum-4-1'"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"left out: first error differs; first error: Monte Carlo step 3, {JUDGE} step 1, {SCORES} step 3" in said
    assert said.count("no error so far 0.75") == 1
    lines = [part.strip() for part in said.split("Monte Carlo")[2:]]
    assert len(lines) == 3
    assert f"{JUDGE} 75 %" in said
    assert f"{SCORES} 100 %" in said


def test_the_report_prints_what_was_left_out(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", f"run_dir={run_dir}"]) == 0
    printed = capsys.readouterr().out
    kept = open_run(run_dir).labels()["left_out"].null_count()
    assert f"consensus {kept} of {CHAINS} chains have labels" in printed
    assert "left out by value of the bare problem: " in printed
    assert f"{SCORES}: the first error of Monte Carlo, or none, in {CHAINS} of {CHAINS} chains (100 %" in printed


def test_columns_of_consensus_can_be_asked_of_any_run(library: Library, run_dir: Path, tmp_path: Path) -> None:
    plain = LocalStorage(library.copy("mixed", tmp_path))
    assert not has_consensus(stored_run(plain))
    assert has_consensus(stored_run(LocalStorage(run_dir)))
    for columns in (("chain_id", "left_out", "grown"), ("opinions",), ("p_error_free", "chain_id")):
        empty = stored_run(plain).frame(LABELS, columns)
        there = stored_run(LocalStorage(run_dir)).frame(LABELS, columns)
        assert empty.schema == there.schema
        assert empty.columns == list(columns)
        made = [name for name in columns if name in CONSENSUS]
        assert empty.height > 0
        assert {empty[name].null_count() for name in made} == {empty.height}


def test_two_editions_can_be_compared(library: Library, run_dir: Path, tmp_path: Path) -> None:
    """One with labels by consensus, one without: what is left out counts as uncertain."""
    other = library.copy("consensus", tmp_path)
    out = tmp_path / "page.html"
    assert main(["report", f"run_dir=[{run_dir},{other}]", f"out={out}"]) == 0
    assert "uncertain" in out.read_text()


def test_a_witness_that_makes_its_opinions_up_is_named_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "the judge qwen is made up"
    run_dir = consensus_run(tmp_path, made_up={JUDGE: why})
    assert main(["report", f"run_dir={run_dir}"]) == 0
    assert f"witness   {why}\n" in capsys.readouterr().out
    assert f"{why[:1].upper()}{why[1:]}." in (run_dir / "report.html").read_text()
    assert main(["export", f"run_dir={run_dir}", "format=trl", f"out={tmp_path / 'out'}"]) == 0
    assert f"witness           {why}\n" in capsys.readouterr().out
    assert f"**{why[:1].upper()}{why[1:]}.**" in (tmp_path / "out" / "README.md").read_text()
