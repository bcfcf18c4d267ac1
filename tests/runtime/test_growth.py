"""A run whose input grows: old units stay as they are, what is new is labelled once, and nothing changes unseen."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.report.run_data import first_chains
from pipeline.core.errors import InputError
from pipeline.core.failpoints import ARMED
from pipeline.core.progress import Summary
from pipeline.storage.location import storage_at
from tests.audit.runs import files as all_files
from tests.conftest import ROOT, write_rows
from tests.runtime.growing import SMALL, Row, assert_sound, chains, files, label, labels
from tests.runtime.in_process import label_in_process
from tests.runtime.without_ray import without_ray
from tests.settings import compose_label

pytestmark = pytest.mark.slow


def test_appended_rows_open_new_units_and_old_ones_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = label(tmp_path, chains(1, 2, 3, 4))
    before = {name: files(tmp_path, name) for name in ("labels", "rollouts", "commits", "inputs")}
    grown = label(tmp_path, [*chains(1, 2, 3, 4), *chains(5), *chains(1, 2, last=3)])
    assert (
        "the input grew: 3 new rows = 3 used + 0 rejected; 1 new problem; 2 rows of 2 old problems"
        in capsys.readouterr().err
    )
    for name, content in before.items():
        assert content.items() <= files(tmp_path, name).items()
    assert (first.units, grown.units, grown.units_done_now) == (2, 3, 1)
    totals = grown.totals
    assert (totals.rows, totals.used, totals.rejected, totals.problems, totals.chains) == (7, 7, 0, 5, 7)
    assert totals.rollouts == first.totals.rollouts + grown.now.rollouts
    assert labels(tmp_path)["chain_id"].n_unique() == labels(tmp_path).height == 7
    rollouts = pl.read_parquet(tmp_path / "run" / "rollouts" / "*.parquet")
    assert rollouts["rollout_id"].is_unique().all()
    assert_sound(tmp_path)


def test_rows_in_another_order_are_recognised(tmp_path: Path) -> None:
    rows = [*chains(1, 2, 3), {"id": "bad", "problem": "", "answer": "1"}, *chains(2, 2, last=5)]
    first = label(tmp_path, rows)
    before = files(tmp_path, "labels")
    again = label(tmp_path, rows[::-1])
    assert (again.units_done_now, again.totals) == (0, first.totals)
    assert files(tmp_path, "labels") == before
    grown = label(tmp_path, [*chains(7), *rows[::-1], {"id": "worse", "problem": "", "answer": "1"}, chains(1)[0]])
    assert (grown.totals.rows, grown.totals.used, grown.totals.rejected) == (9, 5, 4)
    rejects = pl.concat(map(pl.read_parquet, (tmp_path / "run" / "rejects").glob("*.parquet")))
    assert sorted(rejects.select("source_id", "reason").rows()) == [
        ("1-1", "duplicate"),
        ("2-5", "duplicate"),
        ("bad", "missing_problem"),
        ("worse", "missing_problem"),
    ]
    assert_sound(tmp_path)


def test_a_raised_limit_reads_further(tmp_path: Path) -> None:
    rows = chains(*range(10))
    assert label(tmp_path, rows, "data.limit=4").totals.rows == 4
    assert label(tmp_path, rows, "data.limit=7").totals.rows == 7
    # Rows beyond the limit do not count.
    assert label(tmp_path, [*rows, *chains(11)], "data.limit=7").units_done_now == 0
    assert label(tmp_path, [*rows, *chains(11)]).totals.rows == 11
    assert_sound(tmp_path)
    with pytest.raises(InputError, match=r"(?s)rows.jsonl:8 vanished.*raise data.limit=7"):
        label(tmp_path, rows, "data.limit=7")


CHANGED: list[tuple[list[Row], str]] = [
    (chains(1, 3), r"rows.jsonl:2 vanished"),
    ([*chains(1), chains(2)[0] | {"answer": "6"}, *chains(3)], r":2 changed: the row at .*:2 has another known answer"),
    ([*chains(1), chains(2)[0] | {"steps": ["x", "y"]}, *chains(3)], r":2 changed: .*:2 has another solution"),
    ([*chains(1, 3), chains(2)[0] | {"problem": "Why?"}], r":2 changed: the row at .*:3 has another problem"),
    ([*chains(1), chains(2)[0] | {"id": "other"}, *chains(3)], r":2 changed: the row at .*:2 has another id"),
    (
        [*chains(1), chains(2)[0] | {"answer": None}, *chains(3)],
        r":2 changed: the row at .*:2 was rejected .missing_answer",
    ),
    (
        [*chains(7, 1, 3), {**chains(2)[0], "answer": "6", "id": None}],
        r":2 changed: the row at .*:4 has another known answer",
    ),
]


@pytest.mark.parametrize(("rows", "named"), CHANGED)
def test_a_changed_row_is_refused_with_its_number(tmp_path: Path, rows: list[Row], named: str) -> None:
    label(tmp_path, chains(1, 2, 3))
    before = all_files(tmp_path / "run")
    with pytest.raises(InputError, match=named) as caught:
        label(tmp_path, rows)
    assert "1 of 3 used rows" in str(caught.value)
    assert str(caught.value).endswith("\nRestore these rows, or use another run_dir")
    assert before.items() <= all_files(tmp_path / "run").items()
    assert label(tmp_path, chains(1, 2, 3)).units_done_now == 0


def test_an_input_that_grows_before_a_unit_has_begun_is_staged_afresh(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        label(tmp_path, [{"problem": ""}])
    grown = label(tmp_path, chains(1, 2))
    assert (grown.totals.rows, grown.totals.rejected) == (2, 0)
    recorded = json.loads((tmp_path / "run" / "run.json").read_text())
    assert len(list((tmp_path / "run" / "commits").glob(f"input-{recorded['staged_input']}-*"))) == 1


def test_the_chains_that_are_shown_are_those_that_are_new(tmp_path: Path) -> None:
    def shown(summary: Summary) -> list[object]:
        storage = storage_at(summary.run_dir)
        return [chain["source_id"] for chain in first_chains(storage, 2, summary.first_new)]

    first = label(tmp_path, chains(1, 2, 3, 4))
    assert (first.first_new, shown(first)) == ("", ["1-1", "2-1"])
    assert shown(label(tmp_path, [*chains(9), *chains(1, 2, 3, 4), *chains(1, last=3)])) == ["1-3", "9-1"]
    # More rollouts for all of them, and new rows at the same time.
    both = label(tmp_path, [*chains(9, 1, 2, 3, 4, 8), *chains(1, last=3)], "sampling.rollouts=4")
    assert (both.units_done_now, shown(both)) == (both.units, ["8-1"])
    assert labels(tmp_path).select(pl.col("n_rollouts").list.first()).to_series().to_list() == [4] * 7
    assert both.totals.rollouts > first.totals.rollouts
    assert_sound(tmp_path)
    # Where nothing is new, the first ones.
    assert shown(label(tmp_path, [*chains(9, 1, 2, 3, 4, 8), *chains(1, last=3)], "sampling.rollouts=4")) == [
        "1-1",
        "2-1",
    ]


EIGHT = chains(*range(8))
GROWN = [*EIGHT[::-1], *chains(0, 1, last=3), *chains(8, 9)]
LINE = (
    "stepvalue: the input grew: 4 new rows = 4 used + 0 rejected; 2 new problems; 2 rows of 2 old problems in new units, where "
    "the prefixes that they share with earlier chains are sampled again (about 12 rollouts)"
)
COMMAND = """
import sys
from pipeline.__main__ import main
from tests.runtime.without_ray import without_ray
with without_ray():
    sys.exit(main(sys.argv[1:]))
