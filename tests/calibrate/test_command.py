"""The command `calibrate` on runs with known values: what it writes, how good that is, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline import Run
from pipeline.__main__ import main
from pipeline.core.errors import UsageError
from pipeline.core.tables import CALIBRATED_SCORES, RAW_STEP_SCORES
from pipeline.display.document import GENERATOR
from pipeline.scorers.calibration import MapKind
from pipeline.scorers.calibration_file import read_calibration
from tests.agree.scored import score_row, write_scores
from tests.calibrate.known import true_ece
from tests.calibrate.runs import MODEL, STEPS, Row, labels, oracle_run, scored, true_values
from tests.conftest import write_rows

pytestmark = pytest.mark.slow

PROBLEMS = 60
Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return oracle_run(tmp_path_factory.mktemp("fresh"), problems=PROBLEMS)


@pytest.fixture(scope="module")
def rows(run_dir: Path) -> list[Row]:
    return labels(run_dir)


@pytest.fixture
def scores(rows: list[Row], tmp_path: Path) -> Path:
    return write_scores(tmp_path / "scores.parquet", scored(rows))


@pytest.fixture(scope="module")
def usual(rows: list[Row], run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return report(write_scores(tmp_path_factory.mktemp("usual") / "scores.parquet", scored(rows)), run_dir)


def calibrate(scores: Path, run_dir: Path, *more: str) -> int:
    return main(["calibrate", f"scores={scores}", f"run_dir={run_dir}", f"out={scores.with_name('cal.json')}", *more])


def report(scores: Path, run_dir: Path, *more: str) -> Any:
    assert calibrate(scores, run_dir, *more) == 0
    return json.loads(scores.with_name("cal.json").read_text())


def refused(capsys: Printed, scores: Path, run_dir: Path, *more: str) -> str:
    """What the command says when it ends with exit code 2, in one line. It has written nothing."""
    before = {path: path.read_bytes() for path in scores.parent.iterdir() if path.is_file()}
    assert calibrate(scores, run_dir, *more) == 2
    assert {path: path.read_bytes() for path in scores.parent.iterdir() if path.is_file()} == before
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


def test_scores_that_are_too_high_become_v_on_problems_that_are_not_seen(
    scores: Path, run_dir: Path, rows: list[Row], tmp_path: Path, capsys: Printed
) -> None:
    found = report(scores, run_dir)
    counts = found["figures"]["counts"]
    assert (counts["chains"], counts["steps"]) == (2 * PROBLEMS, 2 * PROBLEMS * STEPS)
    # The first step is common to the two chains of a problem.
    assert counts["prefixes"] == PROBLEMS * (1 + 2 * (STEPS - 2))
    assert (counts["repeated"], counts["ends"], counts["rollouts"]) == (PROBLEMS, 2 * PROBLEMS, 8 * counts["prefixes"])
    assert found["made_from"] == {
        "model": MODEL, "policy": rows[0]["policy"], "run_dir": str(run_dir), "estimator": "fixed", "chains": 2 * PROBLEMS,
        "problems": PROBLEMS, "prefixes": counts["prefixes"], "rollouts": counts["rollouts"],
        "stepvalue": found["made_from"]["stepvalue"],
    }  # fmt: skip
    total = found["figures"]["total"]
    assert total["before"]["ece"]["value"] >= 0.14
    assert total["after"]["ece"]["value"] <= 0.03
    assert total["before"]["bias"]["low"] > 0.1
    assert total["after"]["brier"]["value"] < total["before"]["brier"]["value"] - 0.02
    said = capsys.readouterr().out
    assert "not P(people call step k correct)" in said
    assert f"= {counts['prefixes']:,} prefixes that count + {PROBLEMS} repeated in another chain" in said

    made = read_calibration(scores.with_name("cal.json"))
    unseen = labels(oracle_run(tmp_path / "unseen", "sampling.rollouts=1", problems=100, first=1000))
    pairs = [
        (before, after, value)
        for row, given in zip(unseen, scored(unseen), strict=True)
        for before, after, value in list(
            zip(given["step_scores"], made.apply(given["step_scores"]), true_values(row), strict=True)
        )[:-1]
    ]
    before, after, values = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    assert true_ece(before, values) >= 0.15
    assert true_ece(after, values) <= 0.03


def test_right_scores_stay_as_they_are(rows: list[Row], run_dir: Path, tmp_path: Path, capsys: Printed) -> None:
    right = write_scores(tmp_path / "scores.parquet", scored(rows, lambda values: values, noise=0))
    found = report(right, run_dir)
    assert found["kind"] == "identity"
    assert found["figures"]["total"]["before"] == found["figures"]["total"]["after"]
    assert found["figures"]["total"]["before"]["ece"]["low"] == 0
    assert "the scores stay as they are" in capsys.readouterr().out
    kept = read_calibration(tmp_path / "cal.json")
    assert kept.kind is MapKind.identity
    assert kept.apply([0.3, None, 1]) == [pytest.approx(0.3, abs=1e-12), None, 1]


def test_neither_the_order_of_the_scores_nor_their_file_type_makes_a_difference(
    usual: Any, rows: list[Row], run_dir: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    backwards = scored(rows)[::-1]
    half = len(backwards) // 2
    write_scores(other / "one.parquet", backwards[:half])
    write_scores(other / "two.jsonl", backwards[half:])
    assert main(["calibrate", f"scores={other}", f"run_dir={run_dir}", f"out={tmp_path / 'again.json'}"]) == 0
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["maps"] == usual["maps"]
    assert again["figures"]["total"] == usual["figures"]["total"]


def test_a_position_with_enough_prefixes_has_a_map_of_its_own(scores: Path, run_dir: Path) -> None:
    found = report(scores, run_dir, "group_prefixes=60")
    assert [(each["first"], each["last"]) for each in found["maps"]] == [(1, 1), (2, 2), (3, 3), (4, None)]
    assert [each["prefixes"] for each in found["maps"]] == [PROBLEMS, *[2 * PROBLEMS] * 3]
    pooled = report(scores, run_dir, "group_prefixes=150")
    assert [(each["first"], each["last"]) for each in pooled["maps"]] == [(1, 2), (3, None)]


def test_values_that_neighbours_imply_are_no_rollouts(tmp_path: Path, capsys: Printed) -> None:
    """An estimator may leave prefixes out whose value follows from others."""
    run_dir = oracle_run(tmp_path / "bisect", "estimator=bisect")
    rows = labels(run_dir)
    scores = write_scores(tmp_path / "scores.parquet", scored(rows))
    counts = report(scores, run_dir, "least_prefixes=100")["figures"]["counts"]
    origins = [origin for row in rows for origin in row["origin"]]
    assert origins.count("implied") > 100
    assert counts["unsampled"] == origins.count("implied")
    measured = {
        prefix: (value, n)
        for row in rows
        for prefix, origin, value, n in zip(
            row["prefix_ids"], row["origin"], row["unbiased_value"], row["unbiased_rollouts"], strict=True
        )
        if origin == "measured"
    }
    assert counts["prefixes"] == len(measured)
    assert counts["rollouts"] == sum(n for _, n in measured.values())
    assert "estimator=fixed samples every prefix" in " ".join(capsys.readouterr().out.split())


def test_last_steps_are_judged_and_not_fitted(usual: Any, run_dir: Path, rows: list[Row], tmp_path: Path) -> None:
    ends = usual["figures"]["ends"]
    assert ends["before"]["prefixes"] == 2 * PROBLEMS
    assert ends["before"]["value"] == pytest.approx(np.mean([row["outcome"] for row in rows]))
    other = scored(rows)
    for row in other:
        row["step_scores"][-1] = 1 - row["step_scores"][-1]
    wrong = write_scores(tmp_path / "wrong.parquet", other)
    assert report(wrong, run_dir)["maps"] == usual["maps"]


def test_calibrated_scores_are_calibrated_from_the_models_own(
    scores: Path, rows: list[Row], run_dir: Path, tmp_path: Path, capsys: Printed
) -> None:
    found = report(scores, run_dir)
    made = read_calibration(scores.with_name("cal.json"))
    calibrated = [
        {**row, "step_scores": made.apply(row["step_scores"]), RAW_STEP_SCORES: row["step_scores"]}
        for row in scored(rows)
    ]
    path = tmp_path / "calibrated.parquet"
    frame = pl.DataFrame(calibrated, infer_schema_length=None)
    frame.select(CALIBRATED_SCORES.schema.names).to_arrow().cast(CALIBRATED_SCORES.schema)
    frame.write_parquet(path)
    again = report(path, run_dir)
    assert again["maps"] == found["maps"]
    assert found["figures"]["given"] is None
    assert again["figures"]["given"]["ece"]["value"] <= 0.02
    assert "the scores in the file are calibrated already" in capsys.readouterr().out
    folder = tmp_path / "mixed"
    folder.mkdir()
    path.rename(folder / "one.parquet")
    scores.rename(folder / "two.parquet")
    assert main(["calibrate", f"scores={folder}", f"run_dir={run_dir}", f"out={tmp_path / 'mixed.json'}"]) == 2
    assert "holds calibrated scores" in capsys.readouterr().err


def test_the_page_stands_alone(scores: Path, run_dir: Path, tmp_path: Path) -> None:
    report(scores, run_dir, "group_prefixes=150")
    page = (tmp_path / "cal.html").read_text()
    assert GENERATOR in page
    assert "default-src &#39;none&#39;" in page
    assert page.count("<svg ") == 3  # the reliability curve and two maps
    assert "not the probability that people call the step correct" in page
    named = tmp_path / "pages" / "p.html"
    named.parent.mkdir()
    report(scores, run_dir, f"page={named}")
    assert GENERATOR in named.read_text()


def test_in_python(scores: Path, run_dir: Path, tmp_path: Path) -> None:
    made = Run(run_dir).calibrate(scores, tmp_path / "cal.json", folds=4)
    assert made.folds == 4
    assert made.calibration == read_calibration(tmp_path / "cal.json")
    assert made.total.after.ece.value is not None
    with pytest.raises(UsageError, match="no setting fold: did you mean folds"):
        Run(run_dir).calibrate(scores, tmp_path / "cal.json", fold=4)


Change = Callable[[list[Row]], object]
BAD_SCORES: dict[str, Change] = {
    "is 1.5, and 1 of": lambda rows: rows[0]["step_scores"].__setitem__(1, 1.5),
    "4 scores for 5 steps": lambda rows: rows[0]["step_scores"].pop(),
    "holds scores of 2 models": lambda rows: rows[0].update(model="other"),
    "none of the 120 chains of": lambda rows: [row.update(problem=f"{row['problem']} Really?") for row in rows],
    "only 20 prefixes of 25 steps in 5 chains": lambda rows: rows.__delitem__(slice(0, -5)),
}


@pytest.mark.parametrize("said", BAD_SCORES)
def test_scores_that_cannot_be_meant_are_refused(
    said: str, rows: list[Row], run_dir: Path, tmp_path: Path, capsys: Printed
) -> None:
    made = scored(rows)
    if said.startswith("only"):
        # Chains of different problems, so that no prefix repeats.
        made = made[::2]
    BAD_SCORES[said](made)
    assert said in refused(capsys, write_scores(tmp_path / "scores.parquet", made), run_dir)


def test_few_prefixes_are_refused_unless_they_are_wanted(
    rows: list[Row], run_dir: Path, tmp_path: Path, capsys: Printed
) -> None:
    few = write_scores(tmp_path / "scores.parquet", scored(rows)[::6])
    said = refused(capsys, few, run_dir)
    assert "a calibration needs 200. Label more chains and score them" in said
    found = report(few, run_dir, "least_prefixes=80")
    assert found["figures"]["counts"]["prefixes"] == 80
    assert "20 problems only: all intervals are rough" in capsys.readouterr().out
    assert "folds=11 needs 22" in refused(capsys, few, run_dir, "least_prefixes=80", "folds=11")


def test_outputs_that_are_something_else_are_refused(
    scores: Path, run_dir: Path, tmp_path: Path, capsys: Printed
) -> None:
    assert "would overwrite" in refused(capsys, scores, run_dir, f"out={scores}")
    assert "would overwrite" in refused(capsys, scores, run_dir, f"out={run_dir / 'cal.json'}")
    assert "would overwrite" in refused(capsys, scores, run_dir, f"page={tmp_path / 'cal.json'}")
    (tmp_path / "notes.json").write_text("{}")
    assert "is not a calibration" in refused(capsys, scores, run_dir, f"out={tmp_path / 'notes.json'}")
    (tmp_path / "mine.html").write_text("<p>mine</p>")
    assert "is not a report" in refused(capsys, scores, run_dir, f"page={tmp_path / 'mine.html'}")
    assert "does not exist" in refused(capsys, scores, run_dir, f"out={tmp_path / 'no' / 'cal.json'}")
    assert "does not contain a run" in refused(capsys, scores, tmp_path / "nowhere")
    assert "there is no such file" in refused(capsys, tmp_path / "no.parquet", run_dir)
    assert calibrate(scores, run_dir) == 0
    assert calibrate(scores, run_dir) == 0  # its own files are replaced


def test_the_run_that_a_model_was_trained_on_is_refused(
    rows: list[Row], run_dir: Path, tmp_path: Path, capsys: Printed
) -> None:
    prm = tmp_path / "prm"
    prm.mkdir()
    scores = write_scores(tmp_path / "scores.parquet", scored(rows, model=str(prm)))
    (prm / "train.json").write_text(json.dumps({"settings": {"run_dir": str(run_dir)}, "labels": "", "metrics": None}))
    assert "was trained on the labels of this run" in refused(capsys, scores, run_dir)
    (prm / "train.json").write_text(json.dumps({"settings": {"run_dir": str(tmp_path)}, "labels": "", "metrics": None}))
    assert calibrate(scores, run_dir) == 0
    (prm / "train.json").write_text("[]")
    assert calibrate(scores, run_dir) == 0


def test_an_unfinished_run_is_used_only_if_that_is_said(tmp_path: Path, capsys: Printed) -> None:
    run_dir = oracle_run(tmp_path / "part", "run.unit_problems=20")
    rows = labels(run_dir)
    whole = sorted((run_dir / "commits").glob("unit-*"))
    assert len(whole) == 3
    whole[0].unlink()
    scores = write_scores(tmp_path / "scores.parquet", scored(rows))
    assert "partial=true" in refused(capsys, scores, run_dir)
    found = report(scores, run_dir, "partial=true")
    assert found["figures"]["owed_units"] == 1
    assert found["figures"]["counts"]["not_in_run"] == 40
    assert "the run is unfinished: 1 unit without labels" in capsys.readouterr().out


def test_scores_of_another_program_need_no_model(
    rows: list[Row], run_dir: Path, tmp_path: Path, capsys: Printed
) -> None:
    foreign = [{key: row[key] for key in ("problem", "steps", "step_scores")} for row in scored(rows)]
    path = write_rows(tmp_path / "scores.jsonl", foreign)
    assert report(path, run_dir)["made_from"]["model"] == ""
    assert "other_model=true" in capsys.readouterr().out


def test_chains_that_only_one_side_has_are_counted(
    rows: list[Row], run_dir: Path, tmp_path: Path, capsys: Printed
) -> None:
    made = [*scored(rows)[:-4], score_row("Another?", ["No."], [0.5], model=MODEL)]
    counts = report(write_scores(tmp_path / "scores.parquet", made), run_dir)["figures"]["counts"]
    assert (counts["matched"], counts["not_in_run"], counts["not_scored"]) == (2 * PROBLEMS - 4, 1, 4)
    assert "1 of the 117 chains of the scores are not in the run" in capsys.readouterr().out
