"""Labels of `relabel` equal those of a run with the same settings. After a crash, the old or the new edition is current."""

from pathlib import Path
from unittest.mock import patch

import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.analysis.relabel import relabel
from pipeline.analysis.report.run_data import first_chains
from pipeline.config.changes import AuditConfig, RelabelConfig
from pipeline.config.choices import Interval, LabelRule
from pipeline.core.errors import EngineDied, RunConflict, StoreError, UsageError
from pipeline.core.progress import RelabelResult
from pipeline.storage.local import LocalStorage
from pipeline.storage.lock import run_lock
from tests.audit.runs import config, files, labelled
from tests.library import Library
from tests.runtime.in_process import label_in_process
from tests.settings import EstimatorChange

pytestmark = pytest.mark.slow

THRESHOLD = EstimatorChange(rule=LabelRule.threshold, threshold=0.4)


@pytest.fixture
def run_dir(library: Library, tmp_path: Path) -> Path:
    return library.copy("mixed", tmp_path)


def relabelled(run_dir: Path, change: EstimatorChange) -> RelabelResult:
    return relabel(RelabelConfig(run_dir=str(run_dir), estimator=change))


def labels(run_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run_dir / "labels").iterdir()}


def sound(run_dir: Path) -> bool:
    return audit(AuditConfig(run_dir=str(run_dir))).sound


def test_labels_are_those_of_a_run_with_the_same_settings(run_dir: Path, tmp_path: Path) -> None:
    own = labels(run_dir)
    done = relabelled(run_dir, THRESHOLD)
    assert (done.number, done.verdicts_changed) == (0, 0)
    assert 0 < done.labels_changed < done.labels
    (tmp_path / "fresh").mkdir()
    fresh = labelled(tmp_path / "fresh", "estimator.rule=threshold", "estimator.threshold=0.4")
    assert labels(run_dir) == labels(fresh)
    assert {path.name: path.read_bytes() for path in (run_dir / "aside").iterdir()} == own
    assert sound(run_dir)


def test_what_is_not_named_stays_and_the_way_back_leads_to_the_same_files(run_dir: Path) -> None:
    own = labels(run_dir)
    relabelled(run_dir, THRESHOLD)
    relabelled(run_dir, EstimatorChange(interval=Interval.jeffreys))
    (chain, *_) = first_chains(LocalStorage(run_dir), 1)
    assert chain["label_rule"] == "threshold>0.4"
    back = EstimatorChange(rule=LabelRule.lasting_drop, threshold=0.5, interval=Interval.clopper_pearson)
    assert relabelled(run_dir, back).number == 2
    assert labels(run_dir) == own
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
    assert labels(run_dir) == labels(fresh)
    assert sound(run_dir)


@pytest.mark.parametrize("step", ["storage.edition_writer.publish_or_refuse", "analysis.relabel.arrange"])
def test_a_crash_leaves_the_old_labels_or_the_new(step: str, run_dir: Path, tmp_path: Path) -> None:
    own = labels(run_dir)
    with patch(f"pipeline.{step}", side_effect=StoreError("power cut")), pytest.raises(StoreError, match="power cut"):
        relabelled(run_dir, THRESHOLD)
    assert labels(run_dir) == own
    label_in_process(config(tmp_path))
    assert (labels(run_dir) == own) == (step == "storage.edition_writer.publish_or_refuse")
    assert sound(run_dir)
    assert (relabelled(run_dir, THRESHOLD).number is None) == (step == "analysis.relabel.arrange")
    assert labels(run_dir) != own
    assert sound(run_dir)


def test_a_damaged_edition_gives_way_to_the_runs_own_labels_and_can_be_made_again(
    run_dir: Path, tmp_path: Path
) -> None:
    own = labels(run_dir)
    relabelled(run_dir, THRESHOLD)
    edited = labels(run_dir)
    lost = sorted((run_dir / "labels").iterdir())[0]
    lost.write_bytes(lost.read_bytes()[:-1])
    assert not sound(run_dir)
    summary = label_in_process(config(tmp_path))
    assert summary.damaged == (f"labels/{lost.name}",)
    assert summary.labels.startswith("the run's own: edition 0 is damaged")
    assert labels(run_dir) == own
    assert sound(run_dir)
    assert relabelled(run_dir, THRESHOLD).number == 2
    assert labels(run_dir) == edited
    assert sound(run_dir)


def test_a_damaged_log_is_not_read_as_data(run_dir: Path) -> None:
    lost = sorted((run_dir / "rollouts").iterdir())[0]
    lost.write_bytes(lost.read_bytes()[:-1])
    before = files(run_dir)
    with pytest.raises(StoreError, match="is damaged: start the command of this run"):
        relabelled(run_dir, THRESHOLD)
    assert labels(run_dir).items() <= {Path(name).name: data for name, data in before.items()}.items()


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineDied):
        labelled(tmp_path, "run.max_failures=1")
    before = files(tmp_path / "run")
    with pytest.raises(UsageError, match=r"of 2 units (is|are) unfinished: finish the run with `label`"):
        relabelled(tmp_path / "run", THRESHOLD)
    assert files(tmp_path / "run") == before


def test_no_run_is_refused_and_nothing_made(tmp_path: Path) -> None:
    for where in (tmp_path, tmp_path / "absent"):
        with pytest.raises(UsageError, match="does not contain a run"):
            relabelled(where, THRESHOLD)
    assert list(tmp_path.iterdir()) == []


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
