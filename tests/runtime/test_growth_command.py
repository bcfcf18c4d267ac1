"""Growth as a user meets it: the command, its lines and exit codes, and kill -9."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.__main__ import compose_label, main
from pipeline.core.failpoints import ARMED
from tests.conftest import ROOT, write_rows
from tests.runtime.growing import SMALL, assert_sound, chains, labels
from tests.runtime.in_process import label_in_process
from tests.runtime.without_ray import without_ray

pytestmark = pytest.mark.slow

OLD = chains(*range(8))
GROWN = [*OLD[::-1], *chains(0, 1, last=3), *chains(8, 9)]
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
    settings.append(f"data.path={write_rows(tmp_path / 'rows.jsonl', OLD)}")
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
    write_rows(tmp_path / "rows.jsonl", OLD)
    first = label_in_process(compose_label(settings))
    write_rows(tmp_path / "rows.jsonl", GROWN)
    assert "runs/" not in capsys.readouterr().err
    other = label_in_process(compose_label(settings))
    assert other.run_dir != first.run_dir
    assert f"to add rows to it, give run_dir={Path(first.run_dir).relative_to(tmp_path)}" in capsys.readouterr().err
    grown = label_in_process(compose_label([*settings, f"run_dir={first.run_dir}"]))
    assert (grown.run_dir, grown.totals.rows) == (first.run_dir, len(GROWN))
