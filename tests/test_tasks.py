"""A plug-in's kind of run: its command with help, completion, settings, estimate, resume and errors, its call from Python, and
its audit."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest

from pipeline import open_run
from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from pipeline.config.label import RunConfig
from pipeline.core.errors import EngineDied, PluginError, UsageError
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.estimate import estimate
from pipeline.storage.tasks import OURS, TASKS
from tests.plugin.count_tokens import CountTokens, CountTokensConfig, StepTokens
from tests.plugin.installed import distribution, installed
from tests.plugin.wrong_tasks import AT_WORK, UNUSABLE
from tests.runtime.in_process import done_here
from tests.runtime.without_ray import python_without_ray

pytestmark = pytest.mark.slow
MODULE = "tests.plugin.count_tokens"
OTHERS = ("killer", "stillborn", "speechless", "blind", "status")
POINTS = {"count_tokens": f"{MODULE}:CountTokens", "lost": f"{MODULE}:LOST"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    wrong = {name: f"tests.plugin.wrong_tasks:{name}" for name in (*UNUSABLE, *AT_WORK, *OTHERS)}
    points = {"stepvalue.tasks": {**POINTS, **wrong}}
    with installed(distribution(tmp_path / "site", "stepvalue-tokens", "1.0", points)), python_without_ray():
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
    assert run.frame("labels").equals(run.labels())
    assert run.frame("critiques").is_empty()
    with pytest.raises(UsageError, match=r"a run has no table 'label': did you mean labels\?"):
        run.frame("label")
    with pytest.raises(UsageError, match=r"do: 'score' is no command of a plug-in: .*count_tokens"):
        run.do("score")
    with pytest.raises(UsageError, match=r"estimate: a call does its work: .* stepvalue count_tokens --estimate"):
        run.do("count_tokens", estimate=True)


def test_a_task_that_cannot_be_used_says_why_and_stops_nobody(run_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    for name, (_, said) in UNUSABLE.items():
        assert main([name, f"run_dir={run_dir}"]) == 2
        error = capsys.readouterr().err
        assert f"task {name} of stepvalue-tokens 1.0 (stepvalue.tasks: {name} = " in error
        assert said in error
    assert main(["-h"]) == main(["audit", f"run_dir={run_dir}"]) == 0
    shown = capsys.readouterr().out
    assert "count_tokens" in shown
    assert "nameless" not in shown
    assert shown.count("  status  ") == 1
    for more in ("", " --estimate"):
        assert main(["stillborn", f"run_dir={run_dir}{more}"]) == 1
        error = capsys.readouterr().err
        assert "task stillborn of stepvalue-tokens 1.0 " in error
        assert error.endswith("failed in __init__: ValueError: no\n")
    assert main(["speechless", f"run_dir={run_dir}"]) == 1
    assert capsys.readouterr().err.endswith("failed in lines: ValueError: no words\n")
    assert main(["blind", f"run_dir={run_dir}"]) == 0
    assert main(["audit", f"run_dir={run_dir}"]) == 1
    shown = capsys.readouterr().out
    assert "failed in faults: KeyError: 'eye'" in shown
    assert "rollout" in shown


@pytest.mark.parametrize("name", AT_WORK)
def test_rows_that_are_wrong_end_the_run(run_dir: str, name: str) -> None:
    task = TASKS.load(name)(CountTokensConfig(run_dir=run_dir))
    with pytest.raises(PluginError) as error:
        done_here(task)
    assert f"{name} = tests.plugin.wrong_tasks:{name}) failed in rows of chain " in str(error.value)
    assert AT_WORK[name][1] in str(error.value)


def test_a_chain_that_kills_workers_ends_the_run(run_dir: str) -> None:
    task = TASKS.load("killer")(CountTokensConfig(run_dir=run_dir, run=RunConfig(attempts=2)))
    with pytest.raises(
        PluginError, match=r"task killer of stepvalue-tokens 1\.0 .* kills workers at chain [0-9a-f]{20}"
    ):
        done_here(task)


def test_no_task_has_the_name_of_a_command() -> None:
    assert COMMANDS.keys() == OURS
    with pytest.raises(UsageError, match="or is that of another folder of a run or of a command"):
        TASKS.load("status")


def test_another_version_of_a_task_is_not_audited(
    run_dir: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["count_tokens", f"run_dir={run_dir}"]) == 0
    capsys.readouterr()
    newer = distribution(tmp_path / "newer", "stepvalue-tokens", "1.1", {"stepvalue.tasks": POINTS})
    with installed(newer):
        assert main(["audit", f"run_dir={run_dir}/count_tokens"]) == 1
    assert "of stepvalue-tokens 1.1 " in capsys.readouterr().out


def test_a_chain_may_have_no_rows(run_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    class OddRows(CountTokens):
        def rows(self, row: int, chain: ChainText) -> list[StepTokens]:
            return [*super().rows(row, chain)] if row % 2 else []

    chains = open_run(run_dir).labels().height
    task = OddRows(CountTokensConfig(run_dir=run_dir))
    found = done_here(task)
    assert found.tally["chains"] == found.added["chains"] == chains
    assert set(open_run(run_dir).frame("count_tokens")["row"] % 2) == {1}
    capsys.readouterr()
    assert main(["status", f"run_dir={run_dir}/count_tokens"]) == 0
    assert f" results of {chains} chains\n" in capsys.readouterr().out
    assert main(["audit", f"run_dir={run_dir}/count_tokens"]) == 1
    assert "has not one row for each step" in capsys.readouterr().out


def test_what_an_engine_does_not_answer_any_more_is_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    work = CountTokens(CountTokensConfig(run_dir="x")).work(Surroundings(cpus=1))

    async def dying(_: object) -> AsyncIterator[dict[int, object]]:
        yield {}
        raise EngineDied("gone")

    monkeypatch.setattr(work, "results", dying)
    asyncio.run(work.start())
    with pytest.raises(EngineDied):
        asyncio.run(work.add_results(Mock(unit_id="1" * 20), {0: Mock(), 1: Mock()}))
    assert work.backpressure.outstanding == 0


def test_an_estimate_does_not_count_the_first_chain(run_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, costs = [0.0], chain([1000.0], repeat(1.0))

    class Slow(CountTokens):
        def rows(self, row: int, chain: ChainText) -> list[StepTokens]:
            clock[0] += next(costs)
            return [*super().rows(row, chain)]

    monkeypatch.setattr("pipeline.runtime.chain_run.estimate.time", Mock(monotonic=lambda: clock[0]))
    found = estimate(Slow(CountTokensConfig(run_dir=run_dir)))
    assert found.sampled - 10 < found.seconds_of_sample < found.sampled + 10
    assert len(found.column(CountTokens.table.name, "row")) > found.sampled
