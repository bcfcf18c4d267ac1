"""`agree` on labels by consensus: Monte Carlo alone and each witness stand beside them, on all chains and on those kept."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.agree.human import NO_ERROR, goods_until
from pipeline.analysis.agree.rulings import by_opinion
from pipeline.analysis.settings import Neutral
from tests.agree.pairs import labelled
from tests.conftest import write_rows
from tests.consensus_labels import JUDGE, PROBLEMS, SCORES, errs_on_even, first_error, majority
from tests.library import Library

CHAINS = 2 * PROBLEMS
ALONE = "Monte Carlo alone"


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("consensus-soft", tmp_path_factory.mktemp("agree"))


@pytest.fixture(scope="module")
def rows(run_dir: Path) -> list[dict[str, Any]]:
    return list(pl.read_parquet(run_dir / "labels" / "*.parquet").to_dicts())


def report(run_dir: Path, rows: list[dict[str, Any]], folder: Path, *settings: str) -> dict[str, Any]:
    """The report where people say of every chain what Monte Carlo says."""
    people = [
        {
            "id": row["source_id"],
            "problem": row["problem"],
            "steps": row["steps"],
            "label": (first_error(row["mc_label"]) or 0) - 1,
        }
        for row in rows
    ]
    data = write_rows(folder / "people.jsonl", people)
    out = folder / "agreement.json"
    asked = ["agree", f"run_dir={run_dir}", f"data.path={data}", "resamples=100", f"out={out}", *settings]
    assert main(asked) == 0
    loaded = json.loads(out.read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_one_call_shows_monte_carlo_the_judge_and_consensus(
    run_dir: Path, rows: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report(run_dir, rows, tmp_path)
    kept = [row for row in rows if row["left_out"] is None]
    assert found["counts"]["kept"] == len(kept)
    assert 0 < len(kept) < CHAINS
    by_name = {each["name"]: each["first_errors"] for each in found["rulings"]}
    own = f"label ({rows[0]['label_rule']})"
    assert [own, ALONE, f"{JUDGE} alone", f"{SCORES} alone"] == list(by_name)[:4]
    assert by_name[ALONE]["total"]["f1"]["value"] == by_name[f"{SCORES} alone"]["total"]["f1"]["value"] == 1.0
    # A chain that is left out is no answer.
    assert by_name[own]["uncertain"] == CHAINS - len(kept)
    judged = [(majority(votes, 3), first_error(row["mc_label"])) for row in rows if (votes := errs_on_even(alone(row)))]
    wrong = [place == truth for place, truth in judged if truth]
    assert by_name[f"{JUDGE} alone"]["total"]["found"] == sum(wrong) / by_name[ALONE]["total"]["erroneous"]
    assert by_name[f"{JUDGE} alone"]["uncertain"] == CHAINS - len(judged)
    printed = capsys.readouterr().out
    assert f"consensus keeps {len(kept)} of {CHAINS} compared chains" in printed
    assert f"The same of the {len(kept)} chains that consensus keeps" in printed


def alone(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "label": row["mc_label"]}


def test_on_kept_chains_nothing_is_uncertain(run_dir: Path, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    found = report(run_dir, rows, tmp_path)
    kept = sum(row["left_out"] is None for row in rows)
    assert len(found["kept"]) == 4
    for each in found["kept"][:2]:
        total = each["first_errors"]["total"]
        assert total["erroneous"] + total["correct"] == kept
        assert total["f1"]["value"] == 1.0
        assert each["first_errors"]["uncertain"] == 0


def test_the_probability_of_no_error_can_be_the_value(
    run_dir: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    found = report(run_dir, rows, tmp_path, "soft=p_error_free")
    assert found["made"]["soft"] == "p_error_free"
    assert sum(each["steps"] for each in found["reliability"]["bins"]) == found["reliability"]["steps"]
    # Whatever a chain is, the made-up probabilities of its three steps are 3/4, 1/2 and 1/4.
    assert {round(each["mean_value"], 9) for each in found["reliability"]["bins"]} <= {0.75, 0.5, 0.25}
    assert found["reliability"]["auc"] == found["reliability"]["sampled_auc"]


def test_labels_by_another_rule_have_no_such_methods() -> None:
    assert by_opinion([labelled([0.5, 0.2])], Neutral.good) == []


def test_a_witness_is_judged_by_the_place_that_it_names() -> None:
    said: list[dict[str, int | None]] = [{"w": 2}, {"w": 0}, {"w": None}, {}]
    chains = [labelled([0.5] * 3, labels=[None] * 3, mc_labels=(1, 0, None), places=places) for places in said]
    monte_carlo, witness = by_opinion(chains, Neutral.good)
    assert monte_carlo.errors == ({1: 1.0},) * 4
    assert witness.errors == ({1: 1.0}, {NO_ERROR: 1.0}, {None: 1.0}, {None: 1.0})
    assert witness.goods == (goods_until(1, 3), goods_until(NO_ERROR, 3), (None,) * 3, (None,) * 3)
