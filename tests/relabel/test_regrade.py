"""Verdicts of `regrade` equal those of a run with the same settings."""

import json
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest

from pipeline.analysis.audit.run import audit
from pipeline.analysis.relabel import regrade, relabel
from pipeline.analysis.report.run_data import first_chains
from pipeline.config.changes import AuditConfig, RegradeConfig, RelabelConfig
from pipeline.config.choices import Fallback, LabelRule, TimeoutIs
from pipeline.core.errors import StepvalueError, StoreError
from pipeline.core.progress import RelabelResult
from pipeline.core.records import Grade
from pipeline.graders.math.pool import MathChecker
from pipeline.graders.registry import checker_for
from pipeline.graders.settings import MathConfig
from pipeline.storage.commits import EDITION, record_sequences
from pipeline.storage.local import LocalStorage
from tests.audit.runs import copied, files, labelled
from tests.conftest import write_rows
from tests.library import Library
from tests.settings import EstimatorChange, GraderChange, grader_settings

pytestmark = pytest.mark.slow

# Every completion of the oracle says that "the work is done" before it states its answer.
TAKES_IS = GraderChange(answer_pattern="work (is)")


@pytest.fixture
def run_dir(library: Library, tmp_path: Path) -> Path:
    return library.copy("mixed", tmp_path)


def regraded(run_dir: Path, grader: GraderChange = TAKES_IS, estimator: EstimatorChange | None = None) -> RelabelResult:
    return regrade(RegradeConfig(run_dir=str(run_dir), grader=grader, estimator=estimator or EstimatorChange()))


def labels(run_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run_dir / "labels").iterdir()}


def verdict_table(run_dir: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted((run_dir / "verdicts").iterdir())])


def verdict_files(run_dir: Path) -> list[set[str]]:
    """The verdict files of each edition."""
    (editions,) = record_sequences(LocalStorage(run_dir), EDITION)
    return [{shard.file for shard in commit.shards if shard.table == "verdicts"} for commit in editions.commits]


def sound(run_dir: Path) -> bool:
    return audit(AuditConfig(run_dir=str(run_dir))).sound


def test_labels_are_those_of_a_run_with_the_same_checker(run_dir: Path, tmp_path: Path) -> None:
    done = regraded(run_dir)
    assert 0 < done.verdicts_changed < done.rollouts
    assert {change.partition(", ")[2] for change in done.verdict_changes} == {"of another answer in the text"}
    assert done.labels_changed > 0
    (tmp_path / "fresh").mkdir()
    fresh = labelled(tmp_path / "fresh", "grader.answer_pattern='work (is)'")
    assert labels(run_dir) == labels(fresh)
    log = pl.concat([pl.read_parquet(path) for path in (fresh / "rollouts").iterdir()])
    assert (
        verdict_table(run_dir)
        .sort("rollout_id")
        .equals(log.select("rollout_id", "answer", "verdict", "grader").sort("rollout_id"))
    )
    assert sound(run_dir)


def test_nothing_is_written_where_verdicts_and_labels_are_what_is_asked_for(run_dir: Path) -> None:
    before = files(run_dir)
    assert regraded(run_dir, GraderChange(fallback=Fallback.closing_statement, processes=2)).number is None
    assert files(run_dir) == before
    regraded(run_dir)
    before = files(run_dir)
    assert regraded(run_dir).number is None
    assert files(run_dir) == before


def test_more_memory_for_algebra_is_a_reason_to_grade_again(run_dir: Path) -> None:
    own = labels(run_dir)
    assert regraded(run_dir, GraderChange(memory_mib=4096)).number == 0
    assert regraded(run_dir, GraderChange(memory_mib=4096)).number is None
    assert labels(run_dir) == own


def test_relabel_goes_on_from_the_new_verdicts(run_dir: Path, tmp_path: Path) -> None:
    regraded(run_dir)
    estimator = EstimatorChange(rule=LabelRule.threshold)
    assert relabel(RelabelConfig(run_dir=str(run_dir), estimator=estimator)).number == 1
    first, second = verdict_files(run_dir)
    assert first == second
    (tmp_path / "fresh").mkdir()
    fresh = labelled(tmp_path / "fresh", "grader.answer_pattern='work (is)'", "estimator.rule=threshold")
    assert labels(run_dir) == labels(fresh)
    assert sound(run_dir)


