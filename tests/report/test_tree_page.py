"""`report tree=PROBLEM`: where the page of a problem's rollout tree is, and what is in it."""

import base64
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.analysis.report.run import report
from pipeline.analysis.settings import ReportConfig
from pipeline.analysis.trees.data import MOST_NODES, trees_json
from pipeline.analysis.trees.files import is_tree_page, tree_page
from pipeline.config.changes import AuditConfig
from pipeline.core.errors import UsageError
from pipeline.storage.stored_trees import ProblemTree
from tests.runtime.adaptive import labels, settings, sums
from tests.runtime.in_process import label_in_process
from tests.searches.handmade import Ended, Searched, search_run
from tests.trees.growing import chain, grown, rollout

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    rows = sums(3, 2)
    for row in rows[:2]:
        row["problem"] = "What is <i>3 + 3</i> + 1?"
    label_in_process(settings(folder, rows, "estimator=fixed", "run.unit_problems=2"))
    return folder


@pytest.fixture
def folder(labelled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(labelled, tmp_path / "copy"))


def written(folder: Path, tree: str, **other: Any) -> list[str]:
    return report(ReportConfig(run_dir=str(folder / "run"), tree=tree, **other))


def data_of(page: Path) -> dict[str, Any]:
    (found,) = re.findall(r'id="trees-data">([^<]*)<', page.read_text("utf-8"))
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found)))
    return data


def test_the_page_is_in_the_run_directory_under_the_id_of_the_problem(folder: Path) -> None:
    row = labels(folder).filter(source_id="3-0").row(0, named=True)
    before = (folder / "run" / "report.html").exists()
    lines = written(folder, "3-1")
    page = folder / "run" / f"tree-{row['problem_id']}.html"
    assert lines[-1] == f"report    {page.as_uri()}"
    assert re.fullmatch(r"tree      \d+ steps of \d+ rollouts and the chains", lines[0])
    assert (folder / "run" / "report.html").exists() == before
    data = data_of(page)
    assert (data["problem"], data["gold"], data["id"]) == (row["problem"], row["gold_answer"], row["problem_id"])
    assert data["sources"] == ["3-0", "3-1"]
    (tree,) = data["trees"]
    at = tree["texts"].index(row["steps"][0])
    assert tree["values"][at] == round(row["value"][0], 3)
    assert "<i>" not in page.read_text("utf-8")
    assert 'class="banner"' in page.read_text("utf-8"), "the policy is the oracle"
    assert written(folder, row["problem"])[-1] == lines[-1]
    out = folder / "tree.html"
    assert written(folder, row["problem_id"], out=str(out))[-1] == f"report    {out.as_uri()}"
    assert data_of(out) == data


def test_an_audit_knows_the_page(folder: Path) -> None:
    written(folder, "3-1")
    found = audit(AuditConfig(run_dir=str(folder / "run")))
    assert not found.findings
    assert not found.orphans.foreign
    (folder / "run" / "tree-of mine.html").write_text("mine")
    assert audit(AuditConfig(run_dir=str(folder / "run"))).orphans.foreign == ("tree-of mine.html",)


def test_a_name_of_a_page_has_no_text_of_a_problem() -> None:
    assert is_tree_page(tree_page("972877002fa905030c7a"))
    assert not is_tree_page(tree_page("../a"))
    assert not is_tree_page("report.html")


def test_what_cannot_be_shown_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no labelled problem 'nothing'"):
        written(folder, "nothing")
    with pytest.raises(UsageError, match="the page of a tree has no plan"):
        written(folder, "3-1", planned="plan.json")
    with pytest.raises(ValueError, match=r"tree=.*null with two run directories"):
        ReportConfig(run_dir=["a", "b"], tree="3-1")
    with pytest.raises(ValueError, match=r"tree=' '.*the id of a row, a problem_id or the text of a problem"):
        ReportConfig(run_dir="a", tree=" ")
    searched = search_run(tmp_path / "search", [Searched(problem="one", candidates=[Ended()], chosen=0)])
    with pytest.raises(UsageError, match="the report of a run of `search` has the tree of each problem"):
        report(ReportConfig(run_dir=str(searched), tree="one"))


def test_a_name_of_several_problems_is_refused(tmp_path: Path) -> None:
    rows = sums(2, 1)
    rows[0]["id"] = rows[1]["problem"] = "same"
    label_in_process(settings(tmp_path, rows))
    with pytest.raises(UsageError, match="tree=same: 2 problems have that name: give the problem_id of one, such as"):
        written(tmp_path, "same")


def test_the_command_prints_where_the_page_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", f"run_dir={folder / 'run'}", "tree=4-0"]) == 0
    assert "/tree-" in capsys.readouterr().out


def test_a_page_has_the_steps_with_the_most_rollouts_and_cuts_long_texts() -> None:
    log = [rollout("a", f"s{number % 7_000}\n{'x' * 3_000}", number=number) for number in range(7_100)]
    found = ProblemTree(
        problem="y" * 5_000, gold_answer="7", source_ids=tuple("abcdefg"), tree=grown([chain("a", "7")], log)
    )
    data = json.loads(trees_json([found], 1.0))
    (tree,) = data["trees"]
    assert len(tree["parents"]) == len(tree["texts"]) == len(tree["issued"]) == MOST_NODES
    assert tree["steps"] == 14_002
    assert tree["hidden"] == 14_003 - MOST_NODES
    assert all(parent < place for place, parent in enumerate(tree["parents"]))
    assert {f"s{number}" for number in range(100)} <= set(tree["texts"])
    assert max(map(len, tree["texts"])) < 2_100
    assert data["problem"].endswith(" ... (5,000 characters)")
    assert (data["sources"], data["more"]) == (list("abcde"), 2)
