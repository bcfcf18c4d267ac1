"""A run that keeps labels of rows that changed or vanished: exports and training leave their chains out unless `changed=keep`,
and summary, report, status and card count them, those that changed and those that vanished."""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from transformers import AutoTokenizer

from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from pipeline.analysis.status import lines, run_status
from pipeline.config.choices import ChangedChains
from pipeline.core.errors import InputError
from pipeline.core.schemas import LABELS
from pipeline.export.result import CARD, LEFT_OUT, ExportResult, result_lines
from pipeline.export.run import export
from pipeline.export.settings import ExportConfig, TargetKind
from pipeline.storage.local import LocalStorage
from pipeline.train.data import StepDataset
from pipeline.train.settings import TrainConfig
from tests.runtime.growing import bare, chains, label
from tests.tiny.policy import ASSET

pytestmark = pytest.mark.slow

CHANGED, VANISHED = "2-1", "3-1"
KINDS = {"input_changed", "input_vanished"}
COUNTED = "1 changed, 1 vanished"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four rows, of which one has another answer now and one is gone; a new one came."""
    made = tmp_path_factory.mktemp("grown")
    label(made, chains(1, 2, 3, 4))
    label(made, [*chains(1), chains(2)[0] | {"answer": "6"}, *chains(4, 5)], "data.changed=keep")
    return made


def exported(folder: Path, out: Path, **asked: Any) -> ExportResult:
    return export(ExportConfig(**{"run_dir": str(folder / "run"), "format": "trl", "out": str(out), **asked}))


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("layout", ["trl", "orm"])
def test_no_problem_has_an_old_row_beside_a_new_one(folder: Path, tmp_path: Path, layout: str) -> None:
    exported(folder, tmp_path / "out", format=layout)
    written = [row["prompt"] for row in rows(tmp_path / "out")]
    assert len(written) == len(set(written)) == 4
    exported(folder, tmp_path / "all", format=layout, changed=ChangedChains.keep)
    assert len(rows(tmp_path / "all")) == 6


def test_the_export_says_what_it_leaves_out_and_why(folder: Path, tmp_path: Path) -> None:
    done = exported(folder, tmp_path / "out")
    assert (done.chains, {kind: reason.count for kind, reason in done.left_out.items()}) == (6, dict.fromkeys(KINDS, 1))
    listed = [json.loads(line) for line in (tmp_path / "out" / LEFT_OUT).read_text().splitlines()]
    said = {row["source_id"]: row["detail"] for row in listed}
    assert said.keys() == {CHANGED, VANISHED}
    assert said[CHANGED].startswith("its input row changed: the row at ")
    assert "has another known answer; changed=keep" in said[CHANGED]
    assert said[VANISHED].startswith("its input row vanished: ")
    text = "\n".join(result_lines(done))
    assert f"18 in the run = {done.step_counts.written} written + " in text
    assert f"6 of chains whose input row is not as it was labelled ({COUNTED}; changed=keep writes them)" in text
    assert done.steps_left_out == 0
    assert done.step_counts.total + done.steps_changed == done.steps == 18
    card = (tmp_path / "out" / CARD).read_text()
    assert COUNTED in card
    assert "- input_vanished: 1" in card


def test_what_is_kept_on_demand_is_reported_too(folder: Path, tmp_path: Path) -> None:
    done = exported(folder, tmp_path / "out", changed=ChangedChains.keep)
    (warning,) = [text for text in done.warnings if "changed=drop" in text]
    assert f"2 chains whose input row is not as it was labelled ({COUNTED})" in warning
    card = (tmp_path / "out" / CARD).read_text()
    assert warning in card
    assert "- `changed`: `keep`" in card


def test_a_raw_export_has_the_marks_if_marked_chains_are_in_it(folder: Path, tmp_path: Path) -> None:
    exported(folder, tmp_path / "out", format="parquet")
    usual = pl.read_parquet(tmp_path / "out" / "train.parquet")
    assert (usual.columns, usual.height) == (LABELS.names, 4)
    exported(folder, tmp_path / "all", format="parquet", changed=ChangedChains.keep)
    everything = pl.read_parquet(tmp_path / "all" / "train.parquet")
    assert everything.filter("input_changed")["source_id"].sort().to_list() == [CHANGED, VANISHED]


def dataset(folder: Path, **asked: Any) -> StepDataset:
    config = TrainConfig(
        **{"run_dir": str(folder / "run"), "model": str(ASSET), "out": "x", "separator": "\n", **asked}
    )
    return StepDataset.of_run(config, AutoTokenizer.from_pretrained(ASSET), max_length=2048)


def test_training_leaves_the_same_chains_out(folder: Path, tmp_path: Path) -> None:
    exported(folder, tmp_path / "out", format="parquet", target=TargetKind.soft)
    made = dataset(folder)
    written = pl.read_parquet(tmp_path / "out" / "train.parquet")["chain_id"].to_list()
    assert sorted(item.chain_id for item in made.items) == sorted(written)
    assert made.left_out == {"changed=drop (row changed)": 1, "changed=drop (row vanished)": 1}
    assert (dataset(folder, changed=ChangedChains.keep).chains, made.chains) == (6, 4)


def test_report_status_and_page_count_them(folder: Path, tmp_path: Path) -> None:
    said = f"2 of 6 used rows are not as they were labelled ({COUNTED})"
    (line,) = [line for line in report(ReportConfig(run_dir=[str(folder / "run")])) if line.startswith("changed")]
    assert said in line
    assert said in (folder / "run" / "report.html").read_text()
    status = list(lines(run_status(LocalStorage(folder / "run"), 0.0)))
    assert [line for line in status if line.startswith("changed   ") and said in line]


def test_the_start_that_keeps_them_counts_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label(tmp_path, chains(1, 2, 3))
    label(tmp_path, [*chains(1), chains(2)[0] | {"answer": "6"}], "data.changed=keep")
    assert f"old rows: {COUNTED}, whose labels stay" in capsys.readouterr().err


def test_labels_that_are_not_marked_yet_are_left_out_too(folder: Path, tmp_path: Path) -> None:
    """A start that was killed after it had recorded the grown input, before it marked the labels."""
    label(tmp_path, [*chains(1, 2, 3), *bare(7)])
    wholes = {path.name: path.read_bytes() for path in (tmp_path / "run" / "commits").glob("unit-*")}
    label(tmp_path, chains(1, 3), "data.changed=keep")
    for path in (tmp_path / "run" / "commits").glob("unit-*"):
        if path.name not in wholes:
            path.unlink()
    shutil.rmtree(tmp_path / "run" / "starts")
    done = exported(tmp_path, tmp_path / "out")
    assert set(done.left_out) == {"input_vanished"}
    assert len(rows(tmp_path / "out")) == 2


def test_nothing_left_is_refused_with_the_remedy(tmp_path: Path) -> None:
    label(tmp_path, chains(1, 2))
    label(tmp_path, [chains(3)[0]], "data.changed=keep")
    label(tmp_path, [chains(1)[0] | {"answer": None}], "data.changed=keep")
    with pytest.raises(InputError, match=r"2 input_changed .*; 1 input_vanished .*; give changed=keep$"):
        exported(tmp_path, tmp_path / "out")


def test_a_run_that_never_grew_says_nothing_of_it(tmp_path: Path) -> None:
    label(tmp_path, chains(1, 2))
    done = exported(tmp_path, tmp_path / "out", changed=ChangedChains.keep)
    assert not [line for line in result_lines(done) if "input row" in line]
    assert not [line for line in lines(run_status(LocalStorage(tmp_path / "run"), 0.0)) if line.startswith("changed")]
