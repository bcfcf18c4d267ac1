"""`score out=FOLDER`: every chain has its scores once, whatever dies in between, and a later start does what is new."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.config.label import ClusterConfig, Columns, DataConfig, RunConfig
from pipeline.config.score import ScoreConfig
from pipeline.core.errors import RunConflict, UsageError
from pipeline.core.progress import Status, Summary
from pipeline.core.tables import CALIBRATED_SCORES, SCORES
from pipeline.graders.settings import MathConfig
from pipeline.runtime.chain_run.estimate import estimate
from pipeline.runtime.scoring.files import score_to_file
from pipeline.runtime.scoring.task import ScoreTask
from pipeline.scorers.calibration import Calibration, MapKind, encode
from pipeline.storage.score_files import score_files
from tests.conftest import write_rows
from tests.oracles.lab import LabScorerConfig, LabScores
from tests.runtime.in_process import done_here
from tests.runtime.judging.runs import QUICK, rows
from tests.scorers.test_calibration import line, made_from


def settings(path: Path, out: Path, run: RunConfig = QUICK, **own: Any) -> ScoreConfig:
    return ScoreConfig(
        out=str(out),
        data=DataConfig(path=str(path), columns=Columns()),
        grader=MathConfig(),
        scorer=LabScorerConfig(lab=LabScores(**own)),
        run=run,
        cluster=ClusterConfig(workers=2),
    )


def scored(config: ScoreConfig, watch: Callable[[Status], None] = lambda _: None) -> Summary:
    return done_here(ScoreTask(config), watch)


def frame(out: Path) -> pl.DataFrame:
    return pl.concat(map(pl.read_parquet, score_files("out", out)))


@pytest.fixture
def input_file(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", rows(23))


@pytest.fixture
def expected(input_file: Path, tmp_path: Path) -> pl.DataFrame:
    """The scores of the same chains, scored in this process into one file."""
    out = tmp_path / "expected.parquet"
    score_to_file(settings(input_file, out))
    return pl.read_parquet(out)


def test_a_folder_holds_the_scores_that_a_file_would(input_file: Path, expected: pl.DataFrame, tmp_path: Path) -> None:
    found = scored(settings(input_file, tmp_path / "out"))
    assert (found.tally["chains"], found.tally["steps"], found.units, found.added["chains"]) == (23, 68, 5, 23)
    assert frame(tmp_path / "out").equals(expected)
    assert frame(tmp_path / "out").columns == SCORES.schema.names


def test_another_input_is_refused_and_nothing_changes(input_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run_dir_7"
    scored(settings(input_file, out))
    before = frame(out)
    write_rows(input_file, rows(23, first=4))
    with pytest.raises(RunConflict, match=r"has scores of other chains: chain \w+ is not in the input any more"):
        scored(settings(input_file, out))
    assert frame(out).equals(before)


def test_a_chain_that_is_there_twice_is_scored_once(input_file: Path, tmp_path: Path) -> None:
    write_rows(input_file, [*rows(6), *rows(2), {"problem": "no steps"}])
    found = scored(settings(input_file, tmp_path / "out"))
    assert (found.tally["chains"], found.tally["rejected"]) == (6, 3)
    reasons = pl.read_parquet(tmp_path / "out" / "rejects" / "*.parquet")["reason"].to_list()
    assert sorted(reasons) == ["duplicate", "duplicate", "no_steps"]


def test_status_and_readers_know_the_folder(
    input_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    scored(settings(input_file, out))
    assert main(["status", f"run_dir={out}"]) == 0
    said = capsys.readouterr().out
    assert "state     finished: all units are finished" in said
    assert "scores    68 steps of 23 chains" in said
    assert "label" not in said
    assert main(["status", f"run_dir={out}", "json=true"]) == 0
    assert json.loads(capsys.readouterr().out)["command"] == "score"
    assert main(["select", f"scores={out}"]) == 0
    people = write_rows(tmp_path / "people.jsonl", [{**row, "label": -1} for row in rows(23)])
    assert main(["agree", f"scores={out}", "data=rows", f"data.path={people}", "resamples=100"]) == 0
    capsys.readouterr()
    assert main(["report", f"run_dir={out}"]) == 2
    assert f"{out} is a run of `score`: give a directory that `label` has written" in capsys.readouterr().err
    shutil.rmtree(out / "commits")
    assert main(["agree", f"scores={out}", "data=rows", f"data.path={people}"]) != 0


def squared(path: Path, model: str) -> Path:
    """A calibration file that says: V is the square of a score."""
    every = line(1, None, *((number / 100, (number / 100) ** 2) for number in range(101)))
    made = Calibration(kind=MapKind.isotonic, confidence=0.95, made_from=made_from(model=model), maps=(every,))
    path.write_text(encode(made, {}))
    return path


def test_a_calibration_is_part_of_what_the_folder_is(input_file: Path, expected: pl.DataFrame, tmp_path: Path) -> None:
    config = settings(input_file, tmp_path / "out")
    model = str(expected["model"][0])
    calibrated = replace(config, calibration=str(squared(tmp_path / "cal.json", model)))
    scored(calibrated)
    got = frame(tmp_path / "out")
    assert got.columns == CALIBRATED_SCORES.schema.names
    assert got["raw_step_scores"].to_list() == expected["step_scores"].to_list()
    assert got["score_last"].to_list() == pytest.approx([score**2 for score in expected["score_last"]], abs=1e-3)
    with pytest.raises(RunConflict, match="calibration was"):
        scored(config)
    other = replace(config, out=str(tmp_path / "other"), calibration=str(squared(tmp_path / "2.json", "another")))
    with pytest.raises(UsageError, match=r"was made for scores of another, not of oracle:"):
        scored(other)
    assert scored(replace(other, other_model=True)).tally["chains"] == 23


def test_an_estimate_counts_the_chains_and_writes_nothing(
    input_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(input_file, [*rows(300), {"problem": "no steps"}])
    config = settings(input_file, tmp_path / "out", chains_per_second=5_000)
    found = estimate(ScoreTask(config))
    assert (found.sample.chains, found.sample.steps, found.sampled, found.sample.left_out.rows) == (300, 900, 256, 1)
    # 256 chains at 5,000 a second, and no faster.
    assert found.seconds_of_sample >= 250 / 5_000
    assert found.seconds >= 250 / 5_000
    words = ["score", f"data.path={input_file}", "scorer=oracle", f"out={tmp_path / 'out'}", "--estimate"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith("300 chains with 900 steps to score by oracle:")
    assert "left out  1 row, the first: " in said
    assert not (tmp_path / "out").exists()


def test_label_refuses_the_folder_of_scores(
    input_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    scored(settings(input_file, out))
    assert main(["label", f"data.path={input_file}", "policy=oracle", f"run_dir={out}"]) == 2
    assert "belongs to a run of `score`, and this is `label`: use another run_dir" in capsys.readouterr().err


def test_a_folder_that_cannot_be_is_named_by_the_setting_of_score(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    input_file = write_rows(tmp_path / "rows.jsonl", rows(2))
    with pytest.raises(UsageError, match=r"^out=\S+ is a file or is inside a file: choose another out$"):
        scored(settings(input_file, tmp_path / "notes" / "deeper"))
    with pytest.raises(UsageError, match=r"^out=file://scores is not the URL of a folder"):
        scored(replace(settings(input_file, tmp_path), out="file://scores"))
