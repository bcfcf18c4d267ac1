"""The README of searches has one command for each method, and each of them runs."""

import re
import shlex

import pytest

from pipeline import open_search
from pipeline.__main__ import main
from pipeline.searches.registry import SEARCHES
from tests.conftest import ROOT
from tests.runtime.without_ray import search_without_ray

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
    with search_without_ray():
        assert main([*words, "data.limit=2"]) == 0
    printed = capsys.readouterr()
    assert "warning" not in printed.err
    (run_dir,) = [word.partition("=")[2] for word in words if word.startswith("run_dir=")]
    run = open_search(run_dir)
    assert run.settings["search.method"] == method
    assert run.searches()["chosen"].null_count() == 0
