"""Another estimator on a finished log: its labels are written if it can use the log; otherwise nothing is written."""

from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.analysis.relabel import regrade, relabel
from pipeline.config.changes import RegradeConfig, RelabelConfig
from pipeline.config.choices import Interval, LabelRule
from pipeline.core.progress import RelabelResult
from pipeline.estimators.registry import ESTIMATORS
from tests.audit.runs import copied, files
from tests.library import Library
from tests.runtime.adaptive import kernels, labels, log, proved
from tests.settings import EstimatorChange, GraderChange

pytestmark = pytest.mark.slow

VALUES = ["chain_id", "value", "value_sd", "low", "high", "unbiased_value", "root_value", "advantage"]


@pytest.fixture(scope="module")
def runs(library: Library, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: library.copy(name, tmp_path_factory.mktemp(name)).parent for name in ESTIMATORS.ours}


def relabelled(folder: Path, change: EstimatorChange) -> RelabelResult:
    done = relabel(RelabelConfig(run_dir=str(folder / "run"), estimator=change))
    proved(folder)
    return done


@pytest.mark.parametrize("name", ["first_success", "bisect"])
def test_a_full_log_serves_estimators_that_would_have_asked_for_less(
    runs: dict[str, Path], tmp_path: Path, name: str
) -> None:
    """The rollouts that they would request are the first ones of the log, so labels and values are the same."""
    copied(runs["fixed"] / "run", tmp_path)
    relabelled(tmp_path, EstimatorChange(name=name, rule=LabelRule.any))
    own, expected = labels(tmp_path), labels(runs[name])
    assert own["estimator"].unique().to_list() == [name]
    assert own["label"].equals(expected["label"])
    if name == "first_success":
        for column in ("value", "low", "high", "n_correct", "n_rollouts", "unbiased_value"):
            assert own[column].equals(expected[column]), column


def test_a_full_log_serves_the_pooled_estimator(runs: dict[str, Path], tmp_path: Path) -> None:
    copied(runs["fixed"] / "run", tmp_path)
    before = labels(tmp_path)
    done = relabelled(tmp_path, EstimatorChange(name="pooled"))
    assert done.number == 0
    assert kernels(tmp_path) == [8]
    after = labels(tmp_path)
    assert after["n_rollouts"].equals(before["n_rollouts"])
    assert after["unbiased_value"].equals(before["unbiased_value"])
    assert not after["value"].equals(before["value"])


@pytest.mark.parametrize("sampled", ["first_success", "bisect"])
def test_any_log_serves_the_pooled_estimator(runs: dict[str, Path], tmp_path: Path, sampled: str) -> None:
    copied(runs[sampled] / "run", tmp_path)
    relabelled(tmp_path, EstimatorChange(name="pooled", interval=Interval.posterior))
    assert labels(tmp_path)["value"].explode().null_count() == 0


@pytest.mark.parametrize(
    ("sampled", "wanted"),
    [
        ("pooled", "fixed"),
        ("pooled", "first_success"),
        ("pooled", "bisect"),
        ("first_success", "fixed"),
        ("bisect", "fixed"),
        ("bisect", "first_success"),
    ],
)
def test_an_estimator_whose_rollouts_are_not_there_is_refused(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], sampled: str, wanted: str
) -> None:
    run_dir = copied(runs[sampled] / "run", tmp_path)
    before = files(run_dir)
    assert main(["relabel", f"run_dir={run_dir}", f"estimator={wanted}"]) == 2
    assert f"cannot be labelled with estimator.name={wanted}" in capsys.readouterr().err
    assert files(run_dir) == before


def test_a_rule_that_the_estimator_does_not_know_is_refused(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of the two settings can be given alone; the run has one of them already."""
    run_dir = copied(runs["fixed"] / "run", tmp_path)
    relabelled(tmp_path, EstimatorChange(rule=LabelRule.threshold))
    before = files(run_dir)
    assert main(["relabel", f"run_dir={run_dir}", "estimator.name=bisect"]) == 2
    assert "estimator.rule=threshold" in capsys.readouterr().err
    assert files(run_dir) == before


def test_a_new_rule_leaves_the_values_of_a_pooled_run_as_they_are(runs: dict[str, Path], tmp_path: Path) -> None:
    copied(runs["pooled"] / "run", tmp_path)
    before, learned = labels(tmp_path), kernels(tmp_path)
    relabelled(tmp_path, EstimatorChange(rule=LabelRule.three_class, threshold=0.3))
    relabelled(tmp_path, EstimatorChange(rule=LabelRule.threshold, threshold=0.95))
    after = labels(tmp_path)
    assert after.select(VALUES).equals(before.select(VALUES))
    assert before["label_rule"].unique().to_list() == ["lasting_drop>0.5"]
    assert after["label_rule"].unique().to_list() == ["threshold>0.95"]
    assert not after["label"].equals(before["label"])
    assert kernels(tmp_path) == learned


def test_other_verdicts_are_learned_from_again(runs: dict[str, Path], tmp_path: Path) -> None:
    copied(runs["pooled"] / "run", tmp_path)
    rollouts, before, learned = log(tmp_path), labels(tmp_path), kernels(tmp_path)
    files = {path.name for path in (tmp_path / "run/kernels").iterdir()}
    takes_is = GraderChange(answer_pattern="work (is)")
    regrade(RegradeConfig(run_dir=str(tmp_path / "run"), grader=takes_is))
    proved(tmp_path)
    # What the labels before were learned from is in aside/.
    assert kernels(tmp_path) == learned
    assert len({path.name for path in (tmp_path / "run/kernels").iterdir()} - files) == 1
    wrong = labels(tmp_path)
    assert wrong["n_correct"].explode().max() == 0
    assert wrong["value"].explode().sum() < before["value"].explode().sum()
    relabelled(tmp_path, EstimatorChange(threshold=0.3))
    assert labels(tmp_path).select(VALUES).equals(wrong.select(VALUES))
    assert log(tmp_path) == rollouts


def test_the_way_to_the_pooled_estimator_and_back_leads_to_the_same_labels(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    copied(runs["fixed"] / "run", tmp_path)
    before = labels(tmp_path)
    relabelled(tmp_path, EstimatorChange(name="pooled"))
    pooled = labels(tmp_path)
    relabelled(tmp_path, EstimatorChange(name="fixed"))
    assert labels(tmp_path).equals(before)
    relabelled(tmp_path, EstimatorChange(name="pooled"))
    assert labels(tmp_path).equals(pooled)
    assert relabelled(tmp_path, EstimatorChange(name="pooled")).number is None
