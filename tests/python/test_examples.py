"""Everything in `pipeline/examples` runs: the notebook inside a running event loop, as a kernel has it, and each script."""

import asyncio
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import Run, SearchRun, open_run, open_search
from pipeline.core.errors import UsageError
from pipeline.core.records import Verdict
from pipeline.examples import scorer
from pipeline.examples.grader import YesNo, YesNoConfig
from tests.conftest import ROOT

EXAMPLES = ROOT / "pipeline" / "examples"
NOTEBOOK = json.loads((EXAMPLES / "first_run.ipynb").read_text("utf-8"))
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
SCRIPTS = {
    "estimator": "halves", "policy": "echo", "grader": "yes_no", "export_format": "exported", "scorer": "scored",
    "search": "searched", "picker": "grown", "judge": "judged", "verifier": "verified", "witness": "witnessed",
}  # fmt: skip
"""Script -> its run directory."""
REAL, QUICK = 'POLICY = "embedded"', 'POLICY = "oracle"'


@pytest.mark.slow
@pytest.mark.parametrize("ray", [False, pytest.param(True, marks=[pytest.mark.ray, pytest.mark.nightly])])
def test_the_notebook_runs(ray: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the oracle in place of the small model, whose labels other tests look at."""
    monkeypatch.chdir(tmp_path)
    assert sum(REAL in cell for cell in CELLS) == 1
    names: dict[str, Any] = {"__name__": "__main__"}

    async def kernel() -> None:
        for cell in CELLS:
            exec(compile(cell.replace(REAL, QUICK), "<cell>", "exec"), names)

    asyncio.run(kernel())
    run = open_run("first_run")
    assert run.finished
    assert run.settings["estimator.rule"] == "threshold"
    assert (tmp_path / "first_run_trl" / "train.jsonl").is_file()
    assert (tmp_path / "first_run" / "report.html").is_file()


def test_the_notebook_holds_no_output() -> None:
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_script_does(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process; `test_a_script_runs` starts the scripts as their readers do."""
    monkeypatch.chdir(tmp_path)
    import_module(f"pipeline.examples.{name}").main()
    assert opened(name, tmp_path).finished


def opened(name: str, folder: Path) -> Run | SearchRun:
    """The run directory of a script."""
    return (open_search if name == "search" else open_run)(folder / SCRIPTS[name])


@pytest.mark.nightly
@pytest.mark.ray
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"pipeline.examples.{name}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert opened(name, tmp_path).finished


def test_the_grader_of_the_example_grades() -> None:
    grader = YesNo(YesNoConfig())
    answers = [answer or "" for answer in grader.extract(["No, wait: yes.", "It is no."], complete=True)]
    assert answers == ["yes", "no"]
    assert grader.grade([["yes"], ["yes"]], answers) == [Verdict.CORRECT, Verdict.INCORRECT]


def test_every_example_is_tested() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} - {"__init__"} == SCRIPTS.keys()
    assert [file.name for file in EXAMPLES.glob("*.ipynb")] == ["first_run.ipynb"]


@pytest.mark.slow
def test_a_run_is_scored_in_a_notebooks_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scorer.main()
    run = open_run(tmp_path / "scored")

    async def cell() -> object:
        return run.score(tmp_path / "again.parquet", scorer=scorer.Brevity(scorer.BrevityConfig(half=5)))

    found: Any = asyncio.run(cell())
    assert (found.chains, found.steps) == (2, 6)
    with pytest.raises(UsageError, match=r"out=.*again must end in .parquet or .jsonl"):
        run.score(tmp_path / "again", scorer="oracle")
    rows = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    again = pl.read_parquet(tmp_path / "again.parquet").to_dicts()
    for row, other in zip(rows, again, strict=True):
        assert row["step_scores"] == [0.5 ** (len(step) / 10) for step in row["steps"]]
        assert other["step_scores"] == [0.5 ** (len(step) / 5) for step in row["steps"]]
