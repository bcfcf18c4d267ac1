"""Outcomes that the data give count for solutions that state no answer, and for no others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from pipeline.analysis.audit import labels as audit_labels
from pipeline.analysis.chains import chosen
from pipeline.analysis.relabel import regrade
from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from pipeline.config.changes import RegradeConfig
from pipeline.config.label import Columns, DataConfig
from pipeline.config.score import ScoreConfig
from pipeline.core.errors import InputError, RunConflict
from pipeline.core.records import InputRow
from pipeline.core.tables import GIVEN_OUTCOME, INPUTS
from pipeline.export.result import CARD, result_lines
from pipeline.export.run import export
from pipeline.export.settings import ExportConfig
from pipeline.graders.settings import MathConfig
from pipeline.runtime.intake import LeftOutRows
from pipeline.runtime.scoring.task import ScoreTask
from pipeline.storage.units import noted_rows
from tests.conftest import run_stepvalue
from tests.runtime.growing import Row, assert_sound, audited, chains, label, labels
from tests.settings import GraderChange

pytestmark = pytest.mark.slow

READ = "data.columns.outcome=right"
SILENT = ["Let me see.", "I am done."]


def rows(*silent: object) -> list[Row]:
    """One chain that states a right answer which the data call wrong, and one without an answer per outcome of `silent`."""
    stated = {**chains(1)[0], "right": False}
    return [stated, *({**chains(n)[0], "steps": SILENT, "right": given} for n, given in enumerate(silent, start=2))]


def outcomes(folder: Path) -> dict[str, tuple[bool | None, bool, str]]:
    """Source id -> the outcome, whether an answer is stated, and the origin of the last step."""
    columns = labels(folder).select(
        "source_id", "outcome", pl.col("final_answer").is_not_null(), pl.col("origin").list.last()
    )
    return {source: (outcome, stated, origin) for source, outcome, stated, origin in sorted(columns.iter_rows())}


EXPECTED = {
    "1-1": (True, True, "terminal"),
    "2-1": (True, False, "terminal"),
    "3-1": (False, False, "terminal"),
    "4-1": (None, False, "measured"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("given")
    label(made, rows(True, 0, None), READ)
    return made


def test_a_stated_answer_is_graded_and_a_silent_chain_has_the_outcome_of_its_row(folder: Path) -> None:
    assert outcomes(folder) == EXPECTED
    last = {row["source_id"]: row["value"][-1] for row in labels(folder).to_dicts()}
    assert (last["2-1"], last["3-1"]) == (1.0, 0.0)
    assert_sound(folder)


def test_without_the_setting_nothing_is_read_or_stored_and_nothing_speaks_of_them(tmp_path: Path) -> None:
    label(tmp_path, rows(True, 0, None))
    assert [outcome for outcome, *_ in outcomes(tmp_path).values()] == [True, None, None, None]
    (staged,) = (tmp_path / "run" / "inputs").iterdir()
    assert pq.read_schema(staged).names == INPUTS.schema.names
    run_dir = str(tmp_path / "run")
    assert not [line for line in report(ReportConfig(run_dir=run_dir)) if "the data say" in line]
    done = export(ExportConfig(run_dir=run_dir, format="trl", out=str(tmp_path / "out")))
    assert not [line for line in result_lines(done) if "the data say" in line]
    assert "the data say" not in (tmp_path / "out" / CARD).read_text()


def test_inputs_have_the_column_only_where_a_row_gives_an_outcome(folder: Path, tmp_path: Path) -> None:
    (staged,) = (folder / "run" / "inputs").iterdir()
    assert pq.read_schema(staged).names == INPUTS.with_extra(GIVEN_OUTCOME).schema.names
    label(tmp_path, rows(None)[1:], READ)
    (staged,) = (tmp_path / "run" / "inputs").iterdir()
    assert pq.read_schema(staged).names == INPUTS.schema.names
    assert_sound(tmp_path)


def test_regrade_gives_the_same_to_chains_that_no_longer_state_an_answer(tmp_path: Path) -> None:
    stated, *silent = rows(True, 0, None)
    stated = {**stated, "steps": ["Well.", "That makes 3."]}
    label(tmp_path, [stated, *silent], READ, "grader.answer_pattern='makes (.)'")
    assert outcomes(tmp_path) == EXPECTED
    regrade(RegradeConfig(run_dir=str(tmp_path / "run"), grader=GraderChange(answer_pattern="work (is)")))
    assert outcomes(tmp_path) == EXPECTED | {"1-1": (False, False, "terminal")}
    assert_sound(tmp_path)


def test_an_audit_proves_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(rows: Sequence[InputRow], again: Mapping[str, int]) -> list[InputRow]:
        return [replace(row, given_outcome=not row.given_outcome) for row in noted_rows(rows, again)]

    monkeypatch.setattr(audit_labels, "noted_rows", other)
    faults = [finding.fault for finding in audited(folder).findings]
    assert len(faults) == 3
    assert all("states no answer, so its outcome is the one in the input" in fault for fault in faults)


def test_the_report_and_scoring_know_them(folder: Path) -> None:
    assert run_stepvalue(["report", f"run_dir={folder / 'run'}"]).returncode == 0
    assert "2 of them as the data say" in (folder / "run" / "report.html").read_text("utf-8")
    data = DataConfig(path=str(folder / "rows.jsonl"), columns=Columns(outcome="right"))
    config = ScoreConfig(out="none", data=data, grader=MathConfig())
    found = [outcome for table in ScoreTask(config).chains(LeftOutRows()) for outcome in table["outcome"].to_pylist()]
    assert found == [True, True, False, None]


def test_what_shows_outcomes_says_which_the_data_give(folder: Path, tmp_path: Path) -> None:
    run_dir, out = str(folder / "run"), tmp_path / "out"
    (said,) = (line for line in report(ReportConfig(run_dir=run_dir)) if line.startswith("given"))
    assert said == "given     2 of 4 chains state no answer: their outcomes are what the data say"
    done = export(ExportConfig(run_dir=run_dir, format="trl", out=str(out)))
    written = "2 chains of those written state no answer; their outcomes are what the data say"
    assert [line for line in result_lines(done) if written in line]
    assert f"Outcomes: {written}." in (out / CARD).read_text()
    shown = chosen(labels(folder), 4, None)
    for text in (str(shown), shown._repr_html_()):
        assert "2-1 (right, as the data say)" in text
        assert "3-1 (wrong, as the data say)" in text
        assert "1-1 (right)" in text
        assert text.count("as the data say") == 2


def test_one_chain_with_two_outcomes_is_labelled_once_and_reported(tmp_path: Path) -> None:
    _, silent = rows(True)
    label(tmp_path, [silent, {**silent, "id": "again", "right": False}, {**silent, "id": "same"}], READ)
    assert outcomes(tmp_path) == {"2-1": (True, False, "terminal")}
    rejects = pl.read_parquet(tmp_path / "run" / "rejects" / "*.parquet").sort("line")
    assert rejects["reason"].to_list() == ["duplicate", "duplicate"]
    assert ["with another outcome, are at" in detail for detail in rejects["detail"]] == [True, False]


def benched(*silent: object) -> list[Row]:
    """Rows of ProcessBench."""
    return [{**row, "final_answer_correct": row["right"]} for row in rows(*silent)]


def test_a_run_that_reads_no_outcomes_reads_none_later(tmp_path: Path) -> None:
    """It goes on, grows and is mended without outcomes, which ProcessBench gives by its own column."""
    label(tmp_path / "with", benched(True, 0, None), "data=processbench")
    assert outcomes(tmp_path / "with") == EXPECTED
    settings = ("data=processbench", "data.columns.outcome=''")
    label(tmp_path, benched(True, 0, None), *settings)
    with pytest.raises(RunConflict, match=r'data.columns.outcome was "", now "final_answer_correct"'):
        label(tmp_path, benched(True, 0, None, True), "data=processbench")
    (staged,) = (tmp_path / "run" / "inputs").iterdir()
    staged.write_bytes(staged.read_bytes()[:-9])
    label(tmp_path, benched(True, 0, None, True), *settings)
    assert [outcome for outcome, *_ in outcomes(tmp_path).values()] == [True, None, None, None, None]
    assert_sound(tmp_path)


@pytest.mark.parametrize(
    ("now", "refused"),
    [((True, 0, None), False), ((True, 0, True), False), ((True, True, None), True), ((None, 0, None), True)],
)
def test_an_outcome_that_changes_is_refused_and_one_that_is_new_is_not(
    tmp_path: Path, now: Sequence[object], refused: bool
) -> None:
    label(tmp_path, rows(True, 0, None), READ)
    grown = [*rows(*now), *chains(9)]
    grown[-1]["right"] = None
    if refused:
        with pytest.raises(InputError, match=r"rows.jsonl:\d has another outcome|another outcome"):
            label(tmp_path, grown, READ)
    else:
        label(tmp_path, grown, READ)
        assert outcomes(tmp_path) == EXPECTED | {"9-1": (True, True, "terminal")}
        assert_sound(tmp_path)
