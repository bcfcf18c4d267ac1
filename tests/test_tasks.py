"""A plug-in's kind of run: its command with help, completion, settings, estimate, resume and errors, its call from Python, and
its audit."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from pipeline import open_run
from pipeline.__main__ import main
from pipeline.core.errors import UsageError
from tests.plugin.installed import distribution, installed
from tests.runtime.without_ray import python_without_ray

pytestmark = pytest.mark.slow
MODULE = "tests.plugin.count_tokens"
POINTS = {"stepvalue.tasks": {"count_tokens": f"{MODULE}:CountTokens", "lost": f"{MODULE}:LOST"}}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with installed(distribution(tmp_path / "site", "stepvalue-tokens", "1.0", POINTS)), python_without_ray():
        yield


@pytest.fixture
def run_dir(tmp_path: Path) -> str:
    folder = str(tmp_path / "run")
    with python_without_ray():
        assert main(["label", "data=sample", "policy=lab", "sampling.rollouts=2", f"run_dir={folder}"]) == 0
    return folder


def test_a_task_has_a_command(run_dir: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    labels = open_run(run_dir).labels()
    steps = labels["steps"].list.len().sum()
    capsys.readouterr()
    for words, said in {
        "-h": "  count_tokens  count the tokens of each step\n",
        "count_tokens -h": "tokenizer=characters",
        "count_tokens --help-all": "  run.unit_problems = ",
        "count_tokens run_dir=x --cfg job": "tokenizer: characters\n",
        f"count_tokens run_dir={run_dir} --estimate": f"{labels.height} chains with {steps} steps to count by count_tokens\n",
        f"count_tokens run_dir={run_dir}": f"count_tokens: {steps} rows of {labels.height} chains: {run_dir}/count_tokens\n",
        f"count_tokens run_dir={run_dir} cluster.workers=1": "nothing to do: all chains are done\n",
        "__complete count_t": "count_tokens\tcount the tokens of each step",
        "__complete count_tokens token": "tokenizer=\tThe name or the folder of a tokenizer",
        f"audit run_dir={run_dir}/count_tokens": "nothing is wrong",
        f"audit run_dir={run_dir}": "the run and its 1 task are finished",
        f"status run_dir={run_dir}/count_tokens": f"count_tokens {steps} results of {labels.height} chains\n",
        f"status run_dir={run_dir}": f"tasks     count_tokens: finished, {steps} results of {labels.height} chains (",
    }.items():
        assert main(words.split()) == 0, words
        assert said in capsys.readouterr().out, words
    own = tmp_path / "own" / "mine.yaml"
    own.parent.mkdir()
    own.write_text(f"run_dir: {run_dir}\n")
    assert main(["count_tokens", "--config-dir", "own", "--config-name", "mine"]) == 0
    capsys.readouterr()
    for words, why in {
        "count_tokens": "run_dir is not set: give run_dir=...",
        "count_tokens run_dir=x tokeniser=3": "there is no setting tokeniser: did you mean tokenizer?",
        f"count_tokens run_dir={run_dir} tokenizer=other": 'count_tokens.tokenizer was "characters", now "other"',
        "lost run_dir=x": "task lost of stepvalue-tokens 1.0 (stepvalue.tasks: lost = tests.plugin.count_tokens:LOST) cannot",
        "count_toknes": "there is no command 'count_toknes': did you mean count_tokens?",
    }.items():
        assert main(words.split()) != 0, words
        assert why in capsys.readouterr().err, words


def test_a_task_has_a_call_from_python(run_dir: str) -> None:
    run = open_run(run_dir)
    found = run.do("count_tokens", progress=False)
    steps = run.labels().select(pl.col("steps").explode())
    assert run.frame("count_tokens")["n_tokens"].to_list() == steps["steps"].str.len_chars().to_list()
    assert found.tally["results"] == steps.height
    with pytest.raises(
        UsageError, match=r"do: 'status' is no command that has workers: choose from label, .*count_tokens"
    ):
        run.do("status")
