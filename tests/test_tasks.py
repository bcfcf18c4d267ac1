"""A plug-in's kind of run has a command, with help, completion, settings, an estimate and errors, and a Python door."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import open_run
from pipeline.__main__ import main
from pipeline.core.errors import UsageError
from tests.plugin.installed import distribution, installed
from tests.runtime.without_ray import python_without_ray

pytestmark = pytest.mark.slow
POINTS = {"stepvalue.tasks": {"count": "tests.plugin.steps:COUNT", "lost": "tests.plugin.steps:LOST"}}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with installed(distribution(tmp_path / "site", "stepvalue-steps", "1.0", POINTS)), python_without_ray():
        yield


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("tasks") / "run")
    with python_without_ray():
        assert main(["label", "data=sample", "policy=lab", "sampling.rollouts=2", f"run_dir={folder}"]) == 0
    return folder


def test_a_task_has_a_command(run_dir: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    chains = open_run(run_dir).labels().height
    capsys.readouterr()
    for words, said in {
        "-h": "  count       count the chains of a run\n",
        "count -h": "longest=100     The most steps that a chain may have.",
        "count --help-all": "  run.unit_problems = ",
        "count run_dir=x --cfg job": "longest: 100\n",
        f"count run_dir={run_dir} --estimate": f"{chains} chains to count\n",
        f"count run_dir={run_dir} longest=99": f"of at most 99 steps\nthis start: {chains} chains in 0:00:02, 41.0 chains/s",
        "__complete cou": "count\tcount the chains of a run\n",
        "__complete count long": "longest=\tThe most steps",
    }.items():
        assert main(words.split()) == 0
        assert said in capsys.readouterr().out, words
    own = tmp_path / "own" / "mine.yaml"
    own.parent.mkdir()
    own.write_text(f"run_dir: {run_dir}\nlongest: 98\n")
    assert main(["count", "--config-dir", "own", "--config-name", "mine"]) == 0
    assert "at most 98 steps" in capsys.readouterr().out
    for words, why in {
        "count": "run_dir is not set: give run_dir=...",
        "count run_dir=x longst=3": "there is no setting longst: did you mean longest?",
        f"count run_dir={run_dir} longest=0": "longest=0: a chain has more steps",
        "lost run_dir=x": "task lost of stepvalue-steps 1.0 (stepvalue.tasks: lost = tests.plugin.steps:LOST) cannot",
        "cuont": "there is no command 'cuont': did you mean count?",
    }.items():
        assert main(words.split()) == 2
        assert why in capsys.readouterr().err, words


def test_a_task_has_a_python_door(run_dir: str) -> None:
    run = open_run(run_dir)
    assert run.do("count", longest=50, progress=False).totals.chains == run.labels().height
    with pytest.raises(UsageError, match="longest=0: a chain has more steps"):
        run.do("count", longest=0, progress=False)
    with pytest.raises(
        UsageError, match=r"do: 'status' is no command that has workers: choose from label, grow, judge, .*count"
    ):
        run.do("status")
