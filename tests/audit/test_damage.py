"""Every kind of damage, and every kind of forgery with right checksums, is found and named."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from pipeline.analysis.audit.findings import Check
from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.core.ids import content_id
from pipeline.core.records import Tally
from pipeline.core.tables import SCHEMA_VERSION
from pipeline.storage.commits import EDITION, INPUT, UNIT, Commit, CommitState, commit_name, record_sequences
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import encode_identity, recorded_identity
from pipeline.storage.shards import read_shard, write_shard
from pipeline.storage.starts import FOLDER as STARTS
from tests.audit.forger import Change, Forger, first, one_less, one_more
from tests.audit.runs import EXTENDED, config, files, findings
from tests.library import Library
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

FLIPS_PER_FILE = 12
MIN_FLIPS = 300


@pytest.fixture
def run_dir(library: Library, tmp_path: Path) -> Path:
    run_dir = library.copy("edited", tmp_path)
    # What a start only reports is not proved.
    shutil.rmtree(run_dir / STARTS)
    return run_dir


def named(run_dir: Path) -> set[str]:
    """Names, without folders, of the files in which an audit finds faults."""
    return {finding.where.rpartition("/")[2] for finding in findings(run_dir)}


def kind_of(name: str) -> str:
    """Files of one kind are damaged together, because each is found separately."""
    return "data" if name.endswith(".parquet") else name.partition("-")[0]


def test_every_flipped_bit_is_found(run_dir: Path) -> None:
    random = Random(4)
    intact = files(run_dir)
    flips = 0
    for kind in sorted({kind_of(name) for name in intact}):
        for _ in range(FLIPS_PER_FILE):
            victims = [name for name in intact if kind_of(name) == kind]
            for name in victims:
                data = bytearray(intact[name])
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
                (run_dir / name).write_bytes(data)
            assert {Path(name).name for name in victims} <= named(run_dir)
            flips += len(victims)
            for name in victims:
                (run_dir / name).write_bytes(intact[name])
    assert flips >= MIN_FLIPS
    assert findings(run_dir) == []


def test_truncated_and_swapped_files_are_found(run_dir: Path) -> None:
    intact = files(run_dir)
    for kind in sorted({kind_of(name) for name in intact}):
        victims = [name for name in intact if kind_of(name) == kind]
        for name in victims:
            (run_dir / name).write_bytes(intact[name][: len(intact[name]) // 2])
        assert {Path(name).name for name in victims} <= named(run_dir)
        for name in victims:
            (run_dir / name).write_bytes(intact[name])
    for kind in ("rollouts", "labels", "commits/unit", "commits/edition"):
        left, right, *_ = [name for name in intact if name.startswith(kind)]
        (run_dir / left).write_bytes(intact[right])
        (run_dir / right).write_bytes(intact[left])
        assert {Path(left).name, Path(right).name} <= named(run_dir)
        (run_dir / left).write_bytes(intact[left])
        (run_dir / right).write_bytes(intact[right])


def test_missing_files_are_found_where_they_are_needed(run_dir: Path) -> None:
    garbage = set(audit(AuditConfig(run_dir=str(run_dir))).orphans.garbage)
    data = {name: content for name, content in files(run_dir).items() if kind_of(name) == "data"}
    for name in data:
        (run_dir / name).unlink()
    needed = {Path(name).name for name in data.keys() - garbage}
    # A part may have the name of the file that it went into.
    others = {Path(name).name for name in garbage} - needed
    assert needed <= named(run_dir)
    assert not others & named(run_dir)


def test_missing_records_are_found_or_leave_files_that_nothing_names(run_dir: Path) -> None:
    before = audit(AuditConfig(run_dir=str(run_dir)))
    ends = {max(name for name in files(run_dir) if name.startswith(tail)) for tail in tails(run_dir)}
    for name, data in files(run_dir).items():
        if kind_of(name) != "data":
            (run_dir / name).unlink()
            after = audit(AuditConfig(run_dir=str(run_dir)))
            # Without its last commit, a record sequence looks intact; then files are orphaned or a unit is unfinished.
            if name in ends:
                assert not after.sound or len(after.orphans.garbage) > len(before.orphans.garbage)
            else:
                assert name in {finding.where for finding in after.findings}
            (run_dir / name).write_bytes(data)


def tails(run_dir: Path) -> set[str]:
    return {name.rpartition("-")[0] for name in files(run_dir) if name.startswith("commits/")}


def test_label_mends_what_damage_an_audit_finds(run_dir: Path) -> None:
    intact = files(run_dir)
    for name in (name for name in intact if name.startswith(("rollouts/", "solutions/", "rejects/", "inputs/"))):
        (run_dir / name).write_bytes(intact[name][:-1])
    assert findings(run_dir)
    mended = label_in_process(config(run_dir.parent, f"sampling.rollouts={EXTENDED}"))
    assert mended.damaged
    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert report.sound, report.findings


def without_last(table: pa.Table) -> pa.Table:
    return table.slice(0, table.num_rows - 1)


FORGERIES: list[tuple[str, str, Change, Check, str]] = [
    (UNIT, "rollouts", one_more, Check.ROLLOUTS, "is stored 2 times"),
    (UNIT, "rollouts", one_less, Check.ROLLOUTS, "is missing"),
    (UNIT, "rollouts", first(issue_index=77), Check.ROLLOUTS, "stored as issue 77"),
    (UNIT, "rollouts", first(prefix_id="f" * 20), Check.ROLLOUTS, "was never planned"),
    (UNIT, "rollouts", first(n_tokens=10**6), Check.TOTALS, "tokens is"),
    (UNIT, "rollouts", first(verdict="timeout"), Check.TOTALS, "ungraded is 0, but the log has 1"),
    (UNIT, "rollouts", first(verdict="timeout"), Check.LABELS, "n_ungraded"),
    (UNIT, "rollouts", first(finish="abandoned"), Check.ROLLOUTS, "invalid content"),
    (UNIT, "rollouts", lambda table: table.drop_columns(["text"]), Check.FILES, "has another schema"),
    (UNIT, "labels", one_less, Check.LABELS, "but the input and its draws give"),
    (UNIT, "labels", first(solution="x"), Check.LABELS, "do not belong to the chain"),
    (UNIT, "labels", first(root_low=0.5), Check.LABELS, "in root_low"),
    (UNIT, "labels", first(label_rule="none"), Check.LABELS, "in label_rule"),
    (UNIT, "solutions", one_less, Check.LABELS, "must have each of its draws 0 to 3 once, but has [0, 1, 1, 1]"),
    (UNIT, "solutions", first(problem_id="f" * 20), Check.LABELS, "was never planned"),
    (UNIT, "rejects", one_less, Check.LABELS, "but the input and its draws give"),
    (UNIT, "rejects", without_last, Check.ROLLOUTS, "but rejects/ names 0"),
    (INPUT, "rejects", one_more, Check.ROWS, "its files hold"),
    (EDITION, "labels", first(root_value=0.125), Check.LABELS, "in root_value"),
    (EDITION, "labels", one_less, Check.LABELS, "belong to other chains"),
    (EDITION, "verdicts", one_less, Check.ROLLOUTS, "are not exactly one per rollout"),
    (EDITION, "verdicts", first(verdict="timeout"), Check.LABELS, "n_ungraded"),
]


@pytest.mark.parametrize(
    ("kind", "table", "change", "check", "fault"),
    FORGERIES,
    ids=[f"{kind}-{table}-{check}-{fault[:20]}" for kind, table, _, check, fault in FORGERIES],
)
def test_a_table_that_was_changed_with_its_checksum_is_found(
    kind: str, table: str, change: Change, check: Check, fault: str, run_dir: Path
) -> None:
    Forger(run_dir).change(kind, table, change)
    found = [finding for finding in findings(run_dir) if finding.check is check]
    assert any(fault in finding.fault for finding in found), findings(run_dir)
    assert all(finding.remedy for finding in found)


def with_rollouts(commit: Commit, more: int) -> Commit:
    return replace(commit, unit_target=replace(commit.unit_target, rollouts=commit.unit_target.rollouts + more))


def without_first(commit: Commit, table: str) -> Commit:
    first = next(shard for shard in commit.shards if shard.table == table)
    return replace(commit, shards=tuple(shard for shard in commit.shards if shard != first))


RECORDS: list[tuple[str, Callable[[Commit], Commit], Check, str]] = [
    (UNIT, lambda commit: replace(commit, tally=Tally(commit.tally, correct=99)), Check.TOTALS, "correct is 99"),
    (UNIT, lambda commit: with_rollouts(commit, +1), Check.ROLLOUTS, "is missing"),
    (UNIT, lambda commit: with_rollouts(commit, -1), Check.ROLLOUTS, "was never planned"),
    (
        UNIT,
        lambda commit: replace(commit, shards=tuple(replace(shard, rows=shard.rows + 1) for shard in commit.shards)),
        Check.FILES,
        "its commit record states",
    ),
    (INPUT, lambda commit: replace(commit, tally=Tally(commit.tally, rows=99)), Check.ROWS, "rows=99"),
    (
        INPUT,
        lambda commit: replace(commit, settings=(("input", '"another"'), *commit.settings[1:])),
        Check.SETTINGS,
        "differs from the copy",
    ),
    (EDITION, lambda commit: without_first(commit, "labels"), Check.LABELS, "belong to other chains"),
    (
        EDITION,
        lambda commit: replace(
            commit, settings=tuple((key, value.replace("threshold", "any")) for key, value in commit.settings)
        ),
        Check.LABELS,
        "label_rule",
    ),
    (
        EDITION,
        lambda commit: replace(
            commit, settings=tuple((key, value.replace("fixed", "guess")) for key, value in commit.settings)
        ),
        Check.RECORDS,
        "invalid settings",
    ),
]


@pytest.mark.parametrize(
    ("kind", "change", "check", "fault"), RECORDS, ids=[f"{kind}-{fault[:20]}" for kind, _, _, fault in RECORDS]
)
def test_a_record_that_was_changed_with_its_checksum_is_found(
    kind: str, change: Callable[[Commit], Commit], check: Check, fault: str, run_dir: Path
) -> None:
    forger = Forger(run_dir)
    forger.write(change(forger.last(kind)))
    assert any(finding.check is check and fault in finding.fault for finding in findings(run_dir)), findings(run_dir)


def test_a_part_that_counts_wrongly_is_found(run_dir: Path) -> None:
    forger = Forger(run_dir)
    parts = [
        commit
        for found in record_sequences(forger.storage, UNIT)
        for commit in found.commits
        if commit.state is CommitState.PART
    ]
    part = next(part for part in parts if part.totals.rollouts)
    forger.write(replace(part, tally=Tally(part.tally, tokens=1)))
    (finding,) = findings(run_dir)
    assert (finding.check, finding.where) == (Check.TOTALS, commit_name(part))


@pytest.mark.parametrize(
    ("key", "value"), [("sampling.temperature", 0.5), ("estimator.rule", "guess"), ("schema", float(SCHEMA_VERSION))]
)
def test_settings_that_were_changed_with_their_checksum_are_found(key: str, value: object, run_dir: Path) -> None:
    changed = {**recorded_identity(LocalStorage(run_dir)), key: value}
    (run_dir / "run.json").write_bytes(encode_identity(changed))
    assert findings(run_dir)[0].check is Check.SETTINGS


def test_without_its_settings_a_run_is_proved_by_their_copy(run_dir: Path) -> None:
    (run_dir / "run.json").unlink()
    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert [finding.where for finding in report.findings] == ["run.json"]
    assert report.looked_at[Check.TOTALS] == 2


def test_a_unit_that_the_input_does_not_have_is_found(run_dir: Path) -> None:
    forger = Forger(run_dir)
    stranger = replace(forger.last(UNIT), sequence_id=content_id("x"), number=0)
    forger.write(stranger)
    places = [finding.where for finding in findings(run_dir)]
    assert f"commits/unit-{stranger.sequence_id}-*" in places


def test_rows_that_are_not_their_units_are_found(run_dir: Path) -> None:
    forger = Forger(run_dir)
    commit = forger.last(INPUT)
    shard = commit.shards[0]
    table = read_shard(forger.storage, shard)
    groups = [table.slice(at, 1) for at in range(2)]
    notes = {"stepvalue.units": json.dumps(["1" * 20, "2" * 20])}
    forged = write_shard(forger.storage, "inputs", "3" * 20, groups, notes=notes)
    forger.write(replace(commit, shards=(forged, *commit.shards[1:])))
    assert any("are those of another unit" in finding.fault for finding in findings(run_dir))


def test_labels_that_lie_in_the_wrong_place_are_found(run_dir: Path) -> None:
    current = sorted((run_dir / "labels").iterdir())[0]
    current.rename(run_dir / "aside" / current.name)
    (finding,) = findings(run_dir)
    assert finding.where == f"labels/{current.name}"
    assert "is in the wrong folder" in finding.fault
    assert "start `label`" in finding.remedy
