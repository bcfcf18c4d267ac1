"""What verifiers found, beside the steps on the page, and no figure of values where no rollout was graded."""

from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.analysis.report.run import report
from pipeline.analysis.report.run_data import rejected_rows
from pipeline.analysis.settings import ReportConfig
from pipeline.config.check import CheckRunConfig
from pipeline.storage.location import storage_at
from tests.conftest import write_rows
from tests.export.known_runs import ungraded_run
from tests.library import Library
from tests.report.reader import IMAGE, Reader
from tests.runtime.checking.runs import QUICK, checked, settings
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label

pytestmark = pytest.mark.slow

STEPS = ["Let us begin.", "2 + 3 = 6.", "4 + 4 = 8, so the answer is 6."]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("findings-page")
    rows: list[dict[str, object]] = [
        {
            "problem": f"{IMAGE} {number}",
            "answer": "5",
            "steps": STEPS if number else [*STEPS, "wrong"],
            "id": f"sum-{number}",
        }
        for number in range(3)
    ]
    run_dir = folder / "run"
    path = write_rows(folder / "rows.jsonl", rows)
    label_in_process(compose_label([f"data.path={path}", f"run_dir={run_dir}", "policy=oracle", "estimator=fixed"]))
    checked(CheckRunConfig(run_dir=str(run_dir), checks=["arithmetic"], processes=1, run=QUICK))
    checked(settings(run_dir))
    report(ReportConfig(run_dir=str(run_dir), out=str(folder / "page.html")))
    return folder / "page.html"


def test_the_evidence_stands_beside_the_step(reader: Reader) -> None:
    reader.opened("sum-1")
    found = reader.texts(".finding")
    assert [text.split(":")[0] for text in found] == ["arithmetic refuted", "arithmetic holds in part"]
    assert "2 + 3 is 5, not 6" in found[0]
    assert [text.split(":")[0] for text in reader.texts(".tree-row.step:nth-child(3) .finding")] == [
        "arithmetic refuted"
    ]
    assert reader.texts(".finding.accuses")[0].startswith("arithmetic refuted: ")


def test_evidence_with_markup_is_text(reader: Reader) -> None:
    reader.opened("sum-0")
    assert f"obedient refuted: {IMAGE} 0" in reader.texts(".finding")
    assert reader.driver.title != "owned"


Printed = pytest.CaptureFixture[str]


@pytest.mark.parametrize("estimator", ["pooled", "fixed", "first_success"])
def test_a_run_without_graded_rollouts_has_no_figure_of_values(estimator: str, tmp_path: Path, capsys: Printed) -> None:
    run_dir = ungraded_run(tmp_path, "sampling.rollouts=4", f"estimator={estimator}")
    assert main(["report", f"run_dir={run_dir}", f"out={tmp_path / 'page.html'}"]) == 0
    shown = capsys.readouterr().out
    assert "\nvalues " not in shown
    assert "mean value" not in shown
    assert "12 uncertain (100 %)" in shown
    assert "no value rests on a rollout" in shown
    page = (tmp_path / "page.html").read_text()
    assert ">Mean value<" not in page
    assert "Labelled steps" in page
    assert main(["status", f"run_dir={run_dir}"]) == 0
    assert "nan" not in capsys.readouterr().out


def test_a_graded_run_has_them(library: Library, tmp_path: Path, capsys: Printed) -> None:
    run_dir = library.copy("pooled", tmp_path)
    assert main(["report", f"run_dir={run_dir}", f"out={tmp_path / 'page.html'}"]) == 0
    assert "mean value" in capsys.readouterr().out
    assert ">Mean value<" in (tmp_path / "page.html").read_text()


def test_a_run_without_a_finished_unit_has_counts_of_nothing_else(
    library: Library, tmp_path: Path, capsys: Printed
) -> None:
    run_dir = library.copy("mixed", tmp_path)
    for record in (run_dir / "commits").glob("unit-*"):
        record.unlink()
    for command in ("status", "report"):
        assert main([command, f"run_dir={run_dir}"]) == 0
        shown = capsys.readouterr().out
        assert not {"values", "rule", "rule:"} & set(shown.split())
        assert "nan" not in shown
        assert "0.00" not in shown.replace("0.000", "")


def test_the_first_rejects_are_those_of_the_input_in_its_order(library: Library, tmp_path: Path) -> None:
    found = rejected_rows(storage_at(str(library.copy("mixed", tmp_path))), 3)
    assert found.counts == {"missing_problem": 1, "context": 1}
    assert [(row.location.line, row.reason) for row in found.first] == [(9, "missing_problem"), (7, "context")]
    assert all(row.detail and row.location.file.endswith("rows.jsonl") for row in found.first)
    assert len(rejected_rows(storage_at(str(tmp_path / "run")), 1).first) == 1
