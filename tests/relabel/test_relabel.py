"""Labels of `relabel` equal those of a run with the same settings, and after a crash one edition is current: other rules,
other estimators where they can use the log, and the message of `label` that names this command."""

import shlex
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.analysis.relabel import regrade, relabel
from pipeline.analysis.report.run_data import first_chains
from pipeline.config.changes import AuditConfig, RegradeConfig, RelabelConfig
from pipeline.config.choices import Interval, LabelRule
from pipeline.core.errors import EngineDied, RunConflict, StoreError, UsageError
from pipeline.core.progress import RelabelResult
from pipeline.estimators.registry import ESTIMATORS
from pipeline.runtime.driver import check_place, place_of
from pipeline.storage.local import LocalStorage
from pipeline.storage.location import storage_at
from pipeline.storage.lock import run_lock
from pipeline.storage.stored_run import finished_run
from tests.audit.runs import config, copied, files, labelled
from tests.conftest import ROOT
from tests.library import Library
from tests.runtime.adaptive import kernels, labels, log, proved
from tests.runtime.in_process import label_in_process
from tests.settings import EstimatorChange, GraderChange

pytestmark = pytest.mark.slow

THRESHOLD = EstimatorChange(rule=LabelRule.threshold, threshold=0.4)


@pytest.fixture
def run_dir(library: Library, tmp_path: Path) -> Path:
    return library.copy("mixed", tmp_path)


def relabelled(run_dir: Path, change: EstimatorChange) -> RelabelResult:
    return relabel(RelabelConfig(run_dir=str(run_dir), estimator=change))


def label_files(run_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run_dir / "labels").iterdir()}


def sound(run_dir: Path) -> bool:
    return audit(AuditConfig(run_dir=str(run_dir))).sound


def test_labels_are_those_of_a_run_with_the_same_settings(run_dir: Path, tmp_path: Path) -> None:
    own = label_files(run_dir)
    done = relabelled(run_dir, THRESHOLD)
    assert (done.number, done.verdicts_changed) == (0, 0)
    assert 0 < done.labels_changed < done.labels
    (tmp_path / "fresh").mkdir()
    fresh = labelled(tmp_path / "fresh", "estimator.rule=threshold", "estimator.threshold=0.4")
    assert label_files(run_dir) == label_files(fresh)
    assert {path.name: path.read_bytes() for path in (run_dir / "aside").iterdir()} == own
    assert sound(run_dir)


def test_what_is_not_named_stays_and_the_way_back_leads_to_the_same_files(run_dir: Path) -> None:
    own = label_files(run_dir)
    relabelled(run_dir, THRESHOLD)
    relabelled(run_dir, EstimatorChange(interval=Interval.jeffreys))
    (chain, *_) = first_chains(LocalStorage(run_dir), 1)
    assert chain["label_rule"] == "threshold>0.4"
    back = EstimatorChange(rule=LabelRule.lasting_drop, threshold=0.5, interval=Interval.clopper_pearson)
    assert relabelled(run_dir, back).number == 2
    assert label_files(run_dir) == own
    assert sound(run_dir)


def test_nothing_is_written_where_the_labels_are_what_is_asked_for(run_dir: Path) -> None:
    before = files(run_dir)
    assert relabelled(run_dir, EstimatorChange(rule=LabelRule.lasting_drop)) == RelabelResult(run_dir=str(run_dir))
    assert files(run_dir) == before
    relabelled(run_dir, THRESHOLD)
    before = files(run_dir)
    assert relabelled(run_dir, THRESHOLD).number is None
    assert files(run_dir) == before


def test_a_finished_run_started_again_keeps_the_edition(run_dir: Path, tmp_path: Path) -> None:
    relabelled(run_dir, THRESHOLD)
    before = files(run_dir)
    summary = label_in_process(config(tmp_path))
    assert summary.labels == "of edition 0 (relabel)"
    assert files(run_dir) == before
    assert {chain["label_rule"] for chain in first_chains(LocalStorage(run_dir), 9)} == {"threshold>0.4"}


