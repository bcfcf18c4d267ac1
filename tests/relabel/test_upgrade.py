"""Runs of schema 3, whose labels have other columns: what needs values refuses them, and `relabel` makes labels that it reads.

The run directories are those of `tests/guard/before`, which version 0.1.0 wrote.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import compose_label, main
from pipeline.core.schemas import LABELS, LABELS_3, READABLE_SCHEMAS
from pipeline.storage.run_record import encode_identity
from tests.guard.old import BEFORE, OLD, copied, placed
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

RENAMED = {
    "value": "unbiased_value",
    "value_rollouts": "unbiased_rollouts",
    "posterior_mean": "value",
    "posterior_sd": "value_sd",
}
POSTERIOR = {"posterior_mean", "posterior_sd", "low", "high", "advantage", "advantage_sd", "label"}
MAY_CHANGE = {
    "fixed": {"posterior_mean", "root_posterior_mean", "advantage"},
    "pooled": POSTERIOR | {f"root_{name}" for name in POSTERIOR},
}
"""Columns with other numbers now: the value of `fixed` is correct / graded, and `pooled` may get a better posterior."""
UPGRADE = "makes new ones, without a model"
OLD_RUNS = [name for name, old in OLD.items() if not old.stopped]


def current(run_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(run_dir / "labels" / "*.parquet").sort("chain_id")


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line with which a command refuses."""
    capsys.readouterr()
    assert main([*words]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    return shown.err


def continued(folder: Path, name: str, *more: str) -> Path:
    """A copy of an old run after `label` with its settings, and `more`."""
    placed(folder)
    run_dir = copied(OLD[name], folder)
    label_in_process(compose_label([*OLD[name].settings.split(), f"run_dir={run_dir}", *more]))
    return run_dir


@pytest.mark.parametrize("name", OLD_RUNS)
def test_relabel_with_the_same_settings_gives_the_old_numbers_under_the_new_names(name: str, tmp_path: Path) -> None:
    run_dir = copied(OLD[name], tmp_path)
    old = current(run_dir)
    assert old.columns == LABELS_3.names
    assert main(["relabel", f"run_dir={run_dir}"]) == 0
    new = current(run_dir)
    assert new.columns == LABELS.names
    estimator = old["estimator"][0]
    for column in set(LABELS_3.names) - MAY_CHANGE.get(estimator, set()):
        root, bare = "root_" * column.startswith("root_"), column.removeprefix("root_")
        now = f"{root}{RENAMED[bare]}" if bare in RENAMED else column
        assert new[now].equals(old[column], check_names=False), column
    if estimator == "fixed":
        assert new["value"].equals(old["value"])
        assert new["root_value"].equals(old["root_value"])
    assert main(["audit", f"run_dir={run_dir}"]) == 0


@pytest.mark.parametrize("command", ["relabel", "regrade"])
def test_an_upgrade_is_made_once(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = copied(OLD["default"], tmp_path)
    assert main([command, f"run_dir={run_dir}"]) == 0
    assert "edition   0 is new" in capsys.readouterr().out
    assert main([command, f"run_dir={run_dir}"]) == 0
    assert "Nothing to do" in capsys.readouterr().out


def test_what_reads_values_says_how_to_upgrade_and_works_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    placed(tmp_path)
    run_dir, other = copied(OLD["default"], tmp_path), copied(OLD["fixed"], tmp_path)
    humans = tmp_path / "humans.jsonl"
    rows = [json.loads(line) for line in (BEFORE / "problems.jsonl").read_text(encoding="utf-8").splitlines()]
    people: list[dict[str, Any]] = [
        {"id": row["id"], "problem": row["problem"], "steps": row["steps"], "label": -1}
        for row in rows
        if row.get("steps")
    ]
    humans.write_text("".join(json.dumps(row) + "\n" for row in people), encoding="utf-8")
    commands = [
        ("report", f"run_dir={run_dir}", f"out={tmp_path / 'report.html'}"),
        ("report", f"run_dir=[{run_dir},{other}]", f"out={tmp_path / 'compare.html'}"),
        ("export", f"run_dir={run_dir}", "format=trl", f"out={tmp_path / 'trl'}"),
        ("export", f"run_dir={run_dir}", "format=parquet", f"out={tmp_path / 'parquet'}"),
        ("agree", f"run_dir={run_dir}", f"data.path={humans}"),
    ]
    for command in commands:
        said = refused(capsys, *command)
        assert f"{run_dir} has labels with the columns of schema 3" in said
        assert f"`relabel run_dir={run_dir}` {UPGRADE}" in said
    assert not (tmp_path / "trl").exists()
    for each in (run_dir, other):
        assert main(["relabel", f"run_dir={each}"]) == 0
    for command in commands:
        assert main([*command]) == 0


def test_what_needs_no_value_reads_old_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = copied(OLD["default"], tmp_path)
    assert main(["status", f"run_dir={run_dir}"]) == 0
    assert "finished" in capsys.readouterr().out
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    shown = capsys.readouterr().out
    assert "2 label files with the columns of schema 3, whose values are not computed again" in shown
    assert "\nsound " in shown


def test_label_continues_a_run_of_schema_3_and_its_mixed_labels_are_refused_until_relabel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (BEFORE / "stopped" / "run.json").read_bytes()
    assert main(["relabel", f"run_dir={copied(OLD['stopped'], tmp_path)}"]) == 2
    shutil.rmtree(tmp_path / "stopped")
    run_dir = continued(tmp_path, "stopped")
    assert (run_dir / "run.json").read_bytes() == before
    of_files = {tuple(pl.read_parquet(path).columns) for path in (run_dir / "labels").iterdir()}
    assert of_files == {tuple(LABELS.names), tuple(LABELS_3.names)}
    assert UPGRADE in refused(capsys, "export", f"run_dir={run_dir}", "format=trl", "out=trl")
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    assert main(["relabel", f"run_dir={run_dir}"]) == 0
    whole = copied(OLD["fixed"], tmp_path)
    assert main(["relabel", f"run_dir={whole}"]) == 0
    assert current(run_dir).equals(current(whole))
    assert main(["export", f"run_dir={run_dir}", "format=trl", "out=trl"]) == 0


def test_an_unfinished_run_is_finished_before_it_is_relabelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = copied(OLD["stopped"], tmp_path)
    said = refused(capsys, "export", f"run_dir={run_dir}", "format=trl", f"out={tmp_path / 'trl'}", "partial=true")
    assert f"finish it with `label`, then `relabel run_dir={run_dir}`" in said


def test_a_run_of_schema_3_that_lost_its_record_gets_it_back_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    placed(tmp_path)
    run_dir = copied(OLD["fixed"], tmp_path)
    (run_dir / "run.json").unlink()
    label_in_process(compose_label([*OLD["fixed"].settings.split(), f"run_dir={run_dir}"]))
    assert (run_dir / "run.json").read_bytes() == (BEFORE / "fixed" / "run.json").read_bytes()


@pytest.mark.parametrize("schema", [1, 2, max(READABLE_SCHEMAS) + 1])
def test_other_schemas_are_refused_as_before(schema: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = copied(OLD["fixed"], tmp_path)
    found = json.loads((run_dir / "run.json").read_text(encoding="utf-8"))
    found.pop("check")
    (run_dir / "run.json").write_bytes(encode_identity({**found, "schema": schema}))
    for command in ("status", "relabel", "report", "audit"):
        assert f"was written with schema {schema}" in refused(capsys, command, f"run_dir={run_dir}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["format=parquet", "columns=[chain_id,posterior_mean]"], "posterior_mean is now called value;"),
        (["format=parquet", "columns=[posterior_sd]"], "posterior_sd is now called value_sd;"),
        (["format=parquet", "columns=[value_rollouts]"], "value_rollouts is now called unbiased_rollouts;"),
        (["format=parquet", "columns=[root_posterior_mean]"], "root_posterior_mean is now called root_value;"),
        (["format=qwen", "target=soft", "soft=posterior_mean"], "give soft=value"),
    ],
)
def test_old_names_of_columns_are_refused_with_the_new_ones(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, "export", f"run_dir={tmp_path / 'run'}", f"out={tmp_path / 'out'}", *words)


@pytest.mark.parametrize("command", ["train", "agree"])
def test_the_old_choice_of_soft_is_refused_with_the_new_one(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "give soft=value" in refused(capsys, command, "soft=posterior_mean")