"""


def test_the_command_goes_on_after_a_kill_and_refuses_a_changed_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [f"run_dir={tmp_path / 'run'}", *SMALL, "run.report=false"]
    settings.append(f"data.path={write_rows(tmp_path / 'rows.jsonl', EIGHT)}")
    label_in_process(compose_label(settings))
    write_rows(tmp_path / "rows.jsonl", GROWN)
    # Before any worker has a unit: what is new to the next start is then what is new to the run.
    killed = subprocess.run(
        [sys.executable, "-c", COMMAND, "label", *settings],
        cwd=ROOT, env={**os.environ, ARMED: "driver.submitted:kill:1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert killed.returncode == -9
    assert LINE in killed.stderr
    capsys.readouterr()
    with without_ray():
        assert main(["label", *settings]) == 0
    again = capsys.readouterr()
    assert "the input grew" not in again.err
    assert "12 read = 12 used + 0 rejected" in again.out
    shown = again.out.partition("of what is new:")[2]
    assert "0-3 (" in shown
    assert "0-1 (" not in shown
    assert labels(tmp_path).height == 12
    assert_sound(tmp_path)
    changed = [*GROWN[:-1], {**GROWN[-1], "answer": "20"}]
    write_rows(tmp_path / "rows.jsonl", changed)
    with without_ray():
        assert main(["label", *settings]) == 2
    refused = capsys.readouterr().err
    assert "rows.jsonl:12 changed: the row at " in refused
    assert "rows.jsonl:12 has another known answer" in refused


def test_a_default_folder_makes_another_run_and_names_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [f"data.path={tmp_path}/rows.jsonl", *SMALL]
    write_rows(tmp_path / "rows.jsonl", EIGHT)
    first = label_in_process(compose_label(settings))
    write_rows(tmp_path / "rows.jsonl", GROWN)
    assert "runs/" not in capsys.readouterr().err
    other = label_in_process(compose_label(settings))
    assert other.run_dir != first.run_dir
    assert f"to add rows to it, give run_dir={Path(first.run_dir).relative_to(tmp_path)}" in capsys.readouterr().err
    grown = label_in_process(compose_label([*settings, f"run_dir={first.run_dir}"]))
    assert (grown.run_dir, grown.totals.rows) == (first.run_dir, len(GROWN))
