"""`label` from Python, on a real run with the oracle: what it gives, refuses, and leaves where it is interrupted."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pipeline
import stepvalue
from pipeline.__main__ import main
from pipeline.analysis.report import run_report
from pipeline.core.errors import RunInterrupted
from pipeline.core.progress import Status
from pipeline.python.overrides import overrides_of, settings_in
from pipeline.python.process import Task, done_elsewhere
from pipeline.storage.location import storage_at
from stepvalue import InputError, Run, RunConflict, UsageError, label, open_run
from tests.conftest import ROOT, write_rows
from tests.faults.runs import until
from tests.python.calls import INPUT, QUICK, ROWS
from tests.runtime.without_ray import python_without_ray

pytestmark = pytest.mark.slow

SLOW = "policy.lab.tokens_per_second"


def test_the_frames_hold_what_the_run_made(run: Run) -> None:
    totals = run.summary.totals
    assert (len(run.labels()), len(run.rollouts()), len(run.rejects())) == (6, totals.rollouts, 1)
    assert totals.rollouts == 8 * totals.prefixes
    assert run.labels()["source_id"].to_list() == [row["id"] for row in ROWS]
    assert run.rejects()["reason"].to_list() == ["missing_answer"]
    assert run.finished
    assert "finished" in repr(run)
    assert run.settings["sampling.temperature"] == 1.0


def test_lazy_frames_hold_the_same(own: Run) -> None:
    run_dir = Path(own.run_dir)
    (run_dir / "labels").rename(run_dir / "aside")  # as a kill leaves them that came before they were moved
    for eager, lazy in (
        (own.labels(), own.labels(lazy=True)),
        (own.rollouts(), own.rollouts(lazy=True)),
        (own.rejects(), own.rejects(lazy=True)),
    ):
        assert isinstance(lazy, pl.LazyFrame)
        assert lazy.collect().to_dicts() == eager.to_dicts()


def test_the_command_line_makes_the_same_labels(run: Run, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.jsonl", INPUT)
    settings = ["policy=oracle", "estimator=fixed", "sampling.rollouts=8", "run.report=false"]
    assert main(["label", f"data.path={data}", f"run_dir={tmp_path / 'run'}", *settings]) == 0
    assert open_run(tmp_path / "run").labels().equals(run.labels())


def test_other_settings_on_the_same_directory_are_refused_as_on_the_command_line(run: Run) -> None:
    with pytest.raises(RunConflict, match=r"sampling\.temperature was 1\.0, now 0\.5"):
        label(INPUT, run_dir=run.run_dir, **QUICK | {"sampling.temperature": 0.5})


def test_chains_are_shown(run: Run) -> None:
    assert len(run.show(2)) == 2
    wrong = run.show(10, where="NOT outcome")
    assert [row["source_id"] for row in wrong.rows] == ["0-wrong", "1-wrong", "2-wrong"]
    assert "What is 1 + 1 + 1?" in str(wrong)
    assert "The answer is 3." in wrong._repr_html_()


def test_the_commands_that_read_a_run(run: Run, own: Run, tmp_path: Path) -> None:
    exported = own.export("trl", tmp_path / "trl")
    assert exported.chains == 6
    assert repr(exported).startswith("train.jsonl       6 rows, 3 problems, ")
    assert f"\n{tmp_path / 'trl'}" in repr(exported)
    assert "in the run = " in repr(exported)
    assert not set(own.labels()["problem_id"]) & set(re.findall(r"\w+", repr(exported)))
    preferred = own.export({"name": "preference", "margin": 0.01}, tmp_path / "pairs")
    assert preferred.out == str(tmp_path / "pairs")
    audited = repr(own.audit()).splitlines()
    assert audited[0].startswith("settings   1 record")
    assert audited[-1] == "sound      the run is finished and nothing is wrong"
    relabelled = own.relabel(**{"estimator.rule": "threshold", "estimator.threshold": 0.6})
    assert relabelled.chains == 6
    assert own.labels()["p_above"].to_list() != run.labels()["p_above"].to_list()
    assert Path(own.report()).is_file()


def test_the_code_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second, third, tree, searching = re.findall(
        r"```python\n(.*?)```", (ROOT / "pipeline/python/README.md").read_text(), re.DOTALL
    )
    names: dict[str, Any] = {}
    # The first block asks for the embedded model.
    exec(first.partition("run = ")[0] + second, names)
    assert len(names["run"].labels()) == 1
    assert names["run"].settings["sampling.temperature"] == 0.8
    exec(third, names)
    exec(tree, names)
    assert names["tree"].nodes["step"].to_list()[:3] == [None, "3 * 4 = 12.", "The answer is 12."]
    assert names["run"].settings["estimator.share"] == 0.25
    exec(searching, names)
    assert names["solved"].trusted is not None
    assert names["run"].searches()["method"].to_list() == ["mcts"]


def test_rejected_rows_are_reported_by_their_number_in_the_call(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label(INPUT, run_dir=run.run_dir, **QUICK)
    shown = capsys.readouterr()
    assert shown.out == ""
    first, second, third = shown.err.splitlines()
    assert first == "rejected  1 missing_answer; rows are counted from 1"
    assert second.strip().startswith("row 7: missing_answer: The row has no value in a column 'answer'")
    assert third.strip() == f"all of them with what to do: {run.run_dir}/rejects/*.parquet"
    assert run.rejects()["file"].to_list() == [""]
    assert run.rejects()["line"].to_list() == [7]
    assert first in repr(run)
    twice = [*ROWS[:2], ROWS[0], {**ROWS[1], "id": ROWS[0]["id"]}]
    details = label(twice, run_dir=tmp_path / "twice", **QUICK).rejects()["detail"]
    assert "are at row 1;" in details[0]
    assert "at row 1: make ids unique" in details[1]
    changed = [{**ROWS[0], "problem": "x"}, *INPUT[1:]]
    with pytest.raises(InputError, match=r"\n  row 1 changed: the present row 1 has another problem\n"):
        label(changed, run_dir=run.run_dir, **QUICK)
    with pytest.raises(InputError, match="none of the 1 rows can be used: row 1: The row has no value") as raised:
        label(INPUT[-1:], run_dir=tmp_path / "none", **QUICK)
    assert "/tmp" not in str(raised.value).replace(str(tmp_path), "")


def test_a_run_is_shown_by_its_important_lines(run: Run, tmp_path: Path) -> None:
    lines = repr(run).splitlines()
    assert lines[0] == f"Run({run.run_dir!r}, finished)"
    words = {line.split(maxsplit=1)[0]: line for line in lines[1:] if not line.startswith(" ")}
    assert words["rows"] == "rows      7 read = 6 used + 1 rejected"
    assert words["work"] == "work      3 problems, 6 chains, 12 distinct prefixes"
    assert words["tokens"] == f"tokens    {run.summary.totals.tokens:,} in rollouts"
    assert "made up" in words["policy"]
    assert re.fullmatch(r"steps     12 = \d+ good \+ \d+ bad; not counted: 6 last steps of chains, .*", words["steps"])
    assert words["labels"] == f"labels    {run.run_dir}/labels/*.parquet"
    # The report counts the same.
    assert words["steps"] in run_report.read_run(storage_at(run.run_dir), None).short


def test_what_a_notebook_shows_of_a_run_is_text(tmp_path: Path) -> None:
    rows = [*ROWS[:2], {"problem": "1 + 1?", "answer": "<script>\x1b[31m"}]
    run = label(rows, run_dir=tmp_path / "<b>", **QUICK)
    html = run._repr_html_()
    assert html.startswith("<pre")
    assert html.count("<") == 2
    assert "&lt;script&gt;" in html
    assert "\x1b" not in html + repr(run)


def test_a_damaged_run_is_still_shown(run: Run, own: Run, tmp_path: Path) -> None:
    (tmp_path / "run" / "run.json").write_text("{}")
    assert repr(own).startswith(f"Run({str(tmp_path / 'run')!r}): ")
    assert "is damaged" in repr(own)


def test_a_run_that_is_opened_has_the_same_summary(run: Run, own: Run, tmp_path: Path) -> None:
    assert (own.summary.totals, own.summary.units) == (run.summary.totals, run.summary.units)
    assert run.summary.now.rollouts == run.summary.totals.rollouts
    assert (own.summary.now.rollouts, own.summary.seconds_working, own.summary.throughput) == (0, 0.0, None)
    assert own.summary.labels == ""
    own.relabel(**{"estimator.rule": "threshold"})
    assert "of edition 0" in own.summary.labels
    assert f"these are {own.summary.labels}" in repr(own)


@pytest.mark.parametrize("count", [0, -1, "3", 2.5, True])
def test_the_number_of_chains_is_a_number(run: Run, count: Any) -> None:
    with pytest.raises(
        UsageError, match=r"show: how many chains is a whole number from 1 on, .*, not " + re.escape(repr(count))
    ):
        run.show(count)


def test_the_directory_of_a_run_is_not_given_again(run: Run) -> None:
    with pytest.raises(UsageError, match="run_dir is given twice, as the directory of this run and as run_dir='x'"):
        run.report(run_dir="x")


@pytest.mark.ray
@pytest.mark.nightly
def test_it_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    """As in a cell of a notebook."""

    async def cell() -> Run:
        return label(ROWS[:2], run_dir=tmp_path / "run", **QUICK)

    assert len(asyncio.run(cell()).labels()) == 2


@pytest.mark.parametrize(("settings", "error", "words"), [
    ({"sampling.temprature": 1}, UsageError, "did you mean sampling.temperature"),
    ({"data.nonsense": 1}, UsageError, "^there is no setting data.nonsense"),
    ({"policy": "oracle", "policy.oracle.seed": "many"}, UsageError, "policy.oracle.seed"),
    ({"rows": "nowhere.jsonl"}, InputError, "nowhere.jsonl"),
    ({"rows": [{"problem": {1}}]}, InputError, "row 1, column 'problem'"),
    ({"rows": "a.jsonl", "data.path": "b.jsonl"}, UsageError, "given twice, as the first argument and as {'data.path'"),
    ({"rows": None}, UsageError, "^there are no rows: give the path of a file, a list of dicts or a table as the first"),
    ({"policy": "oracle", "policy.kind": "hf"}, UsageError, "policy is given twice, as policy='oracle' and as"),
    ({"policy": "oracel"}, UsageError, "^policy='oracel': there is no such policy, did you mean oracle"),
    ({"policy": {"kind": "orcle"}}, UsageError, "policy=orcle: there is no such option, did you mean oracle"),
    ({"estimator": 3}, UsageError, "the methods of an estimator, not int"),
])  # fmt: skip
def test_what_is_asked_wrongly_is_an_exception_with_the_sentence(
    tmp_path: Path, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        label(**{"rows": ROWS, "policy": "oracle", "run_dir": tmp_path / "run", "progress": False, **settings})
    assert not (tmp_path / "run").exists()


def test_a_generator_that_fails_half_way_starts_nothing(tmp_path: Path) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield ROWS[0]
        raise ConnectionError("half-way")

    with pytest.raises(ConnectionError):
        label(rows(), policy="oracle", run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not contain a run"):
        open_run(tmp_path)


def caller(run_dir: Path) -> "subprocess.Popen[str]":
    """A program that labels slowly, in a loop that goes on after errors."""
    code = (
        # A test that runs in the background of a shell inherits that SIGINT is ignored.
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pipeline import label\nfrom tests.python.calls import ROWS, QUICK\n"
        f"for run_dir in ({str(run_dir)!r}, {f'{run_dir}-next'!r}):\n"
        "    try:\n"
        f"        label(ROWS, run_dir=run_dir, **QUICK, **{{{SLOW!r}: 60}})\n"
        "    except Exception as error:\n"
        "        print('goes on in spite of', error)\n"
    )
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, text=True)


def started(run_dir: Path) -> None:
    until(lambda: any(run_dir.glob("commits/input-*.json")), 60)
    time.sleep(1)


@pytest.mark.ray
def test_ctrl_c_leaves_a_run_that_goes_on(tmp_path: Path, run: Run) -> None:
    process = caller(tmp_path / "run")
    started(tmp_path / "run")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert RunInterrupted.__name__ in said
    assert "the same call continues the run" in said
    assert process.returncode == 1
    assert not (tmp_path / "run-next").exists()
    with python_without_ray():
        finished = label(ROWS, run_dir=tmp_path / "run", **QUICK)
    assert finished.labels().drop("solution").equals(run.labels().drop("solution"))


@pytest.mark.ray
@pytest.mark.nightly
def test_ctrl_c_that_comes_too_late_ends_a_loop_over_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Impatient:
        """Shows the progress of a run until its user has had enough, once."""

        pressed = False

        def __call__(self, status: Status) -> None:
            if status.rollouts and not self.pressed:
                self.pressed = True
                raise KeyboardInterrupt

    # The run does not hear of it, as if it had ended already.
    monkeypatch.setattr(subprocess.Popen, "send_signal", lambda *_: None)
    config = {name: value for name, value in QUICK.items() if name != "progress"}
    config |= {"run_dir": tmp_path / "run", SLOW: 300}
    data = write_rows(tmp_path / "rows.jsonl", ROWS)
    with pytest.raises(RunInterrupted, match="the run was finished"):
        done_elsewhere(
            Task(command="label", overrides=overrides_of(settings_in({"data.path": data, **config}))), Impatient()
        )
    assert open_run(tmp_path / "run").finished


@pytest.mark.ray
@pytest.mark.nightly
def test_a_kernel_that_is_killed_leaves_no_process_and_a_run_that_goes_on(tmp_path: Path) -> None:
    process = caller(tmp_path / "run")
    started(tmp_path / "run")
    (child,) = children(process.pid)
    process.kill()
    process.communicate()
    until(lambda: not os.path.exists(f"/proc/{child}"), 60)
    assert label(ROWS, run_dir=tmp_path / "run", **QUICK).finished


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in listed for child in file.read_text().split()]


def test_both_import_names_give_the_same_and_load_nothing_heavy() -> None:
    assert all(getattr(stepvalue, name) is getattr(pipeline, name) for name in pipeline.__all__)
    code = (
        "import sys, pipeline, stepvalue\n"
        "assert not {'ray', 'torch', 'vllm', 'transformers', 'hydra'} & set(sys.modules)\n"
        "from pipeline import label, grade, open_run\nassert not {'ray', 'torch', 'vllm', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


@pytest.mark.ray
@pytest.mark.nightly
def test_two_calls_at_once_in_one_process(tmp_path: Path) -> None:
    """On two directories both work; on one directory, one of them is refused and the other one finishes."""

    def start(name: str) -> Run | RunConflict:
        try:
            return label(ROWS[:2], run_dir=tmp_path / name, **QUICK)
        except RunConflict as error:
            return error

    with ThreadPoolExecutor(4) as threads:
        one, other, *same = threads.map(start, ["one", "other", "same", "same"])
    for run in (one, other, open_run(tmp_path / "same")):
        assert isinstance(run, Run)
        assert len(run.labels()) == 2
    # Where the first is done before the second begins, the second has nothing to do.
    assert sum(isinstance(each, Run) for each in same) >= 1
    assert all("works on" in str(each) or "locked" in str(each) for each in same if isinstance(each, RunConflict))
