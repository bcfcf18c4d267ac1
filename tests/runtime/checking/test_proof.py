"""`audit` proves a run with its checks: what a forger changes is found."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.findings import Check, Finding
from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.storage.commits import UNIT, commit_name, encode_commit, record_sequences
from pipeline.storage.location import storage_at
from pipeline.storage.shards import read_shard, write_shard
from pipeline.storage.stored_findings import TABLE, check_storage, finding_totals
from tests.conftest import write_rows
from tests.runtime.checking.runs import NAME, checked, labelled, rows, settings, sums

CHAINS = 9


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = labelled(tmp_path_factory.mktemp("proof"), CHAINS)
    checked(settings(run_dir))
    return run_dir


@pytest.fixture
def run_dir(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def findings(run_dir: Path) -> Sequence[Finding]:
    """What an audit finds in the check; the run itself is sound."""
    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert not report.findings
    (check,) = report.checks
    assert check.sound == (not check.findings and not check.owed)
    assert report.sound == check.sound
    return check.findings


def forge(run_dir: Path, change: Callable[[pa.Table], pa.Table], *, recount: bool = True) -> None:
    """Change the first file of findings, and the record that names it, with their checksums and counts."""
    storage = check_storage(storage_at(str(run_dir)), NAME)
    whole = next(record_sequences(storage, UNIT)).commits[-1]
    (old,) = whole.shards
    table = change(read_shard(storage, old))
    new = write_shard(storage, TABLE, whole.sequence_id, [table])
    forged = replace(whole, shards=(new,), totals=finding_totals(table) if recount else whole.totals)
    storage.remove(old.file)
    storage.replace(commit_name(whole), encode_commit(forged))


def with_value(name: str, row: int, value: object) -> Callable[[pa.Table], pa.Table]:
    """A change of one value of a table."""

    def change(table: pa.Table) -> pa.Table:
        values = table[name].to_pylist()
        values[row] = value
        at = table.schema.get_field_index(name)
        return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))

    return change


def first_of(table: pa.Table, verdict: str) -> int:
    return int(table["verdict"].to_pylist().index(verdict))


FORGERIES: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "a finding is left out": (lambda table: table.slice(1), "is missing"),
    "a finding is there twice": (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "is there twice"),
    "another chain": (with_value("chain_id", 0, "e" * 20), "is none of the unit's"),
    "another verifier": (with_value("verifier", 0, "other"), "is none of the unit's"),
    "a step that is not there": (with_value("step_index", 0, 99), "is none of the unit's"),
    "a verdict without evidence": (
        lambda table: with_value("evidence", first_of(table, "refuted"), "")(table),
        "is impossible: refuted",
    ),
    "a verdict with a fault": (
        lambda table: with_value("fault", first_of(table, "holds"), "deadline")(table),
        "is impossible: holds, whole, fault deadline",
    ),
    "a fault that there is none of": (with_value("fault", 0, "boredom"), "is impossible"),
    "a verdict that there is none of": (with_value("verdict", 0, "perhaps"), "is impossible: perhaps"),
}


def test_a_run_with_checks_is_sound(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(run_dir) == []
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    said = capsys.readouterr().out
    assert f"check      {run_dir}/checks/{NAME}" in said
    assert "sound      the run and its 1 check are finished and nothing is wrong" in said
    assert main(["audit", f"run_dir={run_dir}/checks/{NAME}"]) == 0
    assert "sound      all chains are checked and nothing is wrong" in capsys.readouterr().out


@pytest.mark.parametrize(("change", "said"), FORGERIES.values(), ids=FORGERIES)
def test_forged_findings_are_found(change: Callable[[pa.Table], pa.Table], said: str, run_dir: Path) -> None:
    forge(run_dir, change)
    found = findings(run_dir)
    assert any(each.check is Check.FINDINGS and said in each.fault for each in found), found
    assert main(["audit", f"run_dir={run_dir}"]) == 1


def test_forged_totals_are_found(run_dir: Path) -> None:
    def refuted_no_more(table: pa.Table) -> pa.Table:
        return with_value("verdict", first_of(table, "refuted"), "unknown")(table)

    forge(run_dir, refuted_no_more, recount=False)
    (found,) = findings(run_dir)
    assert found.check is Check.TOTALS
    assert "incorrect is" in found.fault


@pytest.mark.parametrize("folder", ["findings", "chains", "commits"])
def test_damaged_and_missing_files_are_found(folder: str, run_dir: Path) -> None:
    victim = sorted((run_dir / "checks" / NAME / folder).iterdir())[-1]
    kept = victim.read_bytes()
    victim.write_bytes(kept[:-9])
    assert findings(run_dir)
    victim.unlink()
    assert not audit(AuditConfig(run_dir=str(run_dir))).sound
    victim.write_bytes(kept)
    assert findings(run_dir) == []


def test_an_unfinished_check_is_not_sound(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for record in sorted((run_dir / "checks" / NAME / "commits").glob("unit-*"))[:1]:
        record.unlink()
    assert main(["audit", f"run_dir={run_dir}"]) == 1
    assert "1 of 2 units is unfinished: start `check` with the same settings again" in capsys.readouterr().out


def test_pruning_a_run_prunes_its_checks(run_dir: Path) -> None:
    waste = run_dir / "checks" / NAME / "findings" / f"findings-{'a' * 20}-{'b' * 12}.parquet"
    waste.write_bytes(b"waste")
    report = audit(AuditConfig(run_dir=str(run_dir), prune=True))
    assert [check.pruned for check in report.checks] == [1]
    assert not waste.exists()


def test_findings_on_rows_are_proved_in_their_own_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_rows(tmp_path / "rows.jsonl", rows(6, sums))
    config = replace(settings(tmp_path / "out"), checks=["arithmetic"])
    checked(replace(config, data=replace(config.data, path=str(path))))
    assert main(["audit", f"run_dir={tmp_path}/out/checks/arithmetic"]) == 0
    capsys.readouterr()
    for command in ("audit", "status"):
        assert main([command, f"run_dir={tmp_path}/out"]) == 2
        assert f"give their folder, run_dir={tmp_path}/out/checks/VERIFIER" in capsys.readouterr().err


def test_a_broken_check_is_named_and_does_not_stop_the_others(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = run_dir / "checks" / "broken" / "run.json"
    record.parent.mkdir()
    record.write_text("{}")
    assert main(["status", f"run_dir={run_dir}"]) == 0
    said = capsys.readouterr().out
    assert "checks    broken: cannot be read: " in said
    assert f"          {NAME}: finished" in said
    assert main(["audit", f"run_dir={run_dir}"]) == 1