def test_estimator_settings_can_be_given_too_and_others_stay(run_dir: Path) -> None:
    relabel(RelabelConfig(run_dir=str(run_dir), estimator=EstimatorChange(rule=LabelRule.threshold)))
    regraded(run_dir, estimator=EstimatorChange(threshold=0.1))
    found = pl.concat([pl.read_parquet(path) for path in (run_dir / "labels").iterdir()])
    assert set(found["label_rule"]) == {"threshold>0.1"}
    assert sound(run_dir)


def test_a_pattern_can_be_taken_away_again(run_dir: Path) -> None:
    own = labels(run_dir)
    regraded(run_dir)
    back = regraded(run_dir, GraderChange(answer_pattern=""))
    assert back.verdicts_changed > 0
    assert labels(run_dir) == own
    assert sound(run_dir)


class SlowChecker(MathChecker):
    """A checker that gives no verdict immediately."""

    def quick(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade | None:
        return None


def test_verdicts_that_are_waited_for_are_the_same(run_dir: Path, tmp_path: Path) -> None:
    other = copied(run_dir, tmp_path / "other")
    regraded(run_dir)
    with patch("pipeline.analysis.relabel.checker_for", SlowChecker):
        regraded(other, GraderChange(answer_pattern="work (is)", processes=3))
    assert files(other) == files(run_dir)


class DyingChecker(MathChecker):
    """A checker that cannot start its child processes."""

    def __init__(self, config: MathConfig) -> None:
        super().__init__(config)
        self.asked = 0

    def quick(self, golds: tuple[str, ...], text: str, *, complete: bool = True) -> Grade | None:
        self.asked += 1
        if self.asked > 30:
            raise StoreError("no children")
        return super().quick(golds, text, complete=complete)


def test_a_failure_half_way_changes_nothing(run_dir: Path) -> None:
    own = labels(run_dir)
    with patch("pipeline.analysis.relabel.checker_for", DyingChecker), pytest.raises(StoreError, match="no children"):
        regraded(run_dir)
    assert labels(run_dir) == own
    assert sound(run_dir)
    assert regraded(run_dir).number == 0


@pytest.mark.nightly
@pytest.mark.slow
def test_programs_that_choose_to_be_late_become_wrong(tmp_path: Path) -> None:
    """A run from before the setting has no `grader.timeout_is`; it is the same as one with `ungraded`."""
    try:
        checker_for(grader_settings("code")).close()
    except StepvalueError as error:
        pytest.skip(str(error))
    texts = ["import time\ntime.sleep(60)", "def square(x):\n    return x * x"]
    rows: list[dict[str, object]] = [
        {"problem": "Square?", "answer": "assert square(2) == 4", "solution": f"```python\n{text}\n```"}
        for text in texts
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    late = ["grader=code", "grader.deadline_seconds=1", "grader.timeout_is=ungraded"]
    run_dir = labelled(tmp_path, *late)
    assert "grader.timeout_is" not in json.loads((run_dir / "run.json").read_text())
    assert {label["outcome"] for label in first_chains(LocalStorage(run_dir), 9)} == {None, True}
    regraded(run_dir, GraderChange(deadline_seconds=1.5))
    assert {label["outcome"] for label in first_chains(LocalStorage(run_dir), 9)} == {None, True}
    regraded(run_dir, GraderChange(timeout_is=TimeoutIs.wrong))
    assert {label["outcome"] for label in first_chains(LocalStorage(run_dir), 9)} == {False, True}
    assert sound(run_dir)
    assert regraded(run_dir, GraderChange(timeout_is=TimeoutIs.wrong)).number is None
    regraded(run_dir, GraderChange(timeout_is=TimeoutIs.ungraded))
    assert {label["outcome"] for label in first_chains(LocalStorage(run_dir), 9)} == {None, True}
    assert sound(run_dir)


def test_programs_are_run_again(tmp_path: Path) -> None:
    try:
        checker_for(grader_settings("code")).close()
    except StepvalueError as error:
        pytest.skip(str(error))
    program = "```python\ndef square(x):\n    return x * x\n```"
    suite = "assert square(2) == 4"
    write_rows(
        tmp_path / "rows.jsonl",
        [{"problem": "Square?", "answer": suite, "solution": text} for text in (program, program.replace("*", "-"))],
    )
    run_dir = labelled(tmp_path, "grader=code")
    own = labels(run_dir)
    done = regraded(run_dir, GraderChange(cpu_seconds=3.0))
    assert (done.number, done.verdicts_changed, done.labels_changed) == (0, 0, 0)
    assert labels(run_dir) == own
    assert {label["outcome"] for label in first_chains(LocalStorage(run_dir), 9)} == {True, False}
    assert sound(run_dir)
