"""What an audit prints about intact, unfinished and littered run directories, and what it removes."""

import shutil
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.findings import MAX_SHOWN, Check
from pipeline.analysis.audit.run import AuditReport, audit
from pipeline.analysis.relabel import relabel
from pipeline.config.changes import AuditConfig, RelabelConfig
from pipeline.config.choices import LabelRule
from pipeline.core.errors import EngineDied, RunConflict, Unreachable, UsageError
from pipeline.core.progress import Status
from pipeline.runtime.chain_run.run import run_task
from pipeline.runtime.driver import LabelTask
from pipeline.runtime.stop import StopSignal
from pipeline.storage.local import LocalStorage
from pipeline.storage.lock import run_lock
from pipeline.storage.starts import FOLDER
from tests.audit.runs import EXTENDED, config, files, labelled
from tests.library import Library
from tests.runtime.in_process import in_process, label_in_process
from tests.settings import EstimatorChange

pytestmark = pytest.mark.slow

Printed = pytest.CaptureFixture[str]

OF_LABELS = (Check.SETTINGS, Check.RECORDS, Check.FILES, Check.ROWS, Check.ROLLOUTS, Check.TOTALS, Check.LABELS)
"""The checks of a run of `label`."""


@pytest.fixture(scope="module")
def finished(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("mixed", tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def with_editions(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("edited", tmp_path_factory.mktemp("edited"))


def audited(run_dir: Path, *, prune: bool = False) -> AuditReport:
    return audit(AuditConfig(run_dir=str(run_dir), prune=prune))


def test_a_finished_run_is_sound_and_everything_was_looked_at(finished: Path) -> None:
    report = audited(finished)
    assert (report.sound, report.findings, report.owed, report.units) == (True, [], 0, 2)
    assert report.looked_at[Check.ROWS] == 9
    assert report.looked_at[Check.TOTALS] == 2
    assert report.looked_at[Check.LABELS] >= 6
    assert report.looked_at[Check.FILES] == len([name for name in files(finished) if name.endswith(".parquet")])
    assert report.looked_at[Check.RECORDS] == len([name for name in files(finished) if name.startswith("commits/")])
    assert any(name.startswith("flushed/rollouts") for name in report.orphans.garbage)


def test_an_extended_and_edited_run_is_sound(with_editions: Path) -> None:
    report = audited(with_editions)
    assert report.sound, report.findings
    assert report.looked_at[Check.FILES] == len([name for name in files(with_editions) if name.endswith(".parquet")])


def test_what_starts_report_is_neither_foreign_nor_proved(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("mixed", tmp_path)
    (shown,) = (run_dir / FOLDER).iterdir()
    shown.write_bytes(b"anything")
    assert audited(run_dir).sound
    assert audited(run_dir).orphans.foreign == ()
    shown.unlink()
    assert audited(run_dir).sound


def test_reading_writes_nothing(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("edited", tmp_path)
    (run_dir / ".lock").unlink()
    before = files(run_dir)
    assert audited(run_dir).sound
    assert files(run_dir) == before
    assert not (run_dir / ".lock").exists()


def test_a_run_that_was_killed_is_unfinished_and_nothing_else(tmp_path: Path) -> None:
    dying = ("run.max_failures=1", "run.units_in_flight=1")
    with pytest.raises(EngineDied):
        labelled(tmp_path, *dying)
    report = audited(tmp_path / "run")
    assert report.findings == []
    assert 0 < report.owed <= report.units
    assert not report.sound
    before = files(tmp_path / "run")
    assert audited(tmp_path / "run", prune=True).pruned == 0
    assert files(tmp_path / "run") == before
    labelled(tmp_path)
    assert audited(tmp_path / "run").sound


def test_a_run_at_work_can_be_audited(tmp_path: Path) -> None:
    reports: list[AuditReport] = []

    def watch(status: Status) -> None:
        if status.stage == "labelling":
            reports.append(audited(tmp_path / "run"))

    run_task(LabelTask(config(tmp_path, "run.units_in_flight=1")), in_process, watch, StopSignal())
    assert [report.findings for report in reports] == [[]] * len(reports)
    assert reports[0].owed == 2


def littered(run_dir: Path) -> None:
    unnamed = run_dir / "rollouts" / f"rollouts-{'0' * 20}-{'0' * 12}.parquet"
    unnamed.write_bytes(b"of a worker that was killed")
    (run_dir / "labels" / f".labels-{'0' * 20}-{'0' * 12}.parquet.{'a' * 12}.tmp").write_bytes(b"torn")
    (run_dir / f".run.json.{'a' * 12}.tmp").write_bytes(b"torn")
    (run_dir / "damaged").mkdir(exist_ok=True)
    (run_dir / "damaged" / "labels-x.parquet").write_bytes(b"bad")
    (run_dir / "labels" / "notes.txt").write_text("mine")
    (run_dir / "labels" / "mine").mkdir()
    (run_dir / "plots").mkdir()
    (run_dir / "commits" / "unit.json").write_text("mine")


def test_a_file_of_others_that_is_read_with_the_labels_is_a_fault(library: Library, tmp_path: Path) -> None:
    labels = library.copy("edited", tmp_path) / "labels"
    shutil.copy(next(labels.iterdir()), labels / "copy.parquet")
    assert [each.where for each in audited(labels.parent).findings] == ["labels/copy.parquet"]


def test_pruning_removes_what_nothing_needs_and_leaves_what_is_not_ours(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("edited", tmp_path)
    littered(run_dir)
    report = audited(run_dir)
    assert report.proved, report.findings
    assert not report.sound, report.orphans.strays
    assert report.orphans.foreign == ("plots", "commits/unit.json", "labels/mine", "labels/notes.txt")
    before = files(run_dir)
    pruned = audited(run_dir, prune=True)
    assert before.keys() - files(run_dir).keys() == set(report.orphans.garbage)
    assert pruned.pruned == len(report.orphans.garbage)
    after = audited(run_dir)
    assert after.sound, after.findings
    assert after.orphans.garbage == ()
    assert set(after.orphans.foreign) == set(report.orphans.foreign)
    assert not list((run_dir / "damaged").iterdir())
    assert not list((run_dir / "flushed").iterdir())


def test_a_pruned_run_is_still_finished_and_its_current_labels_stay(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("edited", tmp_path)
    current = {path.name for path in (run_dir / "labels").iterdir()}
    assert audited(run_dir, prune=True).pruned > 0
    before = files(run_dir)
    again = label_in_process(config(tmp_path, f"sampling.rollouts={EXTENDED}"))
    assert again.units_done_now == 0
    assert "edition 1" in again.labels
    assert files(run_dir) == before
    assert {path.name for path in (run_dir / "labels").iterdir()} == current


def test_nothing_is_pruned_where_something_is_wrong(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("edited", tmp_path)
    littered(run_dir)
    next((run_dir / "rejects").iterdir()).unlink()
    before = files(run_dir)
    report = audited(run_dir, prune=True)
    assert (report.sound, report.pruned) == (False, 0)
    assert files(run_dir) == before


def test_pruning_waits_for_no_one(with_editions: Path) -> None:
    with run_lock(with_editions):
        assert audited(with_editions).sound
        with pytest.raises(RunConflict, match="another job works on"):
            audited(with_editions, prune=True)


def test_where_no_lock_keeps_others_away_pruning_needs_a_word(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("mixed", tmp_path)
    before = files(run_dir)
    with patch("pipeline.analysis.audit.run.hold_lock", lambda storage, lock: nullcontext(False)):
        with pytest.raises(UsageError, match="make sure that no other job works on it, then prune it with lock=false"):
            audited(run_dir, prune=True)
        assert files(run_dir) == before
        assert audit(AuditConfig(run_dir=str(run_dir), prune=True, lock=False)).pruned > 0


def test_a_run_in_an_object_store_is_labelled_again_proved_and_pruned(tmp_path: Path) -> None:
    run_dir = f"memory://{tmp_path.name}/run"
    label_in_process(config(tmp_path, f"run_dir={run_dir}", "run.lock=false"))
    estimator = EstimatorChange(rule=LabelRule.threshold)
    for _ in range(2):
        assert relabel(RelabelConfig(run_dir=run_dir, lock=False, estimator=estimator)).run_dir == run_dir
        estimator = EstimatorChange(threshold=0.1)
    report = audit(AuditConfig(run_dir=run_dir))
    assert report.sound, report.findings
    assert sorted({name.partition("/")[0] for name in report.orphans.garbage}) == ["aside", "flushed"]
    assert audit(AuditConfig(run_dir=run_dir, prune=True, lock=False)).pruned == len(report.orphans.garbage)
    assert audit(AuditConfig(run_dir=run_dir)).orphans.garbage == ()


def test_a_store_that_is_away_is_no_damage(finished: Path) -> None:
    away = patch.object(LocalStorage, "read", side_effect=Unreachable("the store is away"))
    with away, pytest.raises(Unreachable):
        audited(finished)


def test_the_command_reports_counts_and_its_exit_code(library: Library, tmp_path: Path, capsys: Printed) -> None:
    run_dir = library.copy("edited", tmp_path)
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:7]] == [check.value for check in OF_LABELS]
    assert "garbage" in lines[7]
    assert lines[-1] == "sound      the run is finished and nothing is wrong"
    assert main(["audit", "--prune", f"run_dir={run_dir}"]) == 0
    assert "pruned" in capsys.readouterr().out
    (label_file, *_) = (run_dir / "labels").glob("*.parquet")
    label_file.unlink()
    assert main(["audit", f"run_dir={run_dir}"]) == 1
    out = capsys.readouterr().out
    assert f"labels/{label_file.name}: is missing: make the labels again with `relabel`" in out
    assert "sound" not in out


def test_no_run_is_wrong_usage(tmp_path: Path, capsys: Printed) -> None:
    for where in (tmp_path, tmp_path / "absent"):
        assert main(["audit", f"run_dir={where}"]) == 2
        assert "does not contain a run" in capsys.readouterr().err
    assert main(["audit"]) == 2
    assert "run_dir is not set" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_not_ours_are_shown_without_control_characters(
    library: Library, tmp_path: Path, capsys: Printed
) -> None:
    run_dir = library.copy("mixed", tmp_path)
    (run_dir / "a\x1b[31mb").write_text("")
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "  a�[31mb" in out


def test_a_long_list_of_garbage_is_cut(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("mixed", tmp_path)
    for number in range(2 * MAX_SHOWN):
        (run_dir / "rollouts" / f"rollouts-{number:020x}-{'0' * 12}.parquet").write_bytes(b"")
    report = audited(run_dir)
    listed = [line for line in report.lines() if line.startswith("  ")]
    assert len(listed) == MAX_SHOWN + 1
    assert listed[-1] == f"  and {len(report.orphans.garbage) - MAX_SHOWN} more"
