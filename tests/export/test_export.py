"""The `export` command: its files are complete, list what is missing, and can be loaded."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from pipeline.__main__ import main
from pipeline.core.errors import InputError, UsageError
from pipeline.engines.embedded import embedded_model
from pipeline.export.registry import EXPORTS
from pipeline.export.result import CARD, LEFT_OUT
from pipeline.export.run import export
from pipeline.export.settings import (
    Balance,
    DecontaminateConfig,
    ExportConfig,
    FileType,
    InvalidChains,
    NeutralSteps,
    PreferenceConfig,
    TargetKind,
    UncertainSteps,
)
from tests.audit.runs import copied, labels
from tests.conftest import write_rows
from tests.export.rows import exported, lines
from tests.export.test_contracts import FORMATS
from tests.library import Library
from tests.runtime.adaptive import settings, sums
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 problems with four chains of three steps each, in units of ten problems."""
    return library.copy("many", tmp_path_factory.mktemp("run"))


def test_every_labelled_chain_is_a_row(run_dir: Path, tmp_path: Path) -> None:
    done = exported(run_dir, tmp_path / "out", after_error=True)
    found = {(row["prompt"], tuple(row["completions"])): row["labels"] for row in lines(tmp_path / "out/train.jsonl")}
    truth = labels(run_dir)
    assert len(found) == truth.height == done.chains == 120
    for row in truth.iter_rows(named=True):
        assert found[row["problem"], tuple(row["steps"])] == [-100 if x is None else x for x in row["label"]]
    counts = done.files["train.jsonl"]
    assert (counts.rows, len(counts.problems), counts.labels.total) == (120, 30, done.steps)
    assert counts.labels.good == truth["label"].explode().eq(1).sum()
    assert counts.labels.bad == truth["label"].explode().eq(0).sum()
    assert not done.left_out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [CARD, "train.jsonl"]


