"""`label --multirun`: everything is checked first, each run has its folder, a failed one stops no other, commands go on."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.cli.label import LABEL
from pipeline.cli.multirun import sweep
from pipeline.cli.own_settings import NOTHING
from pipeline.config.changes import AuditConfig
from pipeline.core.errors import ClusterError, Interrupted, RunConflict, StepvalueError, UsageError
from pipeline.runtime.chain_run.task import Task
from pipeline.runtime.worker_handle import WorkerPool
from pipeline.storage.lock import run_lock
from tests.audit.runs import rows
from tests.conftest import ROOT, run_stepvalue, write_rows
from tests.ray_head import Cluster
from tests.runtime.in_process import in_process

pytestmark = pytest.mark.slow

Printed = pytest.CaptureFixture[str]


class Hired:
    """Workers without Ray, and the directories that they were hired for."""

    def __init__(self) -> None:
        self.run_dirs: list[str] = []

    @contextmanager
    def __call__(self, task: Task[Any]) -> Iterator[WorkerPool]:
        self.run_dirs.append(Path(task.config.run_dir).name)
        with in_process(task) as pool:
            yield pool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path / "rows.jsonl", rows())
    return tmp_path


def words(folder: Path, *swept: str) -> list[str]:
    small = ["policy=lab", "estimator=fixed", "estimator.rule=threshold", "sampling.rollouts=3", "run.report=false"]
    return [f"data.path={folder / 'rows.jsonl'}", f"run_dir={folder / 'sweep'}", *small, *swept]


def swept(folder: Path, *more: str, hired: Any = None) -> int:
    return sweep(LABEL, words(folder, *more), NOTHING, hiring=Hired() if hired is None else hired)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep of two runs."""
    made = tmp_path_factory.mktemp("sweep")
    write_rows(made / "rows.jsonl", rows())
    assert swept(made, "policy.oracle.seed=1,2") == 0
    return made