def test_an_extended_run_has_its_own_labels_until_they_are_made_again(run_dir: Path, tmp_path: Path) -> None:
    relabelled(run_dir, THRESHOLD)
    summary = label_in_process(config(tmp_path, "sampling.rollouts=4"))
    assert summary.labels.startswith("the run's own: edition 0 is damaged, or rollouts were added")
    assert {chain["label_rule"] for chain in first_chains(LocalStorage(run_dir), 9)} == {"lasting_drop>0.5"}
    assert sound(run_dir)
    assert relabelled(run_dir, THRESHOLD).number == 1
    (tmp_path / "fresh").mkdir()
    fresh = labelled(tmp_path / "fresh", "estimator.rule=threshold", "estimator.threshold=0.4", "sampling.rollouts=4")
    assert label_files(run_dir) == label_files(fresh)
    assert sound(run_dir)


@pytest.mark.parametrize("step", ["storage.edition_writer.publish_or_refuse", "analysis.relabel.arrange"])
def test_a_crash_leaves_the_old_labels_or_the_new(step: str, run_dir: Path, tmp_path: Path) -> None:
    own = label_files(run_dir)
    with patch(f"pipeline.{step}", side_effect=StoreError("power cut")), pytest.raises(StoreError, match="power cut"):
        relabelled(run_dir, THRESHOLD)
    assert label_files(run_dir) == own
    label_in_process(config(tmp_path))
    assert (label_files(run_dir) == own) == (step == "storage.edition_writer.publish_or_refuse")
    assert sound(run_dir)
    assert (relabelled(run_dir, THRESHOLD).number is None) == (step == "analysis.relabel.arrange")
    assert label_files(run_dir) != own
    assert sound(run_dir)


def test_a_damaged_edition_gives_way_to_the_runs_own_labels_and_can_be_made_again(
    run_dir: Path, tmp_path: Path
) -> None:
    own = label_files(run_dir)
    relabelled(run_dir, THRESHOLD)
    edited = label_files(run_dir)
    lost = sorted((run_dir / "labels").iterdir())[0]
    lost.write_bytes(lost.read_bytes()[:-1])
    assert not sound(run_dir)
    summary = label_in_process(config(tmp_path))
    assert summary.damaged == (f"labels/{lost.name}",)
    assert summary.labels.startswith("the run's own: edition 0 is damaged")
    assert label_files(run_dir) == own
    assert sound(run_dir)
    assert relabelled(run_dir, THRESHOLD).number == 2
    assert label_files(run_dir) == edited
    assert sound(run_dir)


def test_a_damaged_log_is_not_read_as_data(run_dir: Path) -> None:
    lost = sorted((run_dir / "rollouts").iterdir())[0]
    lost.write_bytes(lost.read_bytes()[:-1])
    before = files(run_dir)
    with pytest.raises(StoreError, match="is damaged: start the command of this run"):
        relabelled(run_dir, THRESHOLD)
    assert label_files(run_dir).items() <= {Path(name).name: data for name, data in before.items()}.items()


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineDied):
        labelled(tmp_path, "run.max_failures=1")
    before = files(tmp_path / "run")
    with pytest.raises(UsageError, match=r"of 2 units (is|are) unfinished: finish the run with `label`"):
        relabelled(tmp_path / "run", THRESHOLD)
    assert files(tmp_path / "run") == before


def test_a_run_at_work_is_refused(run_dir: Path) -> None:
    with run_lock(run_dir), pytest.raises(RunConflict, match="another job works on"):
        relabelled(run_dir, THRESHOLD)