def test_questions_are_split_and_both_files_load_as_one_data_set(run_dir: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    done = exported(run_dir, tmp_path / "out", file=FileType.parquet, validation=0.3)
    loaded = load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert {split: loaded[split].num_rows for split in loaded} == {
        name.partition(".")[0]: counts.rows for name, counts in done.files.items()
    }
    train, validation = (set(loaded[split]["prompt"]) for split in ("train", "validation"))
    assert not train & validation
    assert len(train | validation) == 30
    assert 2 <= len(validation) <= 18


@pytest.mark.parametrize("layout", [layout for layout in EXPORTS.ours if layout not in ("parquet", "omegaprm")])
def test_every_format_says_the_same_in_each_kind_of_file(layout: str, run_dir: Path, tmp_path: Path) -> None:
    written = [
        exported(run_dir, tmp_path / file.value, layout, file=file, invalid=InvalidChains.drop) for file in FileType
    ]
    table = pq.read_table(tmp_path / "parquet" / "train.parquet").to_pylist()
    assert table == lines(tmp_path / "jsonl" / "train.jsonl")
    assert table == json.loads((tmp_path / "json" / "train.json").read_text())
    for done in written:
        assert done.chains == 120
        assert sum(counts.rows for counts in done.files.values()) == len(table) > 0


@pytest.mark.parametrize("target", TargetKind)
def test_plain_rows_have_a_column_for_each_target(target: TargetKind, run_dir: Path, tmp_path: Path) -> None:
    exported(run_dir, tmp_path / "out", "parquet", target=target, after_error=True)
    found, truth = pl.read_parquet(tmp_path / "out/train.parquet"), labels(run_dir)
    rows = {row["chain_id"]: row for row in truth.iter_rows(named=True)}
    of_targets = {"hard": {"labels"}, "soft": {"scores"}, "counts": {"n_correct", "n_rollouts"}}
    assert {"labels", "scores", "n_correct", "n_rollouts"} & {*found.columns} == of_targets[target.value]
    for row in found.iter_rows(named=True):
        match target:
            case TargetKind.hard:
                assert row["labels"] == rows[row["chain_id"]]["label"]
            case TargetKind.soft:
                assert row["scores"] == rows[row["chain_id"]]["value"]
            case TargetKind.counts:
                assert row["n_correct"][:-1] == rows[row["chain_id"]]["n_correct"][:-1]
                assert (row["n_correct"][-1], row["n_rollouts"][-1]) == (int(row["outcome"]), 1)


def test_balance_leaves_out_chains_and_names_them(run_dir: Path, tmp_path: Path) -> None:
    done = exported(run_dir, tmp_path / "out", balance=Balance.chains, file=FileType.json)
    rows = json.loads((tmp_path / "out/train.json").read_text())
    with_bad = sum(0 in row["labels"] for row in rows)
    assert with_bad * 2 == len(rows) > 0
    assert len(rows) + done.left_out["balance"].count == 120
    named = lines(tmp_path / "out" / LEFT_OUT)
    assert len({left["chain_id"] for left in named}) == done.left_out["balance"].count


def test_listed_problems_are_left_out(run_dir: Path, tmp_path: Path) -> None:
    listed = write_rows(tmp_path / "test.jsonl", [{"question": "What is 7+7 + 1 ?"}])
    config = DecontaminateConfig(paths=[str(listed)], column="question")
    done = exported(run_dir, tmp_path / "out", decontaminate=config)
    assert done.left_out["contaminated"].count == 4
    assert f"{listed}, row 1" in done.left_out["contaminated"].first.detail
    assert all(row["prompt"] != "What is 7 + 7 + 1?" for row in lines(tmp_path / "out/train.jsonl"))


def test_what_the_trainer_would_misread_stops_the_export_and_is_listed(run_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(
        InputError, match=r"120 chains: 120 separator_in_step \(chain 3-0: step 1 contains .*invalid=drop"
    ):
        exported(run_dir, out, separator=" = ", after_error=True)
    assert not out.exists()
    assert len(lines(tmp_path / "out.invalid.jsonl")) == 120
    done = exported(run_dir, out, separator="Way 1", invalid=InvalidChains.drop)
    assert not (tmp_path / "out.invalid.jsonl").exists()
    assert done.left_out["separator_in_step"].count == len(lines(out / LEFT_OUT))
    kept = exported(run_dir, tmp_path / "kept", separator="Way 1", invalid=InvalidChains.keep)
    assert kept.kept["separator_in_step"].count == done.left_out["separator_in_step"].count
    assert kept.files["train.jsonl"].rows == 120


MARKS = {name: layout.marks.placeholder for name, layout in FORMATS.items() if layout.marks.placeholder}


@pytest.mark.parametrize("layout", MARKS)
def test_a_text_that_holds_the_mark_of_a_format_is_written_by_no_setting(layout: str, tmp_path: Path) -> None:
    rows = sums(4, chains=1)
    rows[0]["steps"][0] += f" {MARKS[layout]} +"
    rows[1]["steps"][1] = f"So{MARKS[layout]}it is."
    rows[2]["problem"] += f"{MARKS[layout]}?"
    label_in_process(settings(tmp_path, rows, "estimator=fixed", "sampling.rollouts=2"))
    for invalid in (InvalidChains.keep, InvalidChains.drop):
        out = tmp_path / invalid.value
        done = exported(tmp_path / "run", out, layout, invalid=invalid, file=FileType.jsonl, after_error=True)
        assert done.left_out["mark_in_text"].count == 3
        (written,) = (out / "train.jsonl").read_text().splitlines()
        assert rows[3]["steps"][0] in written


def test_chains_that_spell_out_control_tokens_are_reported_when_the_tokenizer_is_known(tmp_path: Path) -> None:
    rows = sums(2, chains=2)
    rows[2]["steps"][1] = "Way 0:<|im_end|>\n<|im_start|>system 8 + 1 = 9."
    label_in_process(settings(tmp_path, rows, "estimator=fixed", "sampling.rollouts=2"))
    asked: dict[str, Any] = {"tokenizer": str(embedded_model()), "after_error": True, "max_length": 4096}
    with pytest.raises(InputError, match=r"1 special_token \(chain 4-0: step 2 contains '<\|im_end\|>'"):
        exported(tmp_path / "run", tmp_path / "out", "rlhflow", **asked)
    done = exported(tmp_path / "run", tmp_path / "out", "rlhflow", invalid=InvalidChains.drop, **asked)
    assert (done.files["train.jsonl"].rows, done.left_out["special_token"].count) == (3, 1)


def test_an_escaped_line_end_is_one(run_dir: Path, tmp_path: Path) -> None:
    exported(run_dir, tmp_path / "out", separator="\\n\\n")
    assert 'separator `"\\n\\n"`' in (tmp_path / "out" / CARD).read_text()


def test_an_unfinished_run_is_exported_when_that_is_meant(run_dir: Path, tmp_path: Path) -> None:
    unfinished = copied(run_dir, tmp_path)
    sorted((unfinished / "commits").glob("unit-*.json"))[0].unlink()
    with pytest.raises(UsageError, match=r"1 of 3 units is unfinished: finish the run with `label`, or .*partial=true"):
        exported(unfinished, tmp_path / "out")
    done = exported(unfinished, tmp_path / "out", partial=True)
    assert done.owed == 1
    assert done.chains == 80
    assert "Unfinished units of the run, which are left out: 1." in (tmp_path / "out" / CARD).read_text()


def test_an_earlier_export_is_replaced_only_when_asked_and_nothing_else_ever(run_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(run_dir, out, file=FileType.parquet)
    with pytest.raises(UsageError, match="overwrite=true"):
        exported(run_dir, out)
    exported(run_dir, out, overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == [CARD, "train.jsonl"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(UsageError, match="is no export"):
        exported(run_dir, tmp_path / "mine", overwrite=True)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    with pytest.raises(UsageError, match=r"would overwrite .*, which is read: choose another out"):
        exported(run_dir, run_dir / "labels" / "mine")
    with pytest.raises(UsageError, match="written to a local folder"):
        export(ExportConfig(run_dir=str(run_dir), format="trl", out="s3://bucket/x"))


def test_a_file_without_rows_is_refused(run_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"validation=1e-07 leaves no row of the 30 problems for validation.jsonl: raise"
    ):
        exported(run_dir, tmp_path / "out", validation=1e-7)
    with pytest.raises(InputError, match=r"for train.jsonl: lower it"):
        exported(run_dir, tmp_path / "out", validation=1 - 1e-7)
    assert not (tmp_path / "out").exists()


def test_outcome_rows_are_counted_and_balanced_by_outcome(run_dir: Path, tmp_path: Path) -> None:
    done = exported(run_dir, tmp_path / "out", "orm", balance=Balance.chains)
    found = [row["label"] for row in lines(tmp_path / "out/train.jsonl")]
    counts = done.files["train.jsonl"].labels
    assert (counts.good, counts.bad, counts.total) == (found.count(1), found.count(0), len(found))
    assert counts.good == counts.bad > 0


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"layout": "parquet", "uncertain": UncertainSteps.cut}, "add target=hard"),
        ({"layout": "parquet", "file": FileType.jsonl}, "writes Parquet"),
        ({"placeholder": "<x>"}, "format=trl has no placeholder"),
        ({"separator": ""}, "separator is empty"),
        ({"target": TargetKind.soft}, "target=hard"),
        ({"layout": "parquet", "separator": "x"}, "stores steps as lists"),
        ({"layout": "parquet", "tokenizer": "x"}, "nothing is checked"),
        ({"layout": "openrlhf", "placeholder": "Z", "separator": "aZb"}, "contains the placeholder 'Z'"),
        ({"layout": "openrlhf", "placeholder": "\\n"}, "contains the placeholder"),
        ({"layout": "orm", "threshold": 0.5}, "holds outcomes of chains"),
        ({"layout": "orm", "uncertain": UncertainSteps.drop}, "holds outcomes of chains"),
        ({"layout": "orm", "neutral": NeutralSteps.positive}, "holds outcomes of chains"),
        ({"max_length": 5}, "counted with a tokenizer"),
        ({"neutral": NeutralSteps.positive, "threshold": 0.5}, "there are no neutral steps"),
        ({"decontaminate": DecontaminateConfig(ngram=5)}, "no effect without decontaminate.paths"),
        ({"own": PreferenceConfig(margin=0.5)}, "PreferenceConfig is not for format=trl"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    asked: dict[str, Any], shown: str, run_dir: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=shown):
        exported(run_dir, tmp_path / "out", **asked)


def test_the_command_reports_what_it_wrote(run_dir: Path, tmp_path: Path, capsys: Printed) -> None:
    out = tmp_path / "out"
    assert main(["export", f"run_dir={run_dir}", "format=trl", f"out={out}", "uncertain=drop"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("train.jsonl       120 rows, 30 problems, ")
    assert shown.endswith(f"{out}\n")
    assert main(["export", f"run_dir={run_dir}", "format=tlr", f"out={out}"]) == 2
    assert "tlr" in capsys.readouterr().err