@pytest.fixture
def done(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may change."""
    return Path(shutil.copytree(finished, tmp_path, dirs_exist_ok=True))


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in (folder / "sweep").iterdir() if each.is_dir())


def test_a_run_with_a_folder_of_its_own_for_each_combination(folder: Path, capsys: Printed) -> None:
    hired = Hired()
    assert swept(folder, "estimator.threshold=0.1,0.9", "policy.oracle.seed=1,2", hired=hired) == 0
    made = [f"estimator.threshold={value},policy.oracle.seed={seed}" for value in ("0.1", "0.9") for seed in (1, 2)]
    assert hired.run_dirs == names(folder) == made
    assert all(audit(AuditConfig(run_dir=str(folder / "sweep" / name))).sound for name in made)
    written = capsys.readouterr()
    assert [line for line in written.err.splitlines() if "run " in line] == [
        f"stepvalue: run {number} of 4: {folder / 'sweep' / name}" for number, name in enumerate(made, start=1)
    ]
    *runs, compare = written.out.splitlines()[-5:]
    assert runs == [f"finished  {folder / 'sweep' / name}" for name in made]
    for name in made:
        assert main(["status", f"run_dir={folder / 'sweep' / name}"]) == 0
        assert "finished" in capsys.readouterr().out
    program, *line = shlex.split(compare.removeprefix("compare "))
    assert program == "stepvalue"
    assert main([*line, f"out={folder / 'compared.html'}"]) == 0
    assert "policy.oracle.seed" in capsys.readouterr().out


def test_the_same_command_does_nothing_again_and_one_with_more_values_only_these(done: Path) -> None:
    hired = Hired()
    assert swept(done, "policy.oracle.seed=1,2", hired=hired) == 0
    assert hired.run_dirs == []
    assert swept(done, "policy.oracle.seed=3,2,1", hired=hired) == 0
    assert hired.run_dirs == ["policy.oracle.seed=3"]


def test_the_runs_of_a_sweep_whose_input_grew_all_grow(folder: Path) -> None:
    write_rows(folder / "rows.jsonl", rows()[:4])
    assert swept(folder, "estimator.threshold=0.2,0.6") == 0
    write_rows(folder / "rows.jsonl", rows())
    hired = Hired()
    assert swept(folder, "estimator.threshold=0.1,0.2,0.6", hired=hired) == 0
    assert hired.run_dirs == names(folder)
    assert all(audit(AuditConfig(run_dir=str(folder / "sweep" / name))).sound for name in names(folder))


def test_a_failed_run_is_named_and_does_not_stop_the_others(folder: Path, capsys: Printed) -> None:
    write_rows(folder / "bad.jsonl", [{"problem": "", "answer": "1"}])
    bad, good = folder / "bad.jsonl", folder / "rows.jsonl"
    arguments = [word for word in words(folder) if not word.startswith("data.path")]
    code = sweep(LABEL, [*arguments, f"data.path={bad},{good}"], NOTHING, hiring=Hired())
    assert code == 1
    written = capsys.readouterr()
    assert "run 1 failed: none of the 1 rows" in written.err
    finished, failed, again = written.out.splitlines()[-3:]
    assert "rows.jsonl" in finished.removeprefix("finished  ")
    assert failed.startswith(f"failed    {folder / 'sweep'}/")
    assert "none of the 1 rows" in failed
    assert again.strip() == "the same command tries what has failed again"


def test_a_cluster_that_is_lost_and_a_defect_cost_one_run_each(folder: Path, capsys: Printed) -> None:
    hired, faults = Hired(), [ClusterError("Ray died"), ZeroDivisionError("a defect")]

    @contextmanager
    def failing(task: Task[Any]) -> Iterator[WorkerPool]:
        if faults:
            raise faults.pop(0)
        with hired(task) as pool:
            yield pool

    assert swept(folder, "policy.oracle.seed=1,2,3", hired=failing) == 1
    assert hired.run_dirs == ["policy.oracle.seed=3"]
    written = capsys.readouterr()
    assert "Traceback" in written.err
    finished, *failed, _ = written.out.splitlines()[-4:]
    assert finished == f"finished  {folder / 'sweep' / 'policy.oracle.seed=3'}"
    assert [line.rpartition("=")[2] for line in failed] == ["1: Ray died", "2: ZeroDivisionError: a defect"]
    assert swept(folder, "policy.oracle.seed=1,2,3", hired=hired) == 0
    assert hired.run_dirs == [f"policy.oracle.seed={seed}" for seed in (3, 1, 2)]


def test_an_interruption_keeps_what_is_done_and_the_same_command_goes_on(folder: Path) -> None:
    hired = Hired()

    @contextmanager
    def interrupted(task: Task[Any]) -> Iterator[WorkerPool]:
        with hired(task) as pool:
            if len(hired.run_dirs) == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            yield pool

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted) as raised:
        swept(folder, "policy.oracle.seed=1,2,3", hired=interrupted)
    assert raised.value.exit_code == 75
    assert signal.getsignal(signal.SIGTERM) == before
    assert names(folder) == ["policy.oracle.seed=1", "policy.oracle.seed=2"]
    again = Hired()
    assert swept(folder, "policy.oracle.seed=1,2,3", hired=again) == 0
    assert again.run_dirs == ["policy.oracle.seed=2", "policy.oracle.seed=3"]


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.nightly
def test_one_private_ray_serves_all_runs_and_a_signal_ends_them_for_now(folder: Path) -> None:
    line = ["label", "--multirun", *words(folder), "policy.oracle.seed=1,2,3"]
    slow = [sys.executable, "-m", "pipeline", *line, "policy.lab.tokens_per_second=200"]
    with subprocess.Popen(slow, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        said = next(text for text in started.stderr if "run 2 of 3" in text)
        started.send_signal(signal.SIGTERM)
        said += started.stderr.read()
    assert started.returncode == 75, said
    assert "start the same command again" in said
    assert names(folder) == ["policy.oracle.seed=1", "policy.oracle.seed=2"]
    done = run_stepvalue(line)
    assert done.returncode == 0, done.stderr
    assert [starts(folder, seed) for seed in (1, 2, 3)] == [1, 2, 1]
    assert all(audit(AuditConfig(run_dir=str(folder / "sweep" / name))).sound for name in names(folder))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.nightly
def test_runs_on_a_named_cluster_join_it_once(folder: Path, ray_cluster: Cluster) -> None:
    line = ["label", "--multirun", *words(folder), "policy.oracle.seed=1,2", f"cluster.address={ray_cluster.address}"]
    done = run_stepvalue(line, environment=ray_cluster.environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("joined the Ray cluster") == 1
    assert len(names(folder)) == 2


def starts(folder: Path, seed: int) -> int:
    return len(list((folder / "sweep" / f"policy.oracle.seed={seed}" / "starts").iterdir()))


REFUSED: list[tuple[list[str], str]] = [
    (
        ["estimator.thershold=0.1,0.2"],
        "estimator.thershold=0.1: there is no setting .*did you mean estimator.threshold",
    ),
    (["data.nonsense=1,2"], "^data.nonsense=1: there is no setting data.nonsense; "),
    (["estimator.threshold=0.1,2"], "estimator.threshold=2: estimator.threshold=2.0 is out of range"),
    (["sampling.top_k=1,x"], "sampling.top_k=x: "),
    (
        ["policy.oracle.seed=1,2", "estimator.name=fixed,bisect"],
        "estimator.name=bisect: estimator.rule=threshold needs",
    ),
    (["grader=code,cood"], "grader=cood: .*there is no such option"),
    (["policy.oracle.seed=1"], "no setting has several"),
]


@pytest.mark.parametrize(("more", "said"), REFUSED)
def test_what_label_would_refuse_is_refused_before_anything_starts(more: list[str], said: str, folder: Path) -> None:
    hired = Hired()
    with pytest.raises(UsageError, match=said):
        swept(folder, *more, hired=hired)
    assert hired.run_dirs == []
    assert not (folder / "sweep").exists()


def test_a_file_that_is_not_there_is_refused_with_its_combination(folder: Path) -> None:
    arguments = [word for word in words(folder) if not word.startswith("data.path")]
    with pytest.raises(StepvalueError, match=r"data.path=.*nothing.jsonl~.*: .*there is no file"):
        sweep(
            LABEL,
            [*arguments, f"data.path={folder / 'rows.jsonl'},{folder / 'nothing.jsonl'}"],
            NOTHING,
            hiring=Hired(),
        )
    assert not (folder / "sweep").exists()


def test_the_runs_of_another_sweep_in_the_folder_are_refused_before_anything_starts(done: Path) -> None:
    hired = Hired()
    with pytest.raises(RunConflict, match=r"policy.oracle.seed=1: .*belongs to another run"):
        swept(done, "sampling.temperature=0.5", "policy.oracle.seed=1,2", hired=hired)
    assert hired.run_dirs == []


def test_a_folder_that_is_of_one_run_or_in_use_is_refused(done: Path) -> None:
    with pytest.raises(UsageError, match="a sweep needs one folder for its runs"):
        sweep(LABEL, ["data=sample", "policy=oracle", "policy.oracle.seed=1,2"], NOTHING, hiring=Hired())
    inside = f"run_dir={done / 'sweep' / 'policy.oracle.seed=1'}"
    with pytest.raises(UsageError, match="is the directory of a run"):
        swept(done, inside, "policy.oracle.seed=1,2")
    with run_lock(done / "sweep"), pytest.raises(RunConflict, match="another job works on"):
        swept(done, "policy.oracle.seed=1,2")


def test_a_run_dir_with_the_name_of_a_run_needs_no_quotes(folder: Path, capsys: Printed) -> None:
    swept(folder, "policy.oracle.seed=1,2", "estimator.threshold=0.3,0.4")
    name = "policy.oracle.seed=1,estimator.threshold=0.4"
    for command in ("status", "audit", "relabel", "report"):
        assert main([command, f"run_dir={folder / 'sweep' / name}"]) == 0, capsys.readouterr().err


def test_the_folder_of_a_sweep_is_no_run(done: Path, capsys: Printed) -> None:
    run_dir = f"run_dir={done / 'sweep'}"
    for command in ("status", "audit", "report", "relabel"):
        assert main([command, run_dir]) == 2
        said = capsys.readouterr().err
        assert "does not contain a run" in said
        assert f"such as {done / 'sweep' / 'policy.oracle.seed=1'}" in said
    assert main(["label", "data=sample", "policy=oracle", run_dir]) == 2
    assert "contains other files" in capsys.readouterr().err


def test_names_and_values_from_outside_are_printed_without_control_characters(folder: Path, capsys: Printed) -> None:
    swept(folder, "policy.prompt.instruction='\\t\x1b[31m',b")
    assert "\x1b" not in "".join(capsys.readouterr())


def test_cfg_job_prints_the_settings_of_each_run(folder: Path, capsys: Printed) -> None:
    swept_values = ["policy.oracle.seed=1,2", "estimator.threshold=0.1,0.9"]
    assert main(["label", "-m", "--cfg", "job", *words(folder, *swept_values)]) == 0
    printed = capsys.readouterr().out
    made = list(yaml.safe_load_all(printed))
    found = [(each["policy"]["oracle"]["seed"], each["estimator"]["threshold"]) for each in made]
    assert found == [(1, 0.1), (1, 0.9), (2, 0.1), (2, 0.9)]
    assert "# policy.oracle.seed=2,estimator.threshold=0.1" in printed.splitlines()
    assert not (folder / "sweep").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["train", "--multirun", "run_dir=x"], "--multirun is an option of label: start `train` once for each value"),
        (["plan", "-m", "data=sample"], "--multirun is an option of label"),
    ],
)
def test_where_there_is_no_sweep(line: list[str], said: str, capsys: Printed) -> None:
    assert main(line) == 2
    assert said in capsys.readouterr().err