def test_the_command_reports_what_it_changed(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["relabel", f"run_dir={run_dir}", "estimator.rule=threshold", "estimator.threshold=0.4"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "edition   0 is new and holds the current labels" in shown
    assert "verdicts  0 of " in shown
    assert main(asked) == 0
    assert capsys.readouterr().out == "Nothing to do: the labels already have these settings.\n"
    assert main(["relabel", f"run_dir={run_dir}", "estimator.confidence=2"]) == 2
    assert "estimator.confidence=2.0 is out of range" in capsys.readouterr().err


OTHER = ("estimator.rule=threshold", "estimator.threshold=0.4", "estimator.after_error=negative")


def refusal(folder: Path, *overrides: str) -> str:
    with pytest.raises(RunConflict) as raised:
        check_place(place_of(config(folder, *overrides)))
    return str(raised.value)


def test_the_command_in_the_message_makes_the_wanted_labels(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = library.copy("mixed", tmp_path)
    said = refusal(tmp_path, *OTHER)
    assert "belongs to another run" in said
    before, _, command = said.partition("without a model: ")
    assert before.endswith("This makes such labels from the rollouts of the run, ")
    words = shlex.split(command)
    assert words == ["relabel", f"run_dir={run_dir}", *sorted(OTHER)]
    assert main(words) == 0, capsys.readouterr().err
    wanted = place_of(config(tmp_path, *OTHER)).identity
    made = finished_run(storage_at(str(run_dir))).settings
    assert {key: made[key] for key in made} == {key: wanted[key] for key in made}


@pytest.mark.parametrize("name", ESTIMATORS.ours)
def test_what_an_option_sets_is_known(name: str) -> None:
    """Where a file in `conf/estimator` changes, so does `OPTION` of its settings."""
    loaded = yaml.safe_load((ROOT / f"conf/estimator/{name}.yaml").read_text())
    assert loaded == {"name": name, **ESTIMATORS.settings(name).OPTION}


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (["estimator=first_success"], ["estimator=first_success"]),
        (["estimator=pooled"], ["estimator=pooled"]),
        (["estimator=pooled", "estimator.rule=any"], ["estimator=pooled", "estimator.rule=any"]),
        (["estimator=pooled", "estimator.confidence=0.9"], ["estimator.confidence=0.9", "estimator=pooled"]),
    ],
)
def test_another_estimator_is_named_without_its_defaults(
    wanted: list[str], line: list[str], library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = library.copy("mixed", tmp_path)
    said = refusal(tmp_path, *wanted)
    _, _, command = said.partition("without a model (leave out ")
    option, _, command = command.partition(" to keep its estimator, fixed): ")
    assert option == wanted[0]
    words = shlex.split(command)
    assert sorted(words) == sorted(["relabel", f"run_dir={run_dir}", *line])
    assert main(words) == 0, capsys.readouterr().err
    identity = place_of(config(tmp_path, *wanted)).identity
    made = finished_run(storage_at(str(run_dir))).settings
    of_labels = [key for key in made if key.startswith("estimator.") and key in identity]
    assert {"estimator.interval", "estimator.rule", "estimator.threshold"} <= set(of_labels)
    assert {key: made[key] for key in of_labels} == {key: identity[key] for key in of_labels}


def test_settings_of_the_grader_are_a_matter_of_regrade(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library.copy("mixed", tmp_path)
    said = refusal(tmp_path, "grader.answer_pattern='is (\\d+)'", "estimator.confidence=0.9")
    words = shlex.split(said.partition("without a model: ")[2])
    assert words[0] == "regrade"
    assert main(words) == 0, capsys.readouterr().err
    assert finished_run(storage_at(str(tmp_path / "run"))).settings["grader.answer_pattern"] == "is (\\d+)"


def test_an_unfinished_run_is_finished_first(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("mixed", tmp_path)
    next((run_dir / "commits").glob("unit-*-00001.json"), next((run_dir / "commits").glob("unit-*"))).unlink()
    said = refusal(tmp_path, *OTHER)
    assert "Finish the run with its own settings first; then this makes such labels without a model: relabel" in said


@pytest.mark.parametrize(
    "other",
    [
        ["sampling.temperature=0.5"],
        ["sampling.temperature=0.5", *OTHER],
        ["policy.oracle.seed=7"],
        ["estimator=first_success", "estimator.successes=2"],
    ],
)
def test_labels_that_need_other_rollouts_have_no_such_command(other: list[str], tmp_path: Path) -> None:
    labelled(tmp_path, "estimator=first_success")
    rest = [] if "estimator=first_success" in other else ["estimator=first_success"]
    said = refusal(tmp_path, *rest, *other)
    assert "belongs to another run" in said
    assert "without a model" not in said


VALUES = ["chain_id", "value", "value_sd", "low", "high", "unbiased_value", "root_value", "advantage"]


@pytest.fixture(scope="module")
def runs(library: Library, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: library.copy(name, tmp_path_factory.mktemp(name)).parent for name in ESTIMATORS.ours}


def relabelled_by(folder: Path, change: EstimatorChange) -> RelabelResult:
    done = relabel(RelabelConfig(run_dir=str(folder / "run"), estimator=change))
    proved(folder)
    return done


@pytest.mark.parametrize("name", ["first_success", "bisect"])
def test_a_full_log_serves_estimators_that_would_have_asked_for_less(
    runs: dict[str, Path], tmp_path: Path, name: str
) -> None:
    """The rollouts that they would request are the first ones of the log, so labels and values are the same."""
    copied(runs["fixed"] / "run", tmp_path)
    relabelled_by(tmp_path, EstimatorChange(name=name, rule=LabelRule.any))
    own, expected = labels(tmp_path), labels(runs[name])
    assert own["estimator"].unique().to_list() == [name]
    assert own["label"].equals(expected["label"])
    if name == "first_success":
        for column in ("value", "low", "high", "n_correct", "n_rollouts", "unbiased_value"):
            assert own[column].equals(expected[column]), column


def test_a_full_log_serves_the_pooled_estimator(runs: dict[str, Path], tmp_path: Path) -> None:
    copied(runs["fixed"] / "run", tmp_path)
    before = labels(tmp_path)
    done = relabelled_by(tmp_path, EstimatorChange(name="pooled"))
    assert done.number == 0
    assert kernels(tmp_path) == [8]
    after = labels(tmp_path)
    assert after["n_rollouts"].equals(before["n_rollouts"])
    assert after["unbiased_value"].equals(before["unbiased_value"])
    assert not after["value"].equals(before["value"])


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
    relabelled_by(tmp_path, EstimatorChange(rule=LabelRule.threshold))
    before = files(run_dir)
    assert main(["relabel", f"run_dir={run_dir}", "estimator.name=bisect"]) == 2
    assert "estimator.rule=threshold" in capsys.readouterr().err
    assert files(run_dir) == before


def test_a_new_rule_leaves_the_values_of_a_pooled_run_as_they_are(runs: dict[str, Path], tmp_path: Path) -> None:
    copied(runs["pooled"] / "run", tmp_path)
    before, learned = labels(tmp_path), kernels(tmp_path)
    relabelled_by(tmp_path, EstimatorChange(rule=LabelRule.three_class, threshold=0.3))
    relabelled_by(tmp_path, EstimatorChange(rule=LabelRule.threshold, threshold=0.95))
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
    relabelled_by(tmp_path, EstimatorChange(threshold=0.3))
    assert labels(tmp_path).select(VALUES).equals(wrong.select(VALUES))
    assert log(tmp_path) == rollouts


def test_the_way_to_the_pooled_estimator_and_back_leads_to_the_same_labels(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    copied(runs["fixed"] / "run", tmp_path)
    before = labels(tmp_path)
    relabelled_by(tmp_path, EstimatorChange(name="pooled"))
    pooled = labels(tmp_path)
    relabelled_by(tmp_path, EstimatorChange(name="fixed"))
    assert labels(tmp_path).equals(before)
    relabelled_by(tmp_path, EstimatorChange(name="pooled"))
    assert labels(tmp_path).equals(pooled)
    assert relabelled_by(tmp_path, EstimatorChange(name="pooled")).number is None
