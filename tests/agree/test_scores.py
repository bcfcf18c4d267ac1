"""`agree scores=...` as a user runs it: figures that are known, files and folders as `score` writes them, and bad input."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.__main__ import main
from pipeline.analysis.agree.human import NO_ERROR
from pipeline.display.document import GENERATOR
from tests.agree.scored import beta, oracle, score_row, write_scores
from tests.conftest import SHARED_DATA, write_rows

pytestmark = pytest.mark.slow

Printed = pytest.CaptureFixture[str]
Row = dict[str, Any]
Two = tuple[Path, list[Row]]
PROCESSBENCH = SHARED_DATA / "processbench_dev.jsonl"


def person(number: int, error: int, n_steps: int = 3, subset: str = "gsm8k", **more: Any) -> Row:
    steps = [f"step {at} of {subset} {number}" for at in range(n_steps)]
    return {"id": f"{subset}-{number}", "problem": f"{subset} {number}?", "steps": steps, "label": error, **more}


def scored(row: Row, *scores: float | None, **more: Any) -> Row:
    return score_row(row["problem"], row["steps"], scores, source_id=row["id"], **more)


def agree(scores: Path, data: Path, *more: str, layout: str = "processbench") -> int:
    return main(["agree", f"scores={scores}", f"data={layout}", f"data.path={data}", "resamples=100", *more])


def report(scores: Path, data: Path, *more: str, layout: str = "processbench") -> Row:
    out = scores.with_name("report.json")
    assert agree(scores, data, f"out={out}", *more, layout=layout) == 0
    loaded = json.loads(out.read_text())
    assert isinstance(loaded, dict)
    return loaded


def refused(capsys: Printed, scores: Path, data: Path, *more: str, layout: str = "processbench") -> str:
    """What the command says when it ends with exit code 2, in one line."""
    assert agree(scores, data, *more, layout=layout) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


@pytest.fixture
def two(tmp_path: Path) -> Two:
    """The data and rows of a chain with an error at step 1 and one without."""
    rows = [person(1, 1), person(2, NO_ERROR)]
    return write_rows(tmp_path / "people.jsonl", rows), rows


def test_known_scores_give_known_figures(tmp_path: Path) -> None:
    rows = [
        *(person(number, 1, final_answer_correct=number == 0) for number in range(4)),
        *(person(number, NO_ERROR) for number in range(4, 7)),
    ]
    judged = [
        scored(rows[0], 0.9, 0.2, 0.9),  # exact, and the answer is right
        scored(rows[1], 0.9, 0.5, 0.1),  # exact: a score at the threshold is not above it
        scored(rows[2], 0.4, 0.2, 0.9),  # early
        scored(rows[3], 0.9, 0.6, 0.0),  # late
        scored(rows[4], 0.9, 0.8, 0.7),  # cleared
        scored(rows[5], 0.9, 0.8, 0.6),  # cleared
        scored(rows[6], 0.9, 0.8, 0.3),  # not cleared
    ]
    found = report(write_scores(tmp_path / "s.parquet", judged), write_rows(tmp_path / "people.jsonl", rows))
    main_method, bound, *baselines = found["methods"]
    total = main_method["total"]
    assert (total["erroneous"], total["correct"]) == (4, 3)
    assert total["error_accuracy"]["value"] == pytest.approx(2 / 4, abs=1e-9)
    assert total["correct_accuracy"]["value"] == pytest.approx(2 / 3, abs=1e-9)
    assert total["f1"]["value"] == pytest.approx(2 * (1 / 2) * (2 / 3) / (1 / 2 + 2 / 3), abs=1e-9)
    assert main_method["name"] == "score > 0.5"
    assert main_method["how"] == "fixed"
    shift = main_method["shift"]
    assert [shift[name] for name in ("early", "exact", "late", "missed", "uncertain")] == [1, 2, 1, 0, 0]
    right = main_method["right_answers"]
    assert (right["chains"], right["wrong_process"], right["found"], right["found_exactly"]) == (1, 1, 1, 1)
    assert bound["how"] == "best"
    assert bound["total"]["f1"]["value"] >= total["f1"]["value"]
    assert [each["name"] for each in baselines] == [
        "never an error", "random", "wrong answer: any step", "wrong answer: last step"
    ]  # fmt: skip
    labelled = [(score, good) for row, scores in zip(rows, judged, strict=True)
                for at, score in enumerate(scores["step_scores"])
                if (good := None if -1 < row["label"] < at else at != row["label"]) is not None]  # fmt: skip
    good, bad = ([score for score, is_good in labelled if is_good is wanted] for wanted in (True, False))
    wins = [1.0 if one > other else 0.5 if one == other else 0.0 for one in good for other in bad]
    assert (found["steps"]["good"], found["steps"]["bad"]) == (len(good), len(bad))
    assert found["steps"]["auc"]["value"] == pytest.approx(sum(wins) / len(wins), abs=1e-9)
    brier = sum((score - is_good) ** 2 for score, is_good in labelled) / len(labelled)
    assert found["steps"]["brier"]["value"] == pytest.approx(brier, abs=1e-9)
    # lowest on the last step: chains 1, 3 and the three without an error
    assert found["lowest_on_last"]["share"]["value"] == pytest.approx(5 / 7, abs=1e-9)
    assert found["lowest_on_last"]["by_chance"] == pytest.approx(1 / 3, abs=1e-9)


def test_calibrated_scores_are_said_to_be_about_another_truth(tmp_path: Path, capsys: Printed) -> None:
    rows = [person(number, number % 4 - 1) for number in range(12)]
    data = write_rows(tmp_path / "people.jsonl", rows)
    plain = oracle(rows, beta(1))
    calibrated = [{**row, "raw_step_scores": [1 - score for score in row["step_scores"]]} for row in plain]
    found = report(write_scores(tmp_path / "s.jsonl", calibrated), data)
    assert found["calibrated"]
    assert "they estimate V" in " ".join(capsys.readouterr().out.split())
    usual = report(write_scores(tmp_path / "t.jsonl", plain), data)
    assert not usual["calibrated"]
    assert "they estimate V" not in capsys.readouterr().out
    assert usual["methods"] == found["methods"]
    calibrated[3]["raw_step_scores"] = [0.5, 1.5, 0.5]
    assert "is 1.5, and 1 of" in refused(capsys, write_scores(tmp_path / "s.jsonl", calibrated), data)
    calibrated[3]["raw_step_scores"] = None
    assert "holds calibrated scores" in refused(capsys, write_scores(tmp_path / "s.jsonl", calibrated), data)


def test_the_layout_of_the_file_makes_no_difference(tmp_path: Path) -> None:
    rows = [person(number, number % 4 - 1, subset=("gsm8k", "math")[number % 2]) for number in range(40)]
    data = write_rows(tmp_path / "people.jsonl", rows)
    judged = oracle(rows, beta(1))
    random.Random(0).shuffle(judged)
    whole = report(write_scores(tmp_path / "whole.parquet", judged), data)
    as_json = report(write_scores(tmp_path / "whole.jsonl", judged), data)
    (tmp_path / "parts").mkdir()
    for at in range(4):
        write_scores(tmp_path / "parts" / f"part-{at}.parquet", judged[at::4])
    (tmp_path / "parts" / ".hidden.parquet").write_text("no")
    (tmp_path / "parts" / "notes.txt").write_text("no")
    parts = report(tmp_path / "parts", data)
    assert len(parts["files"]) == 4
    for other in (as_json, parts):
        for key in ("scores", "files"):
            other[key] = whole[key]
        assert other == whole


def test_a_file_of_ones_own_needs_the_texts_and_the_scores_alone(two: Two, tmp_path: Path) -> None:
    data, rows = two
    bare = [{"problem": row["problem"], "steps": row["steps"], "step_scores": [1, 0, 1]} for row in rows]
    found = report(write_scores(tmp_path / "s.jsonl", bare), data)
    assert (found["model"], found["counts"]["judged"]) == (None, 2)


def test_a_threshold_chosen_on_a_subset_is_used_on_the_others(tmp_path: Path, capsys: Printed) -> None:
    rows = [
        person(1, 0, 1), person(2, NO_ERROR, 1),
        person(3, 0, 1, "math"), person(4, NO_ERROR, 1, "math"),
        person(5, 0, 1, "omni"), person(6, NO_ERROR, 1, "omni"),
    ]  # fmt: skip
    # gsm8k is separated between 0.2 and 0.4, math as well; in omni the threshold must be above 0.6.
    judged = [scored(row, score) for row, score in zip(rows, (0.2, 0.4, 0.1, 0.9, 0.6, 0.8), strict=True)]
    scores, data = write_scores(tmp_path / "s.parquet", judged), write_rows(tmp_path / "people.jsonl", rows)
    found = report(scores, data, "threshold=dev", "dev=gsm8k")
    chosen, fixed, bound = found["methods"][:3]
    assert (chosen["how"], fixed["how"], bound["how"]) == ("dev", "fixed", "best")
    best = chosen["by_subset"]["gsm8k"]["best"]
    assert (best["low"], best["high"], best["f1"], best["others"]) == (0.2, 0.4, 1.0, 0)
    assert chosen["total"]["threshold"] == pytest.approx(0.3)
    f1 = {name: each["f1"]["value"] for name, each in chosen["by_subset"].items()}
    assert f1 == {"gsm8k": 1.0, "math": 1.0, "omni": 0.0}
    assert chosen["mean_of"] == ["math", "omni"]
    assert chosen["mean"]["value"] == 0.5
    assert chosen["mean_with_dev"]["value"] == pytest.approx(2 / 3)
    assert fixed["mean_of"] == bound["mean_of"] == ["math", "omni"]
    assert (fixed["total"]["threshold"], fixed["mean"]["value"]) == (0.5, 0.5)
    assert fixed["mean_with_dev"]["value"] == pytest.approx(1 / 3)
    assert bound["mean"]["value"] == 1
    assert {name: each["threshold"] for name, each in bound["by_subset"].items()} == pytest.approx(
        {"gsm8k": 0.3, "math": 0.5, "omni": 0.7}
    )
    said = capsys.readouterr().out
    assert "the middle of the best range on gsm8k, 0.2 to 0.4; the mean is over math, omni" in said
    assert "gsm8k (dev)" in said
    assert "mean with gsm8k" in said


def test_ties_of_the_chosen_threshold_are_reported(tmp_path: Path, capsys: Printed) -> None:
    rows = [person(1, 0, 1), person(2, 0, 1), person(3, NO_ERROR, 1), person(4, NO_ERROR, 1)]
    # Below 0.3 one error is found and both others are cleared; from 0.5 on both errors and one: 2/3 and 2/3 as well.
    judged = [scored(row, score) for row, score in zip(rows, (0.1, 0.5, 0.3, 0.9), strict=True)]
    scores, data = write_scores(tmp_path / "s.parquet", judged), write_rows(tmp_path / "people.jsonl", rows)
    best = report(scores, data, "threshold=dev", "dev=gsm8k")["methods"][0]["by_subset"]["gsm8k"]["best"]
    assert (best["low"], best["high"], best["others"]) == (0.5, 0.9, 1)
    said = capsys.readouterr().out
    assert "0.5 to 0.9, and 1 other range with the same F1" in said
    assert "the mean is over no subset, because there is no other one" in said


def test_a_subset_without_an_error_has_no_f1_and_is_named(tmp_path: Path, capsys: Printed) -> None:
    rows = [person(1, 0), person(2, NO_ERROR), person(3, NO_ERROR, subset="math"), person(4, 1, subset="omni")]
    judged = [scored(row, 0.9, 0.2, 0.9) for row in rows]
    scores, data = write_scores(tmp_path / "s.parquet", judged), write_rows(tmp_path / "people.jsonl", rows)
    found = report(scores, data)
    assert found["undefined"] == {"math": "no chain with an error", "omni": "no chain without an error"}
    for method in found["methods"]:
        assert method["mean_of"] == ["gsm8k"]
        assert all(each["f1"]["value"] is None for name, each in method["by_subset"].items() if name != "gsm8k")
    assert "NaN" not in scores.with_name("report.json").read_text()
    said = capsys.readouterr().out
    assert "F1 is not defined for math: no chain with an error" in said
    assert "nan" not in said
    assert "no threshold can be chosen on this subset, because it has no chain with an error" in refused(
        capsys, scores, data, "threshold=dev", "dev=math"
    )


def test_chains_without_any_error_still_have_figures(tmp_path: Path, capsys: Printed) -> None:
    rows = [person(1, NO_ERROR), person(2, NO_ERROR)]
    scores = write_scores(tmp_path / "s.parquet", [scored(row, 0.9, 0.8, 0.3) for row in rows])
    found = report(scores, write_rows(tmp_path / "people.jsonl", rows))
    assert found["methods"][0]["total"]["f1"]["value"] is None
    assert found["methods"][0]["total"]["correct_accuracy"]["value"] == 0
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert "F1 is not defined for gsm8k: no chain with an error" in capsys.readouterr().out


def test_chains_longer_than_the_model_are_counted_apart(tmp_path: Path, capsys: Printed) -> None:
    rows = [person(1, 1), person(2, NO_ERROR), person(3, 1), person(4, 2, subset="math"), person(5, NO_ERROR)]
    judged = [
        scored(rows[0], 0.9, 0.1, 0.9),
        scored(rows[1], 0.9, 0.9, 0.9),
        scored(rows[2], 0.9, None, None),
        scored(rows[3], 0.9, 0.9, None),
        scored(rows[4], 0.9, 0.0, 0.9),
    ]
    scores, data = write_scores(tmp_path / "s.parquet", judged), write_rows(tmp_path / "people.jsonl", rows)
    found = report(scores, data)
    counts = found["counts"]
    assert (counts["judged"], counts["cut"], counts["cut_steps"]) == (3, 2, 3)
    assert counts["cut_by_subset"] == {"gsm8k": 1, "math": 1}
    total = found["methods"][0]["total"]
    assert (total["erroneous"], total["correct"]) == (1, 2)
    assert total["f1"]["value"] == pytest.approx(2 * 1 * 0.5 / 1.5)
    missed = found["cut_as_missed"]
    assert (missed["erroneous"], missed["error_accuracy"]["value"]) == (3, pytest.approx(1 / 3))
    said = capsys.readouterr().out
    assert "5 rows = 3 judged + 2 with missing scores" in said
    assert "2 chains with 3 steps without a score are in no figure below" in said
    none = write_scores(tmp_path / "none.parquet", [scored(row, 0.9, 0.5, None) for row in rows])
    assert "none of the 5 chains with a human label has a score for every step" in refused(capsys, none, data)


def test_a_score_of_exactly_0_is_a_score_at_every_threshold(two: Two, tmp_path: Path) -> None:
    data, rows = two
    scores = write_scores(tmp_path / "s.parquet", [scored(rows[0], 0.3, 0.0, 0.2), scored(rows[1], 0.3, 0.2, 0.1)])
    found = report(scores, data, "threshold=0")
    assert found["counts"]["cut"] == 0
    assert found["methods"][0]["total"]["f1"]["value"] == 1


def test_what_does_not_match_is_counted_and_named(two: Two, tmp_path: Path, capsys: Printed) -> None:
    data, rows = two
    strangers = [scored(person(8, 0), 0.5, 0.5, 0.5), scored({**rows[1], "problem": "Another?"}, 0.1, 0.1, 0.1)]
    scores = write_scores(tmp_path / "s.parquet", [scored(rows[0], 0.9, 0.1, 0.9), *strangers])
    found = report(scores, data)
    counts = found["counts"]
    assert (counts["rows"], counts["judged"], counts["unmatched"], counts["other_text"]) == (2, 1, 1, 1)
    assert (counts["scored"], counts["not_by_people"]) == (3, 2)
    (unmatched,) = found["unmatched"]
    assert (unmatched["source_id"], unmatched["location"]["line"]) == ("gsm8k-2", 2)
    assert [each["location"]["line"] for each in found["not_by_people"]] == [2, 3]
    said = capsys.readouterr().out
    assert "3 chains, 2 without a human label" in said
    assert f"unscored  {data}, line 2: gsm8k 2?" in said
    assert "1 row has an id of the scores, but another text" in said
    error = refused(capsys, write_scores(tmp_path / "t.parquet", strangers), data)
    assert "none of the 2 chains of" in error
    assert "is among the 2 chains of" in error
    assert "1 of their ids are in the scores with other texts" in error
    assert "data.separator" in error


def test_the_same_scores_twice_are_one_scoring_and_others_are_refused(
    two: Two, tmp_path: Path, capsys: Printed
) -> None:
    data, rows = two
    judged = [scored(rows[0], 0.9, 0.1, 0.9), scored(rows[1], 0.9, 0.9, 0.9)]
    again = scored(rows[0], 0.9, 0.1, 0.9 + 1e-6, outcome=True)  # as in another batch
    found = report(write_scores(tmp_path / "s.parquet", [*judged, again]), data)
    assert (found["counts"]["scored"], found["counts"]["repeated_scores"]) == (2, 1)
    assert found["methods"][0]["right_answers"]["chains"] == 1
    other = write_scores(tmp_path / "t.parquet", [*judged, scored(rows[0], 0.9, 0.2, 0.9)])
    assert "row 3 of" in (error := refused(capsys, other, data))
    assert "are the same chain with other scores: name a file with one scoring" in error
    (tmp_path / "both").mkdir()
    write_scores(tmp_path / "both" / "a.parquet", judged[:1])
    write_scores(tmp_path / "both" / "b.parquet", [scored(rows[1], 0.9, 0.9, 0.9, model="another")])
    error = refused(capsys, tmp_path / "both", data)
    assert "holds scores of 2 models" in error
    assert "name the file of one of them" in error


Change = Callable[[Row], Mapping[str, Any]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: {"step_scores": [0.1, 1.5, 0.2]}, "the score of step 2 in row 2 of"),
        (lambda row: {"step_scores": [0.1, -0.5, 0.2]}, "is -0.5, and 1 of 2 rows have scores that are not between 0 and 1"),
        (lambda row: {"step_scores": [0.1, float("nan"), 0.2]}, "is nan, and 1 of 2 rows"),
        (lambda row: {"step_scores": [float("inf")] * 3}, "put logits and rewards through a sigmoid"),
        (lambda row: {"step_scores": [0.1, 0.2]}, "has 2 scores for 3 steps, and 1 of 2 rows"),
        (lambda row: {"step_scores": [0.1, 0.2]}, "Write null for steps that did not fit into the model"),
        (lambda row: {"step_scores": [0.1, 0.2, 0.3, 0.4]}, "has 4 scores for 3 steps"),
        (lambda row: {"step_scores": [0.1, 0.2, 0.3, 0.4]}, "a text that ends in its separator"),
        (lambda row: {"steps": [*row["steps"], " "], "step_scores": [0.1] * 4}, "step 4 of 4 in row 2"),
        (lambda row: {"steps": [*row["steps"], " "], "step_scores": [0.1] * 4}, "has no step after it"),
        (lambda row: {"steps": ["", "a", "b"]}, "step 1 of 3 in row 2"),
        (lambda row: {"steps": [], "step_scores": []}, "row 2 of"),
    ],
)  # fmt: skip
def test_scores_that_cannot_be_meant_are_refused_with_their_place(
    change: Change, said: str, two: Two, tmp_path: Path, capsys: Printed
) -> None:
    data, rows = two
    good, bad = scored(rows[0], 0.9, 0.1, 0.9), scored(rows[1], 0.9, 0.9, 0.9)
    scores = write_scores(tmp_path / "s.parquet", [good, {**bad, **change(bad)}])
    error = refused(capsys, scores, data, f"out={tmp_path / 'report.json'}")
    assert said in error
    assert str(scores) in error
    assert not (tmp_path / "report.json").exists()


def test_files_that_are_no_scores_are_refused(two: Two, tmp_path: Path, capsys: Printed) -> None:
    data, rows = two
    assert "there is no such file" in refused(capsys, tmp_path / "absent.parquet", data)
    (tmp_path / "empty").mkdir()
    assert "holds no file that ends in .parquet or .jsonl" in refused(capsys, tmp_path / "empty", data)
    assert "has no column step_scores" in refused(capsys, write_rows(tmp_path / "other.jsonl", rows), data)
    (tmp_path / "text.parquet").write_text("no")
    assert "is not Parquet" in refused(capsys, tmp_path / "text.parquet", data)
    nan = tmp_path / "nan.jsonl"
    write_scores(nan, [scored(rows[0], 0.1, 0.2, 0.3), scored(rows[1], 0.1, float("nan"), 0.3)])
    assert "line 2 holds NaN, which is no number" in refused(capsys, nan, data)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ((1, 3, -1, 2), "1 row names the step after the last one, as line 2 of"),
        ((1, 3, 0, 2), "no label is -1"),
        ((3, 3, 3, 1), "subtract 1 from each"),
    ],
)
def test_labels_that_are_counted_from_1_are_noticed(
    labels: Sequence[int], said: str, tmp_path: Path, capsys: Printed
) -> None:
    rows = [person(number, label) for number, label in enumerate(labels)]
    scores = write_scores(tmp_path / "s.parquet", [scored(row, 0.9, 0.1, 0.9) for row in rows])
    error = refused(capsys, scores, write_rows(tmp_path / "people.jsonl", rows))
    assert "seem to be counted from 1" in error
    assert said in error


def test_one_label_beyond_its_chain_does_not_accuse_the_others(tmp_path: Path) -> None:
    rows = [person(number, label) for number, label in enumerate((0, -1, 3, 2))]
    scores = write_scores(tmp_path / "s.parquet", [scored(row, 0.9, 0.1, 0.9) for row in rows])
    counts = report(scores, write_rows(tmp_path / "people.jsonl", rows))["counts"]
    assert (counts["judged"], counts["unusable"]) == (3, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["threshold=dev", "dev=aime"], "has no such subset; its subsets are gsm8k"),
        (["threshold=dev"], "threshold=dev needs the subset on which it is chosen"),
        (["dev=gsm8k"], "dev=gsm8k needs threshold=dev"),
        (["threshold=best"], "threshold=best is out of range: it must be a number"),
        (["threshold=1"], "threshold=1 is out of range"),
        (["threshold=nan"], "threshold=nan is out of range"),
        (["threshold=true"], "threshold=True is out of range"),
        (["run_dir=out"], "give either run_dir=FOLDER"),
        (["partial=true"], "partial is a setting for run_dir=...: leave it out"),
        (["thresholds=[0.5]"], "thresholds is a setting for run_dir"),
        (["soft=unbiased_value"], "soft is a setting for run_dir"),
        (["page=''"], "page='' is out of range"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    given: list[str], said: str, two: Two, tmp_path: Path, capsys: Printed
) -> None:
    data, rows = two
    scores = write_scores(tmp_path / "s.parquet", [scored(row, 0.9, 0.1, 0.9) for row in rows])
    assert said in refused(capsys, scores, data, *given)


def test_a_run_takes_no_settings_for_scores(two: Two, capsys: Printed) -> None:
    for given in ("threshold=0.3", "page=p.html"):
        assert main(["agree", "run_dir=absent", f"data.path={two[0]}", given]) == 2
        assert "is a setting for scores=...: leave it out" in capsys.readouterr().err
    assert main(["agree", f"data.path={two[0]}"]) == 2
    assert "give either run_dir=FOLDER, to compare a run's labels, or scores=FILE" in capsys.readouterr().err


def test_a_text_that_ends_in_its_separator_has_no_step_after_it(tmp_path: Path) -> None:
    whole: list[Row] = [{"id": "gsm8k-1", "problem": "p", "solution": "one\n\ntwo\n\n", "label": 1},
             {"id": "gsm8k-2", "problem": "q", "solution": "one\n\ntwo", "label": -1}]  # fmt: skip
    judged = [score_row(row["problem"], ["one", "two"], [0.9, 0.1]) for row in whole]
    scores, data = write_scores(tmp_path / "s.parquet", judged), write_rows(tmp_path / "people.jsonl", whole)
    found = report(scores, data, "data.splitter=blank_line", layout="rows")
    assert (found["counts"]["judged"], found["counts"]["unusable"]) == (2, 0)
    assert found["lowest_on_last"]["share"]["value"] == 1


def test_prm800k_rates_single_steps(tmp_path: Path) -> None:
    def rated(number: int, *ratings: int) -> Row:
        steps = [{"completions": [{"text": f"s{at} of {number}", "rating": rating}], "chosen_completion": 0}
                 for at, rating in enumerate(ratings)]  # fmt: skip
        return {"question": {"problem": f"{number}?", "ground_truth_answer": "5"}, "label": {"steps": steps}}

    rows = [rated(0, 1, -1), rated(1, 1, 0), rated(2, 1, 1)]
    judged = [
        score_row(f"{number}?", [f"s{at} of {number}" for at in range(2)], [0.9, second])
        for number, second in enumerate((0.2, 0.4, 0.8))
    ]
    scores, data = write_scores(tmp_path / "s.parquet", judged), write_rows(tmp_path / "people.jsonl", rows)
    found = report(scores, data, layout="prm800k")
    total = found["methods"][0]["total"]
    assert (total["erroneous"], total["correct"], total["correct_accuracy"]["value"]) == (1, 2, 0.5)
    assert (found["steps"]["good"], found["steps"]["bad"]) == (5, 1)
    strict = report(scores, data, "neutral=bad", layout="prm800k")
    assert strict["methods"][0]["total"]["erroneous"] == 2
    left_open = report(scores, data, "neutral=ignored", layout="prm800k")
    assert (left_open["counts"]["open"], left_open["steps"]["good"]) == (1, 4)


def prmbench(number: int, kind: str, error_steps: list[int]) -> Row:
    return {
        "idx": f"{kind}_prm_test_p1_{number}",
        "original_question": f"{number}?",
        "modified_question": f"{number}? ({kind})",
        "original_process": [f"one of {number}", f"two of {number}"],
        "modified_process": [f"{at} of {number}, {kind}" for at in range(4)],
        "error_steps": error_steps,
        "classification": kind,
    }


def test_prmbench_has_classes_and_original_processes(tmp_path: Path, capsys: Printed) -> None:
    rows = [prmbench(0, "circular", [2, 3]), prmbench(0, "redundency", [4]), prmbench(1, "multi_solutions", [])]
    modified = [
        score_row(row["modified_question"], row["modified_process"], scores, source_id=row["idx"])
        for row, scores in zip(rows, ([0.9, 0.1, 0.8, 0.9], [0.9, 0.9, 0.9, 0.3], [0.9, 0.2, 0.9, 0.9]), strict=True)
    ]
    original = score_row("0?", rows[0]["original_process"], [0.9, 0.4])
    scores = write_scores(tmp_path / "s.parquet", [*modified, original])
    data = write_rows(tmp_path / "prmbench.jsonl", rows)
    found = report(scores, data, layout="prmbench")
    classes = found["classes"]
    assert list(classes["by_class"]) == ["circular", "redundency", "multi_solutions", "correct"]
    circular = classes["by_class"]["circular"]
    assert [circular[name] for name in ("true_good", "false_good", "true_bad", "false_bad")] == [2, 1, 1, 0]
    assert circular["prm_score"]["value"] == pytest.approx((4 / 5 + 2 / 3) / 2, abs=1e-9)
    assert classes["by_class"]["multi_solutions"]["prm_score"]["value"] == pytest.approx(6 / 7, abs=1e-9)
    total = classes["total"]
    assert [total[name] for name in ("chains", "true_good", "false_good", "true_bad", "false_bad")] == [3, 8, 1, 2, 1]
    assert total["prm_score"]["value"] == pytest.approx((16 / 18 + 4 / 6) / 2, abs=1e-9)
    assert classes["dimensions"]["simplicity"] == pytest.approx((circular["prm_score"]["value"] + 1) / 2, abs=1e-9)
    bound = found["methods"][1]
    assert (bound["how"], bound["name"]) == ("best", "best threshold of all chains")
    # Below 0.2 one error of two is found and both chains without one are cleared, from 0.3 to 0.4 it is the other way round.
    assert bound["total"]["best"]["others"] == 1
    assert bound["total"]["f1"]["value"] == pytest.approx(2 / 3, abs=1e-9)
    counts = found["counts"]
    assert (counts["rows"], counts["judged"], counts["originals"], counts["originals_judged"]) == (3, 3, 2, 1)
    assert counts["scored"] == counts["judged"] + counts["originals_judged"] + counts["not_by_people"] == 4
    said = capsys.readouterr().out
    assert "original processes: 1 of 2 are scored, as class correct" in said
    assert "PRMScore" in said
    page = (tmp_path / "report.html").read_text()
    assert "PRMScore by class" in page
    alone = report(
        write_scores(tmp_path / "o.parquet", [original]), data,
        "data.columns.problem=original_question", "data.columns.steps=original_process", layout="prmbench",
    )  # fmt: skip
    assert list(alone["classes"]["by_class"]) == ["correct"]
    assert alone["classes"]["total"]["prm_score"]["value"] is None


def test_error_steps_that_are_counted_from_0_are_noticed(tmp_path: Path, capsys: Printed) -> None:
    rows = [prmbench(0, "circular", [0, 1]), prmbench(1, "circular", [2])]
    judged = [score_row(row["modified_question"], row["modified_process"], [0.5] * 4) for row in rows]
    scores = write_scores(tmp_path / "s.parquet", judged)
    error = refused(capsys, scores, write_rows(tmp_path / "p.jsonl", rows), layout="prmbench")
    assert "seem to be counted from 0" in error
    assert "add 1 to each" in error
    rows[1]["error_steps"] = [4]
    counts = report(scores, write_rows(tmp_path / "q.jsonl", rows), layout="prmbench")["counts"]
    assert (counts["judged"], counts["unusable"]) == (1, 1)


def test_the_page_holds_the_figures_and_loads_nothing(two: Two, tmp_path: Path, capsys: Printed) -> None:
    data, rows = two
    hostile = "<script>alert(1)</script>"
    judged = [scored(row, 0.9, 0.1, 0.9, model=hostile) for row in rows]
    scores, page = write_scores(tmp_path / "s.parquet", judged), tmp_path / "p.html"
    assert agree(scores, data, f"page={page}") == 0
    assert page.as_uri() in capsys.readouterr().out
    text = page.read_text()
    assert GENERATOR in text
    assert hostile not in text
    assert "&lt;script&gt;" in text
    assert text.count("<script") == 1
    assert "http" not in text.replace("http-equiv", "")
    for heading in ("First errors", "Where errors are put", "Single steps", "Position and length", ">bad</text>"):
        assert heading in text
    page.write_text("mine")
    assert "exists and is not a report" in refused(capsys, scores, data, f"page={page}")
    assert page.read_text() == "mine"


def test_without_out_and_page_nothing_is_written(
    two: Two, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, rows = two
    scores = write_scores(tmp_path / "s.parquet", [scored(row, 0.9, 0.1, 0.9) for row in rows])
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert agree(scores, data) == 0
    assert sorted(tmp_path.iterdir()) == before
    assert "page=FILE.html" in capsys.readouterr().out


def test_outputs_never_replace_what_is_read(two: Two, tmp_path: Path, capsys: Printed) -> None:
    data, rows = two
    scores = write_scores(tmp_path / "s.parquet", [scored(row, 0.9, 0.1, 0.9) for row in rows])
    for given in (f"out={scores}", f"out={data}", f"page={scores}"):
        assert "which is read" in refused(capsys, scores, data, given)
    assert "which is out" in refused(capsys, scores, data, f"out={tmp_path / 'x.html'}")
    (tmp_path / "folder").mkdir()
    write_scores(tmp_path / "folder" / "s.parquet", [scored(row, 0.9, 0.1, 0.9) for row in rows])
    assert "which is read" in refused(capsys, tmp_path / "folder", data, f"out={tmp_path / 'folder' / 'r.json'}")


@pytest.mark.skipif(not PROCESSBENCH.is_file(), reason="the development data is not here")
def test_real_chains_scored_by_an_oracle_have_its_auc(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in PROCESSBENCH.read_text().splitlines()]
    scores = write_scores(tmp_path / "s.parquet", oracle(rows, beta(1), label="first_error"))
    found = report(scores, PROCESSBENCH, "threshold=dev", "dev=gsm8k", "resamples=2000")
    assert found["counts"]["judged"] == len(rows) == 190
    auc = found["steps"]["auc"]
    assert auc["low"] < 5 / 6 < auc["high"]
    assert found["methods"][0]["mean_of"] == ["math", "olympiadbench"]
    assert found["methods"][0]["right_answers"]["wrong_process"] == 17
