"""An audit of a grown run finds what a growth must not do."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.core.records import InputRow
from pipeline.storage.commits import INPUT, Commit, commit_name, encode_commit, record_sequences
from pipeline.storage.local import LocalStorage
from pipeline.storage.units import staged_rows, write_units
from tests.audit.runs import findings
from tests.runtime.growing import chains, label

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that grew twice."""
    folder = tmp_path_factory.mktemp("grown")
    label(folder, chains(1, 2, 3, 4))
    label(folder, [*chains(1, 2, 3, 4), *chains(1, last=3)])
    label(folder, [*chains(1, 2, 3, 4), *chains(1, last=3), *chains(5, 6)])
    return folder / "run"


@pytest.fixture
def run_dir(grown: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(grown, tmp_path / "run"))


def faults(run_dir: Path) -> str:
    return "\n".join(f"{finding.where} {finding.fault}" for finding in findings(run_dir))


def records(run_dir: Path) -> list[Commit]:
    (sequence,) = record_sequences(LocalStorage(run_dir), INPUT)
    return list(sequence.commits)


def rewrite(run_dir: Path, change: Callable[[Commit], Commit]) -> Commit:
    """The last record of the input, changed, with a right checksum."""
    forged = change(records(run_dir)[-1])
    (run_dir / commit_name(forged)).write_bytes(encode_commit(forged))
    return forged


def with_rows(run_dir: Path, change: Callable[[list[list[InputRow]]], list[list[InputRow]]]) -> None:
    """The units of the second growth, changed."""
    storage = LocalStorage(run_dir)

    def changed(commit: Commit) -> Commit:
        files = [shard for shard in commit.shards if shard.table == "inputs"]
        units = list(staged_rows(storage, replace(commit, shards=(files[-1],))))
        written = write_units(storage, "3" * 20, change(units))
        return replace(commit, shards=tuple(written if shard == files[-1] else shard for shard in commit.shards))

    rewrite(run_dir, changed)


def test_a_grown_run_is_sound(grown: Path) -> None:
    report = audit(AuditConfig(run_dir=str(grown)))
    assert report.sound, report.findings


def test_an_old_unit_that_a_growth_lost_is_found(run_dir: Path) -> None:
    def without_first(commit: Commit) -> Commit:
        return replace(commit, shards=commit.shards[1:])

    lost = records(run_dir)[0].shards[0].file
    rewrite(run_dir, without_first)
    assert f"lacks {lost}, which the record before it has" in faults(run_dir)
    assert "belongs to no unit of the input" in faults(run_dir)


def test_a_chain_in_two_units_is_found(run_dir: Path) -> None:
    old = next(staged_rows(LocalStorage(run_dir), records(run_dir)[0]))
    with_rows(run_dir, lambda units: [[old[0], *units[0]]])
    assert "is in two units" in faults(run_dir)


def test_a_wrong_number_of_earlier_units_is_found(run_dir: Path) -> None:
    with_rows(run_dir, lambda units: [[replace(row, again=2) for row in unit] for unit in units])
    assert "has 0 earlier units, but 2 are noted" in faults(run_dir)


def test_the_settings_of_a_growth_are_those_of_the_run(run_dir: Path) -> None:
    def hotter(commit: Commit) -> Commit:
        settings = dict(commit.settings) | {"sampling.temperature": json.dumps(0.5)}
        return replace(commit, settings=tuple(sorted(settings.items())))

    rewrite(run_dir, hotter)
    assert "run.json differs from the copy in commits/input-" in faults(run_dir)


def test_rows_of_a_file_are_counted_in_the_totals(run_dir: Path) -> None:
    with_rows(run_dir, lambda units: units[:-1] or [units[0][:1]])
    assert "but its files hold" in faults(run_dir)
