"""What verifiers found, beside the steps on the page."""

from pathlib import Path

import pytest

from pipeline.__main__ import compose_label
from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from pipeline.config.check import CheckRunConfig
from tests.conftest import write_rows
from tests.report.reader import IMAGE, Reader
from tests.runtime.checking.runs import QUICK, checked, settings
from tests.runtime.in_process import label_in_process

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
    assert [text.split(":")[0] for text in reader.texts(".step:nth-child(3) .finding")] == ["arithmetic refuted"]
    assert reader.texts(".finding .opinion.accuses") == ["arithmetic refuted: "]


def test_evidence_with_markup_is_text(reader: Reader) -> None:
    reader.opened("sum-0")
    assert f"obedient refuted: {IMAGE} 0" in reader.texts(".finding")
    assert reader.driver.title != "owned"
