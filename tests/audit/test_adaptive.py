"""The faults that an audit finds, and accepts, in runs of adaptive estimators."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis.audit.findings import Check
from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.core.ids import rollout_id
from pipeline.storage.commits import UNIT, record_sequences, resolve
from pipeline.storage.shards import aside_name
from tests.audit.forger import Forger, changed
from tests.audit.runs import copied, findings
from tests.library import SMALL, Library
from tests.runtime.adaptive import log, proved, settings, sums
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]
ROWS = sums(4)
SEVERAL_UNITS = ("run.unit_problems=1", "run.units_in_flight=1")


@pytest.fixture(scope="module")
def runs(library: Library, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    names = ("first_success", "bisect", "pooled")
    found = {name: library.copy(name, tmp_path_factory.mktemp(name)) for name in names}
    for run_dir in found.values():
        proved(run_dir.parent)
    return found


def issues(rows: Rows, prefix: str) -> Rows:
    return sorted((row for row in rows if row["prefix_id"] == prefix), key=lambda row: int(row["issue_index"]))


def one_behind_a_right_one(rows: Rows) -> Rows:
    last = next(row for row in rows if row["verdict"] == "correct")
    return [*rows, issued_again(last, last["issue_index"] + 1)]


def one_behind_all(rows: Rows) -> Rows:
    (prefix, *_) = {row["prefix_id"] for row in rows}
    last = issues(rows, prefix)[-1]
    return [*rows, *(issued_again(last, issue) for issue in range(last["issue_index"] + 1, 7))]


def without_one_in_the_middle(rows: Rows) -> Rows:
    (gone, *_) = [issues(rows, row["prefix_id"])[0] for row in rows if row["issue_index"] > 0]
    return [row for row in rows if row != gone]


def issued_again(row: dict[str, Any], issue: int) -> dict[str, Any]:
    return row | {"issue_index": issue, "rollout_id": rollout_id(row["prefix_id"], issue)}


FORGERIES = [
    ("first_success", "rollouts", without_one_in_the_middle, Check.ROLLOUTS, "is missing"),
    ("first_success", "rollouts", one_behind_all, Check.ROLLOUTS, "was never planned"),
    ("first_success", "rollouts", one_behind_a_right_one, Check.ROLLOUTS, "had enough correct rollouts"),
    ("first_success", "rollouts", lambda rows: rows[:-1], Check.TOTALS, "rollouts is"),
    ("bisect", "rollouts", one_behind_a_right_one, Check.ROLLOUTS, "had enough correct rollouts"),
    ("bisect", "rollouts", one_behind_all, Check.ROLLOUTS, "was never planned"),
    ("pooled", "rollouts", without_one_in_the_middle, Check.ROLLOUTS, "is missing"),
    ("pooled", "rollouts", lambda rows: [row | {"round": 0} for row in rows], Check.LABELS, "in unbiased_value"),
    ("pooled", "kernels", lambda rows: [row | {"start": [9.0] * len(row["start"])} for row in rows], Check.LABELS, "value_sd"),
    ("pooled", "kernels", lambda rows: [row | {"prior": 0} for row in rows], Check.ROLLOUTS, "invalid content"),
    ("pooled", "labels", lambda rows: [row | {"label": [1] * len(row["label"])} for row in rows], Check.LABELS, "in label"),
    ("pooled", "labels", lambda rows: [row | {"root_value_sd": 0.1} for row in rows], Check.LABELS, "value_sd"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "table", "change", "check", "fault"),
    FORGERIES,
    ids=[f"{name}-{table}-{fault}" for name, table, _, _, fault in FORGERIES],
)
def test_what_was_changed_with_its_checksum_is_found(
    runs: dict[str, Path],
    tmp_path: Path,
    name: str,
    table: str,
    change: Callable[[Rows], Rows],
    check: Check,
    fault: str,
) -> None:
    run_dir = copied(runs[name], tmp_path)
    Forger(run_dir).change(UNIT, table, changed(change))
    assert any(found.check is check and fault in found.fault for found in findings(run_dir)), findings(run_dir)


def test_a_changed_target_is_found_where_rollouts_report(runs: dict[str, Path], tmp_path: Path) -> None:
    run_dir = copied(runs["first_success"], tmp_path)
    forger = Forger(run_dir)
    commit = forger.last(UNIT)
    forger.write(replace(commit, unit_target=replace(commit.unit_target, rollouts=commit.unit_target.rollouts + 5)))
    assert any(" lacks " in found.fault for found in findings(run_dir))


def test_pruning_keeps_kernels_that_other_units_began_with(tmp_path: Path) -> None:
    asked = ("estimator=pooled", "sampling.rollouts=40", *SEVERAL_UNITS)
    for target in (0.3, 0.2):
        label_in_process(settings(tmp_path, ROWS, *asked, f"estimator.target_sd={target}"))
    storage = Forger(tmp_path / "run").storage
    resolved = [resolve(found) for found in record_sequences(storage, UNIT)]
    bases = {shard.file for found in resolved for shard in found.base}
    assert bases
    assert not bases & {shard.file for found in resolved if found.whole for shard in found.whole.shards}
    assert audit(AuditConfig(run_dir=str(tmp_path / "run"), prune=True)).pruned > 0
    assert {aside_name(name) for name in bases} <= set(storage.names("aside"))
    proved(tmp_path)
    label_in_process(settings(tmp_path, ROWS, *asked, "estimator.target_sd=0.15"))
    proved(tmp_path)


def test_a_damaged_kernel_is_made_again_and_who_began_with_it_goes_on(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("pooled", tmp_path)
    kernels = list((run_dir / "kernels").iterdir())
    for file in kernels:
        file.write_bytes(file.read_bytes()[:-1])
    assert {f"kernels/{file.name}" for file in kernels} <= {found.where for found in findings(run_dir)}
    before = log(tmp_path)
    mended = label_in_process(settings(tmp_path, ROWS, "estimator=pooled", *SMALL))
    assert len(mended.damaged) >= 2
    assert before.items() <= log(tmp_path).items()
    proved(tmp_path)
