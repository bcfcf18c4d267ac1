"""The README of searches has one command for each method, and each of them runs."""

import re
import shlex
from pathlib import Path

import pytest

from pipeline import open_search
from pipeline.__main__ import main
from pipeline.searches.registry import SEARCHES
from tests.conftest import ROOT
from tests.runtime.without_ray import without_ray

pytestmark = pytest.mark.slow

README = (ROOT / "pipeline" / "searches" / "README.md").read_text("utf-8")
(BLOCK,) = [block for block in re.findall(r"```\n(.*?)```", README, re.DOTALL) if "search=dvts" in block]
COMMANDS = {
    found[1]: shlex.split(line.removeprefix("python -m pipeline "))
    for line in BLOCK.replace("\\\n", " ").splitlines()
    if (found := re.search(r"search=(\w+)", line))
}


def test_every_method_has_a_command() -> None:
    assert list(COMMANDS) == list(SEARCHES.ours)


@pytest.mark.parametrize("method", COMMANDS)
def test_the_command_of_a_method_runs(
    method: str, tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(str(tmp_path))
    words = COMMANDS[method]
    with without_ray():
        assert main([*words, "data.limit=2"]) == 0
    printed = capsys.readouterr()
    assert "warning" not in printed.err
    (run_dir,) = [word.partition("=")[2] for word in words if word.startswith("run_dir=")]
    run = open_search(run_dir)
    assert run.settings["search.method"] == method
    assert run.searches()["chosen"].null_count() == 0
    page = Path(run_dir) / "report.html"
    assert page.stat().st_size
    assert f"report: {page.resolve().as_uri()}\n" in printed.out


def test_a_page_is_written_again_only_for_new_problems_and_only_where_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words, page = COMMANDS["majority"], tmp_path / "tries" / "majority" / "report.html"

    def run(*more: str) -> str:
        with without_ray():
            assert main([*words, *more]) == 0
        return capsys.readouterr().out

    assert "report: " not in run("data.limit=2", "run.report=false")
    assert not page.exists()
    run("data.limit=2")
    page.write_text("mine")
    run("data.limit=2")
    assert page.read_text() == "mine"
    run("data.limit=3")
    assert '<h2>Problems</h2><p class="value">2</p>' in page.read_text("utf-8")
