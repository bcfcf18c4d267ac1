"""The whole command: an oracle run compared with humans who agree or do not, verifiers beside them, and unusable files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import Run
from pipeline.__main__ import main
from pipeline.analysis.agree.human import ChainPair, first_error, goods_until
from pipeline.analysis.agree.verifiers import agreement
from pipeline.analysis.relabel import relabel
from pipeline.analysis.settings import AgreeConfig
from pipeline.config.changes import RelabelConfig
from pipeline.config.choices import LabelRule
from pipeline.core.tables import LABELS, SCHEMA_VERSION
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import claim
from pipeline.storage.stored_run import stored_run
from tests.agree.pairs import human, labelled
from tests.agree.scored import score_row, write_scores
from tests.audit.runs import copied
from tests.conftest import write_rows
from tests.library import Library
from tests.runtime.checking.runs import checked, rows, settings, sums
from tests.runtime.checking.runs import labelled as labelled_run
from tests.settings import EstimatorChange

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = library.copy("mixed", tmp_path_factory.mktemp("agree"))
    relabel(RelabelConfig(run_dir=str(folder), estimator=EstimatorChange(rule=LabelRule.any)))
    return folder


@pytest.fixture(scope="module")
def labels(run_dir: Path) -> list[dict[str, Any]]:
    """Labels of the chains from the input, without the sampled ones: the row `bare` had no chain."""
    frame = stored_run(LocalStorage(run_dir)).frame(LABELS)
    rows = list(frame.filter(pl.col("source_id") != "bare").iter_rows(named=True))
    assert len(rows) == 6
    return rows


def shown_error(row: dict[str, Any]) -> int | None:
    return first_error([None if label is None else bool(label) for label in row["label"]])


def people(row: dict[str, Any], error: int) -> dict[str, Any]:
    return {"id": row["source_id"], "problem": row["problem"], "steps": row["steps"], "label": error}


def agree(run_dir: Path, data: Path, *more: str) -> int:
    return main(["agree", f"run_dir={run_dir}", f"data.path={data}", "resamples=100", *more])


def report(run_dir: Path, data: Path, *more: str) -> dict[str, Any]:
    out = data.with_suffix(".report.json")
    assert agree(run_dir, data, f"out={out}", *more) == 0
    loaded = json.loads(out.read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_people_who_say_what_the_labels_say_agree_with_them(
    run_dir: Path, labels: list[dict[str, Any]], tmp_path: Path, capsys: Printed
) -> None:
    decided = [(row, error) for row in labels if (error := shown_error(row)) is not None]
    assert {error == -1 for _, error in decided} == {True, False}
    data = write_rows(tmp_path / "same.jsonl", [people(row, error) for row, error in decided])
    found = report(run_dir, data)
    own, above_0, *_ = found["rulings"]
    assert own["name"] == "label (any)"
    assert own["first_errors"]["total"]["f1"] == {"value": 1.0, "low": None, "high": None}
    assert own["steps"]["accuracy"]["value"] == 1
    assert own["first_errors"]["shift"]["mean"] == 0
    assert above_0["first_errors"] == own["first_errors"]  # of estimator=fixed the rule `any` is value > 0
    counts = found["counts"]
    assert (counts["rows"], counts["compared"], counts["unusable"], counts["unmatched"]) == (len(decided),) * 2 + (0, 0)
    assert counts["labelled"] == counts["compared"] + counts["not_by_people"]
    said = capsys.readouterr().out
    wrong = sum(error != -1 for _, error in decided)
    assert f"humans find one in {wrong} chains and none in {len(decided) - wrong}" in said
    assert "label (any)" in said
    assert "wrong answer: last step" in said


def test_people_who_put_every_error_a_step_later_shift_it_by_one(
    run_dir: Path, labels: list[dict[str, Any]], tmp_path: Path
) -> None:
    later = [
        people(row, error + 1)
        for row in labels
        if (error := shown_error(row)) not in (None, -1) and error + 1 < len(row["steps"])
    ]
    assert later
    found = report(run_dir, write_rows(tmp_path / "later.jsonl", later))
    shift = found["rulings"][0]["first_errors"]["shift"]
    assert (shift["early"], shift["exact"], shift["mean"]) == (len(later), 0, -1)


def test_rows_that_are_left_out_are_counted_and_reported(
    run_dir: Path, labels: list[dict[str, Any]], tmp_path: Path, capsys: Printed
) -> None:
    row = labels[0]
    data = write_rows(
        tmp_path / "mixed.jsonl",
        [
            people(row, -1),
            people(row, 0),
            people(row, 99),
            {**people(row, -1), "problem": "Another one?"},
            {"problem": "?", "steps": ["a"]},
        ],
    )
    with data.open("a") as file:
        file.write("{broken\n")
    found = report(run_dir, data)
    assert {name: found["counts"][name] for name in ("rows", "compared", "repeated", "contradicting", "unmatched")} == {
        "rows": 6, "compared": 1, "repeated": 1, "contradicting": 1, "unmatched": 1,
    }  # fmt: skip
    assert found["counts"]["other_text"] == 1
    assert [unusable["location"]["line"] for unusable in found["unusable"]] == [3, 5, 6]
    said = capsys.readouterr().out
    assert "6 rows = 1 compared + 1 not in the run + 1 repeated + 3 unusable" in said
    assert f"line 3: The label names step 99, counted from 0, but the chain has {len(row['steps'])} steps." in said


def test_neighbouring_thresholds_that_make_no_difference_share_a_row(
    run_dir: Path, labels: list[dict[str, Any]], tmp_path: Path, capsys: Printed
) -> None:
    data = write_rows(tmp_path / "one.jsonl", [people(row, -1) for row in labels])
    assert agree(run_dir, data, "thresholds=[0,0.1,0.2,0.9]", "soft=value") == 0
    said = capsys.readouterr().out
    assert "value > 0 to 0.2" in said  # three rollouts: values are thirds
    assert "value > 0.9" in said
    assert "value > 0.1 " not in said


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "none of the 0 rows"),
        ([{"problem": "p", "steps": ["a"], "truth": 1}], "is a chain with a human label; line 1 of"),
        ([{"problem": "p", "steps": ["a"], "label": 0}], "none of the 1 chains of"),
    ],
)
def test_a_file_that_has_nothing_to_compare_is_refused(
    rows: list[dict[str, Any]], said: str, run_dir: Path, tmp_path: Path, capsys: Printed
) -> None:
    out = tmp_path / "report.json"
    assert agree(run_dir, write_rows(tmp_path / "people.jsonl", rows), f"out={out}") == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_an_unfinished_run_is_compared_only_when_asked(
    run_dir: Path, labels: list[dict[str, Any]], tmp_path: Path, capsys: Printed
) -> None:
    data = write_rows(tmp_path / "people.jsonl", [people(row, -1) for row in labels])
    part = copied(run_dir, tmp_path)
    lost, kept = (unit.unit_id for unit in stored_run(LocalStorage(part)).units)
    for record in (part / "commits").glob(f"unit-{lost}-*"):
        record.unlink()
    assert agree(part, data) == 2
    error = capsys.readouterr().err
    assert (
        "1 of 2 units is unfinished: finish the run with `label`, or use the labels that it has with partial=true"
        in error
    )
    counts = report(part, data, "--partial")["counts"]
    assert 0 < counts["compared"] < len(labels)
    assert counts["compared"] + counts["unmatched"] == len(labels)
    assert "the run is not finished; unfinished units: 1" in capsys.readouterr().out
    for record in (part / "commits").glob(f"unit-{kept}-*"):
        record.unlink()
    assert agree(part, data, "--partial") == 2
    assert "holds no labels" in capsys.readouterr().err


def test_python_judges_scores_of_a_run_too(run_dir: Path, labels: list[dict[str, Any]], tmp_path: Path) -> None:
    data = write_rows(tmp_path / "people.jsonl", [people(row, 0) for row in labels[:2]] + [people(labels[2], -1)])
    judged = [score_row(row["problem"], row["steps"], [0.25] * len(row["steps"])) for row in labels]
    scores = write_scores(tmp_path / "scores.parquet", judged)
    run = Run(run_dir)
    found = run.agree(data, scores=scores, threshold=0.125, resamples=100)
    assert (found.main.name, found.counts.judged, found.counts.not_by_people) == ("score > 0.125", 3, len(labels) - 3)
    assert found.main.total.error_accuracy.value == 0
    of_run = run.agree(data, resamples=100)
    assert of_run.counts.compared == 3
    assert of_run.run_dir == str(run_dir)


def test_labels_of_another_schema_are_refused(tmp_path: Path, capsys: Printed) -> None:
    claim(LocalStorage(tmp_path / "run"), {"schema": SCHEMA_VERSION - 1})
    data = write_rows(tmp_path / "people.jsonl", [{"problem": "p", "steps": ["a"], "label": 0}])
    assert agree(tmp_path / "run", data) == 2
    assert f"was written with schema {SCHEMA_VERSION - 1}" in capsys.readouterr().err
    assert agree(tmp_path / "absent", data) == 2
    assert "does not contain a run" in capsys.readouterr().err


@pytest.mark.parametrize(("key", "value"), [("thresholds", [0, 1]), ("resamples", 99), ("out", "")])
def test_settings_out_of_range_are_reported(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{key}=.* is out of range"):
        AgreeConfig(**{key: value})


def test_out_is_never_what_is_read(
    run_dir: Path, labels: list[dict[str, Any]], tmp_path: Path, capsys: Printed
) -> None:
    data = write_rows(tmp_path / "people.jsonl", [people(labels[0], -1)])
    before = data.read_bytes()
    for out, said in (
        (data, "people.jsonl, which is read"),
        (run_dir / "labels" / "report.json", "which is read"),
        (tmp_path, "is a folder: give the name of a file"),
        (tmp_path / "mistyped" / "report.json", "does not exist; create it"),
    ):
        assert agree(run_dir, tmp_path / "*.jsonl", f"out={out}") == 2
        assert said in capsys.readouterr().err
    assert data.read_bytes() == before


def pair(chain_id: str, error: int, steps: int) -> ChainPair:
    return ChainPair(human=human(goods_until(error, steps)), labelled=labelled([0.5] * steps, chain_id=chain_id))


def test_only_steps_that_people_label_count() -> None:
    pairs = [pair("a", 1, 4), pair("b", -1, 3), pair("c", 0, 2)]
    verdicts = {("a", 1): "holds", ("a", 2): "refuted", ("a", 3): "refuted", ("b", 2): "refuted", ("c", 1): "holds"}
    found = agreement("own", verdicts, pairs)
    assert (found.steps, found.bad) == (2 + 3 + 1, 2)
    assert (found.refuted, found.refuted_bad, found.holds, found.holds_bad) == (2, 1, 2, 1)
    assert (found.precision, found.recall) == (0.5, 0.5)
    assert found.precision_low is not None
    assert found.precision_high is not None
    assert 0 < found.precision_low < 0.5 < found.precision_high < 1


def test_a_verifier_that_refutes_nothing_has_no_precision() -> None:
    found = agreement("own", {}, [pair("b", -1, 3)])
    assert (found.precision, found.precision_low, found.recall) == (None, None, None)


def test_agree_prints_what_verifiers_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = labelled_run(tmp_path, 9, sums)
    checked(replace(settings(run_dir), checks=["arithmetic", "algebra"]))
    people = [{**row, "label": 1 if number % 2 == 0 else -1} for number, row in enumerate(rows(9, sums))]
    data, out = write_rows(tmp_path / "people.jsonl", people), tmp_path / "agreement.json"
    assert main(["agree", f"run_dir={run_dir}", f"data.path={data}", "resamples=100", f"out={out}"]) == 0
    algebra, arithmetic = json.loads(out.read_text())["verifiers"]
    # Chains 0, 3 and 6 have a false sum in their second step, of which people call those of even chains bad.
    assert (arithmetic["refuted"], arithmetic["refuted_bad"]) == (3, 2)
    assert arithmetic["recall"] == pytest.approx(2 / 5)
    assert (algebra["refuted"], algebra["precision"]) == (0, None)
    said = capsys.readouterr().out
    assert "Verifiers: of 22 steps with a human label 5 are bad (23 %)" in said
    assert "0.67" in next(line for line in said.splitlines() if line.startswith("arithmetic "))
