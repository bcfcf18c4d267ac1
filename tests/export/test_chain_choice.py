"""Exports of runs whose values are known: what a format writes by default, which chains are left out, and what is warned of."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.core.errors import InputError
from pipeline.export.base import LayoutExporter
from pipeline.export.registry import EXPORTS, exporter_for
from pipeline.export.result import CARD, LEFT_OUT
from pipeline.export.settings import Balance, FileType, InvalidChains, PreferenceConfig, TargetKind, UncertainSteps
from tests.audit.runs import copied, labels
from tests.export.known_runs import HIGH, LOW, PROBLEMS, surprising, value_of
from tests.export.rows import exported, lines
from tests.export.rows import settings as asked_for
from tests.library import Library
from tests.runtime.adaptive import settings
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

PAIRS = ("preference", "ppm")
SOFT_BY_DEFAULT = {"qwen", "scan"}


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("known", tmp_path_factory.mktemp("known"))


@pytest.fixture(scope="module")
def ungraded(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("ungraded", tmp_path_factory.mktemp("ungraded"))


def written_outcomes(out: Path) -> list[tuple[str, bool]]:
    """Problem and outcome of each chain of a `parquet` export with a target."""
    return pl.read_parquet(out / "train.parquet").select("problem", "outcome").rows()


@pytest.mark.parametrize("layout", EXPORTS.ours)
def test_values_are_the_default_where_the_released_trainer_takes_them(
    layout: str, run_dir: Path, tmp_path: Path
) -> None:
    done = exported(run_dir, tmp_path / "out", layout, invalid=InvalidChains.drop, **_margin(layout))
    exporter = exporter_for(asked_for(layout))
    if layout == "parquet":
        assert done.target == "soft: column value; hard: column label"
        assert pl.read_parquet(tmp_path / "out/train.parquet").columns == labels(run_dir).columns
    elif isinstance(exporter, LayoutExporter) and not exporter.layout.outcome:
        assert done.target.split(":")[0] == ("soft" if layout in SOFT_BY_DEFAULT else "hard")
        assert f"Target of a step: {done.target}." in (tmp_path / "out" / CARD).read_text()
    else:
        assert done.target == ""


def _margin(layout: str) -> dict[str, Any]:
    # Without it no step has a sibling with the other label: the values of a problem are all the same.
    return {"own": PreferenceConfig(margin=0.01)} if layout == "preference" else {}


@pytest.mark.parametrize(("layout", "column"), [("qwen", "labels"), ("scan", "scores")])
def test_default_targets_are_the_values_of_all_steps(layout: str, column: str, run_dir: Path, tmp_path: Path) -> None:
    exported(run_dir, tmp_path / "out", layout)
    written = [row[column] for row in lines(tmp_path / "out/train.jsonl")]
    assert sorted(written) == sorted(labels(run_dir)["value"].to_list())


def test_right_answers_by_luck_and_slips_at_the_end_are_left_out(run_dir: Path, tmp_path: Path) -> None:
    every = set(labels(run_dir).select("problem", "outcome").rows())
    assert len(every) == 2 * PROBLEMS
    honest = {(problem, outcome) for problem, outcome in every if not surprising(problem, outcome)}
    done = exported(run_dir, tmp_path / "out", "parquet", target=TargetKind.soft, min_p_outcome=0.1)
    assert set(written_outcomes(tmp_path / "out")) == honest
    assert done.left_out["low_p_outcome"].count == len(every) - len(honest) == PROBLEMS
    listed = lines(tmp_path / "out" / LEFT_OUT)
    assert len({left["chain_id"] for left in listed}) == PROBLEMS
    assert {left["kind"] for left in listed} == {"low_p_outcome"}
    assert all(left["detail"].endswith("is below min_p_outcome=0.1") for left in listed)
    card = (tmp_path / "out" / CARD).read_text()
    assert f"- low_p_outcome: {PROBLEMS}" in card
    assert "- `min_p_outcome`: `0.1`" in card
    assert "max_root_value" not in card


@pytest.mark.parametrize(
    ("bounds", "kind", "kept"),
    [({"min_root_value": 0.5}, "low_root_value", HIGH), ({"max_root_value": 0.5}, "high_root_value", LOW)],
)
def test_problems_too_hard_or_too_easy_are_left_out(
    bounds: dict[str, float], kind: str, kept: float, run_dir: Path, tmp_path: Path
) -> None:
    done = exported(run_dir, tmp_path / "out", "parquet", **bounds)
    problems = pl.read_parquet(tmp_path / "out/train.parquet")["problem"].to_list()
    assert len(problems) == PROBLEMS
    assert {value_of(problem) for problem in problems} == {kept}
    assert {name: reason.count for name, reason in done.left_out.items()} == {kind: PROBLEMS}


def test_all_exports_of_a_run_leave_out_the_same_chains(run_dir: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"min_p_outcome": 0.1, "min_root_value": 0.5}
    for layout in EXPORTS.ours:
        if layout in PAIRS:
            continue
        done = exported(run_dir, tmp_path / layout, layout, invalid=InvalidChains.drop, **asked)
        assert sum(counts.rows for counts in done.files.values()) == PROBLEMS // 2
    split = exported(run_dir, tmp_path / "split", validation=0.4, balance=Balance.none, **asked)
    assert len(split.files) == 2
    assert sum(counts.rows for counts in split.files.values()) == PROBLEMS // 2


def test_chains_that_are_left_out_are_in_no_pair(run_dir: Path, tmp_path: Path) -> None:
    own = PreferenceConfig(margin=0.001)
    before = exported(run_dir, tmp_path / "all", "preference", own=own)
    assert before.files["train.jsonl"].rows > 0
    with pytest.raises(InputError, match=r"44 low_p_outcome .*44 no_pair .*; lower min_p_outcome"):
        exported(run_dir, tmp_path / "out", "preference", own=own, min_p_outcome=0.1)


def test_what_leaves_out_everything_is_named(run_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"none of 88 chains can be exported: 88 low_root_value \(chain .*: root_value 0\..* is below "
        r"min_root_value=1\); lower min_root_value$",
    ):
        exported(run_dir, tmp_path / "out", min_root_value=1.0)
    assert not (tmp_path / "out").exists()


def test_a_bound_on_what_no_chain_has_is_refused(tmp_path: Path) -> None:
    rows = [{"id": "a", "problem": "What is 2?", "answer": "2", "steps": ["Let me see.", "Well."]}]
    label_in_process(settings(tmp_path, rows, "estimator=fixed"))
    for layout in ("trl", "parquet"):
        with pytest.raises(
            InputError, match=r"run: min_p_outcome=0\.5 has no effect, because no chain of the run has a p_"
        ):
            exported(tmp_path / "run", tmp_path / "out", layout, min_p_outcome=0.5)
    assert not (tmp_path / "out").exists()
    exported(tmp_path / "run", tmp_path / "out", max_root_value=1.0)


def test_labels_0_at_ends_alone_are_warned_of_where_labels_are_the_target(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of problems with high values, all labels 0 are those of wrong answers.
    done = exported(run_dir, tmp_path / "out", min_root_value=0.5)
    alike, warning = done.warnings
    assert alike.startswith("nearly all targets of ")
    assert "are 1 (mean 1.00)" in alike
    # The cause here is the bound, not the policy: the warning names none.
    assert alike.endswith("`report` says how many rollouts are correct and by which rule steps are labelled")
    assert warning.startswith(f"{PROBLEMS // 2} of {PROBLEMS // 2} labels 0 belong to last steps")
    assert "(`train`, or a format that takes target=soft)" in warning
    assert f"Warning: {warning}." in (tmp_path / "out" / CARD).read_text()
    low = exported(run_dir, tmp_path / "low", max_root_value=0.5).warnings
    assert not any("belong to last steps" in each for each in low)
    for layout in ("qwen", "parquet", "processbench", "orm"):
        found = exported(run_dir, tmp_path / layout, layout, min_root_value=0.5).warnings
        assert not any("belong to last steps" in each for each in found)
    _, warning = exported(run_dir, tmp_path / "hard", "qwen", target=TargetKind.hard, min_root_value=0.5).warnings
    assert "(target=soft)" in warning
    assert main(["export", f"run_dir={run_dir}", "format=openr", f"out={tmp_path / 'o'}", "min_root_value=0.5"]) == 0
    assert (
        f"\nwarning           {PROBLEMS // 2} of {PROBLEMS // 2} labels 0 belong to last steps"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("uncertain", [None, UncertainSteps.merge])
def test_few_labels_of_inner_steps_are_warned_of(
    uncertain: UncertainSteps | None, run_dir: Path, tmp_path: Path
) -> None:
    strict = copied(run_dir, tmp_path)
    # Low values stay uncertain under this rule, high ones are labelled 1.
    assert main(["relabel", f"run_dir={strict}", "estimator.rule=posterior", "estimator.certainty=0.999"]) == 0
    asked: dict[str, Any] = {"uncertain": uncertain, "after_error": True}
    (warning, _) = exported(strict, tmp_path / "low", max_root_value=0.5, **asked).warnings
    assert warning.startswith(f"few inner steps have a label: 0 of {2 * PROBLEMS}.")
    half = exported(strict, tmp_path / "half", **asked)
    assert not any(text.startswith("few") for text in half.warnings)
    decided = exported(strict, tmp_path / "decided", max_root_value=0.5, uncertain=UncertainSteps.positive)
    assert not any(text.startswith("few") for text in decided.warnings)


def test_values_that_rest_on_no_rollout_are_no_targets(ungraded: Path, tmp_path: Path) -> None:
    assert all(value is not None for values in labels(ungraded)["value"].to_list() for value in values)
    done = exported(ungraded, tmp_path / "out", "parquet", target=TargetKind.soft, file=FileType.jsonl)
    for row in lines(tmp_path / "out/train.jsonl"):
        assert row["scores"] == [None, None, float(row["outcome"])]
    assert done.warnings[0].startswith("few inner steps have a value: 0 of 12.")
    assert exported(ungraded, tmp_path / "hard", threshold=0.3).files["train.jsonl"].labels.unlabelled == 12
