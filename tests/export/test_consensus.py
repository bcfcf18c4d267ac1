"""Exports and training of labels by consensus: chains left out are in no file of step labels, and the card says why."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.core.tables import CONSENSUS, LABELS
from pipeline.export.result import LEFT_OUT
from pipeline.export.run import BY_CONSENSUS
from tests.consensus_labels import ABOUT, DIFFERS, JUDGE, PROBLEMS, SCORES
from tests.export.rows import lines
from tests.export.test_contracts import FORMATS
from tests.library import Library

pytestmark = pytest.mark.slow

CHAINS = 2 * PROBLEMS
STEP_FORMATS = [name for name, layout in FORMATS.items() if not layout.outcome]


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("consensus", tmp_path_factory.mktemp("exact"))


@pytest.fixture(scope="module")
def soft_run(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("consensus-soft", tmp_path_factory.mktemp("soft"))


@pytest.fixture(scope="module")
def labels(run_dir: Path) -> pl.DataFrame:
    found = pl.read_parquet(run_dir / "labels" / "*.parquet")
    assert 0 < found["left_out"].null_count() < CHAINS
    return found


def export(run_dir: Path, out: Path, *settings: str) -> int:
    return main(["export", f"run_dir={run_dir}", f"out={out}", *settings])


def number_of_rows(file: Path) -> int:
    match file.suffix:
        case ".parquet":
            return pl.read_parquet(file).height
        case ".json":
            return len(json.loads(file.read_text()))
        case _:
            return len(file.read_text().splitlines())


def test_parquet_has_the_columns_of_consensus_and_the_kept_chains(
    run_dir: Path, labels: pl.DataFrame, tmp_path: Path
) -> None:
    assert export(run_dir, tmp_path / "out", "format=parquet") == 0
    written = pl.read_parquet(tmp_path / "out" / "train.parquet")
    assert written.columns == [*LABELS.schema.names, *CONSENSUS]
    assert written.equals(labels.filter(pl.col("left_out").is_null()))
    gone = labels.filter(pl.col("left_out").is_not_null())
    assert {each["chain_id"] for each in lines(tmp_path / "out" / LEFT_OUT)} == set(gone["chain_id"])
    assert {each["kind"] for each in lines(tmp_path / "out" / LEFT_OUT)} == {BY_CONSENSUS}


@pytest.mark.parametrize("name", STEP_FORMATS)
def test_no_format_of_step_labels_has_a_chain_that_is_left_out(
    run_dir: Path, labels: pl.DataFrame, tmp_path: Path, name: str
) -> None:
    """Values of such chains are known, so formats with soft targets could write them."""
    assert export(run_dir, tmp_path / "out", f"format={name}") == 0
    gone = labels.filter(pl.col("left_out").is_not_null())
    listed = [each for each in lines(tmp_path / "out" / LEFT_OUT) if each["kind"] == BY_CONSENSUS]
    assert {each["chain_id"] for each in listed} == set(gone["chain_id"])
    assert any("first error differs" in each["detail"] for each in listed)
    (file,) = (path for path in (tmp_path / "out").iterdir() if path.stem == "train")
    assert number_of_rows(file) == CHAINS - gone.height


def test_outcomes_of_chains_are_written_whatever_consensus_says_of_steps(run_dir: Path, tmp_path: Path) -> None:
    assert export(run_dir, tmp_path / "out", "format=orm") == 0
    assert len((tmp_path / "out" / "train.jsonl").read_text().splitlines()) == CHAINS


def test_the_probability_of_no_error_is_a_soft_target(soft_run: Path, tmp_path: Path) -> None:
    settings = ("format=parquet", "target=soft", "soft=p_error_free")
    assert export(soft_run, tmp_path / "out", *settings) == 0
    stored = pl.read_parquet(soft_run / "labels" / "*.parquet").filter(pl.col("left_out").is_null())
    written = pl.read_parquet(tmp_path / "out" / "train.parquet")
    assert written["scores"].to_list() == stored["p_error_free"].to_list()
    assert "the outcome as target" not in (tmp_path / "out" / "README.md").read_text()


def test_labels_without_that_probability_are_refused(
    library: Library, run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(run_dir, tmp_path / "out", "format=parquet", "target=soft", "soft=p_error_free") == 2
    assert "soft=p_error_free: the labels of" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    plain = library.copy("mixed", tmp_path)
    assert export(plain, tmp_path / "out", "format=parquet", "target=soft", "soft=p_error_free") == 2
    assert "consensus" in capsys.readouterr().err
    assert export(plain, tmp_path / "out", "format=parquet") == 0
    assert pl.read_parquet(tmp_path / "out" / "train.parquet").columns == LABELS.schema.names


def test_the_card_names_witnesses_reasons_and_what_is_lost_where(
    run_dir: Path, labels: pl.DataFrame, tmp_path: Path
) -> None:
    assert export(run_dir, tmp_path / "out", "format=trl") == 0
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"- `{JUDGE}`: `{ABOUT}`" in card
    assert f"- `{SCORES}`: `made up for a test`" in card
    counts = dict(labels["left_out"].drop_nulls().value_counts().iter_rows())
    assert f"| `first error differs` | {counts[DIFFERS]} |" in card
    assert f"Kept: {CHAINS - sum(counts.values())} of {CHAINS} chains of the run" in card
    wrong = labels.filter(~pl.col("outcome"))
    gone = wrong["left_out"].drop_nulls().len()
    assert f"| outcome | wrong | {wrong.height} | {gone} |" in card
    assert "name the same first error, or none" in card
