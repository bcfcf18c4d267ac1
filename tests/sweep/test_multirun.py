"""`label --multirun`: everything is checked first, each run has its folder, a failed one stops no other, commands go on."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.cli.compose import compose
from pipeline.cli.label import LABEL
from pipeline.cli.multirun import sweep
from pipeline.cli.own_settings import NOTHING, Given
from pipeline.config.changes import AuditConfig
from pipeline.config.label import ClusterConfig, LabelConfig
from pipeline.core.errors import ClusterError, Interrupted, RunConflict, StepvalueError, UsageError
from pipeline.runtime.connection import KeptCluster
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
    def __call__(self, config: LabelConfig) -> Iterator[WorkerPool]:
        assert config.run_dir is not None
        self.run_dirs.append(Path(config.run_dir).name)
        with in_process(config) as pool:
            yield pool


class HiredLate(Hired):
    """Like these, but the first run says that it has waited for what all of them share."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds_joining = 0.0

    @contextmanager
    def __call__(self, config: LabelConfig) -> Iterator[WorkerPool]:
        # Longer than any test takes, so that the figures differ on a busy machine too.
        self.seconds_joining = 1000.0
        with super().__call__(config) as pool:
            yield pool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path / "rows.jsonl", rows())
    return tmp_path


def words(folder: Path, *swept: str) -> list[str]:
    small = ["policy=lab", "estimator=fixed", "estimator.rule=threshold", "sampling.rollouts=3", "run.report=false"]
    return [f"data.path={folder / 'rows.jsonl'}", f"run_dir={folder / 'sweep'}", *small, *swept]


def swept(folder: Path, *more: str, hired: Any = None) -> int:
    return sweep(LABEL, words(folder, *more), NOTHING, Hired() if hired is None else hired)


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


def record(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "sweep" / "sweep.json").read_text())["runs"]
    return found


def states(folder: Path) -> list[str]:
    return [run["state"] for run in record(folder)]


def test_one_folder_per_run_one_sampling_per_seed_one_table_one_comparison(folder: Path, capsys: Printed) -> None:
    hired = Hired()
    assert swept(folder, "estimator.threshold=0.1,0.9", "policy.oracle.seed=1,2", hired=hired) == 0
    names = [f"estimator.threshold={value},policy.oracle.seed={seed}" for value in ("0.1", "0.9") for seed in (1, 2)]
    assert [run["name"] for run in record(folder)] == names
    assert hired.run_dirs == names[:2]
    assert [run["rollouts_of"] for run in record(folder)] == ["", "", *names[:2]]
    assert all(audit(AuditConfig(run_dir=str(folder / "sweep" / name))).sound for name in names)
    repeated = compose(LABEL, ["run_dir=new"], Given(again=str(folder / "sweep" / names[2]))).settings()
    assert (repeated.estimator.threshold, repeated.data.path) == (0.9, str(folder / "rows.jsonl"))
    low, _, high, _ = (run["figures"] for run in record(folder))
    assert low["good"] > high["good"]
    assert low["mean_value"] == high["mean_value"]
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    table = table[next(at for at, line in enumerate(table) if line[:1] == ["run"]) :]
    lines = [line for line in table if "finished" in line]
    assert [line[:4] for line in lines] == [
        [str(number), value, str(seed), "finished"]
        for number, (value, seed) in enumerate([("0.1", 1), ("0.1", 2), ("0.9", 1), ("0.9", 2)], start=1)
    ]
    compared = [line for line in table if "of" in line and line[1] == "17"]
    assert [line[0] for line in compared if "(+0.000" in line] == ["3"]
    assert len(compared) == 3
    capsys.readouterr()
    for name in names:
        assert main(["status", f"run_dir={folder / 'sweep' / name}"]) == 0
        assert "finished" in capsys.readouterr().out


def test_what_all_runs_share_is_in_the_seconds_of_none(folder: Path, capsys: Printed) -> None:
    hired = HiredLate()
    asked = words(folder, "policy.oracle.seed=1,2")
    assert sweep(LABEL, asked, NOTHING, hired, lambda: hired.seconds_joining) == 0
    first, second = (run["seconds"] for run in record(folder))
    assert first < -900 < 0 < second
    assert "Ray was started or joined in 1,000.0 s, which are in no run's seconds" in capsys.readouterr().out


def test_a_kept_cluster_counts_the_seconds_of_its_start_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]

    @contextmanager
    def slow(*_: object) -> Iterator[None]:
        clock[0] += 7
        yield

    monkeypatch.setattr("pipeline.runtime.connection.time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr("pipeline.runtime.connection.cluster", slow)
    with KeptCluster() as cluster:
        cluster.join(ClusterConfig(), lambda: None)
        joining = cluster.seconds_joining
        cluster.join(ClusterConfig(), lambda: None)
        assert joining == cluster.seconds_joining == 7


def test_estimators_that_request_other_rollouts_sample_for_themselves(folder: Path) -> None:
    hired = Hired()
    assert swept(folder, "estimator.name=fixed,first_success", "estimator.confidence=0.9,0.95", hired=hired) == 0
    assert hired.run_dirs == [f"estimator.name={name},estimator.confidence=0.9" for name in ("fixed", "first_success")]


def test_the_same_command_does_nothing_again_and_one_with_more_values_only_these(done: Path) -> None:
    seconds = [run["seconds"] for run in record(done)]
    hired = Hired()
    assert swept(done, "policy.oracle.seed=1,2", hired=hired) == 0
    assert hired.run_dirs == []
    assert [run["seconds"] for run in record(done)] == seconds
    assert swept(done, "policy.oracle.seed=3,2,1", hired=hired) == 0
    assert hired.run_dirs == ["policy.oracle.seed=3"]


@pytest.mark.parametrize("values", ["0.2,0.6", "0.1,0.2,0.6"])
def test_the_runs_of_a_sweep_whose_input_grew_all_grow(values: str, folder: Path) -> None:
    write_rows(folder / "rows.jsonl", rows()[:4])
    assert swept(folder, "estimator.threshold=0.2,0.6") == 0
    write_rows(folder / "rows.jsonl", rows())
    assert swept(folder, f"estimator.threshold={values}") == 0
    assert len({run["figures"]["chains"] for run in record(folder)}) == 1
    assert all(audit(AuditConfig(run_dir=str(folder / "sweep" / run["name"]))).sound for run in record(folder))


def test_a_failed_run_is_recorded_and_does_not_stop_the_others(folder: Path, capsys: Printed) -> None:
    write_rows(folder / "bad.jsonl", [{"problem": "", "answer": "1"}])
    bad, good = folder / "bad.jsonl", folder / "rows.jsonl"
    arguments = [word for word in words(folder) if not word.startswith("data.path")]
    code = sweep(LABEL, [*arguments, f"data.path={bad},{good}"], NOTHING, Hired())
    assert code == 1
    assert states(folder) == ["failed", "finished"]
    assert "none of the 1 rows" in record(folder)[0]["message"]
    written = capsys.readouterr()
    assert "run 1 failed" in written.err
    assert "1 of 2 runs failed" in written.err
    assert "run 1: " in written.out


def test_a_cluster_that_is_lost_and_a_defect_cost_one_run_each(folder: Path, capsys: Printed) -> None:
    hired, faults = Hired(), [ClusterError("Ray died"), ZeroDivisionError("a defect")]

    @contextmanager
    def failing(config: LabelConfig) -> Iterator[WorkerPool]:
        if faults:
            raise faults.pop(0)
        with hired(config) as pool:
            yield pool

    assert swept(folder, "policy.oracle.seed=1,2,3", hired=failing) == 1
    assert states(folder) == ["failed", "failed", "finished"]
    assert [run["message"] for run in record(folder)] == ["Ray died", "ZeroDivisionError: a defect", ""]
    assert "Traceback" in capsys.readouterr().err
    assert swept(folder, "policy.oracle.seed=1,2,3") == 0
    assert states(folder) == ["finished"] * 3


def test_an_interruption_keeps_what_is_done_and_the_same_command_goes_on(folder: Path, capsys: Printed) -> None:
    hired = Hired()

    @contextmanager
    def interrupted(config: LabelConfig) -> Iterator[WorkerPool]:
        with hired(config) as pool:
            if len(hired.run_dirs) == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            yield pool

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted) as raised:
        swept(folder, "policy.oracle.seed=1,2,3", hired=interrupted)
    assert raised.value.exit_code == 75
    assert signal.getsignal(signal.SIGTERM) == before
    assert states(folder) == ["finished", "interrupted", "waiting"]
    assert "interrupted" in capsys.readouterr().out
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
    assert states(folder) == ["finished", "interrupted", "waiting"]
    done = run_stepvalue(line)
    assert done.returncode == 0, done.stderr
    assert states(folder) == ["finished"] * 3
    assert [starts(folder, seed) for seed in (1, 3)] == [1, 1]
    assert all(audit(AuditConfig(run_dir=str(folder / "sweep" / run["name"]))).sound for run in record(folder))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.nightly
def test_runs_on_a_named_cluster_join_it_once(folder: Path, ray_cluster: Cluster) -> None:
    line = ["label", "--multirun", *words(folder), "policy.oracle.seed=1,2", f"cluster.address={ray_cluster.address}"]
    done = run_stepvalue(line, environment=ray_cluster.environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("joined the Ray cluster") == 1
    assert states(folder) == ["finished"] * 2


def starts(folder: Path, seed: int) -> int:
    return len(list((folder / "sweep" / f"policy.oracle.seed={seed}" / "starts").iterdir()))


REFUSED: list[tuple[list[str], str]] = [
    (
        ["estimator.thershold=0.1,0.2"],
        "estimator.thershold=0.1: there is no setting .*did you mean estimator.threshold",
    ),
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
    with pytest.raises(StepvalueError, match=r"data.path=.*nothing.jsonl: "):
        sweep(LABEL, [*arguments, f"data.path={folder / 'rows.jsonl'},{folder / 'nothing.jsonl'}"], NOTHING, Hired())
    assert not (folder / "sweep").exists()


def test_the_runs_of_another_sweep_in_the_folder_are_refused_before_anything_starts(done: Path) -> None:
    hired = Hired()
    with pytest.raises(RunConflict, match=r"policy.oracle.seed=1: .*belongs to another run"):
        swept(done, "sampling.temperature=0.5", "policy.oracle.seed=1,2", hired=hired)
    assert hired.run_dirs == []


def test_a_folder_that_is_no_sweep_is_refused(done: Path) -> None:
    with pytest.raises(UsageError, match="a sweep needs a folder for its runs"):
        sweep(LABEL, ["data=sample", "policy=oracle", "policy.oracle.seed=1,2"], NOTHING, Hired())
    with pytest.raises(UsageError, match="contains other files"):
        swept(done, f"run_dir={done}", "policy.oracle.seed=1,2")
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


def test_status_shows_a_sweep_and_other_commands_say_what_the_folder_is(done: Path, capsys: Printed) -> None:
    run_dir = f"run_dir={done / 'sweep'}"
    assert main(["status", run_dir]) == 0
    assert capsys.readouterr().out.count("finished") == 2
    assert main(["status", run_dir, "json=true"]) == 0
    assert [run["state"] for run in json.loads(capsys.readouterr().out)["runs"]] == ["finished", "finished"]
    for command in ("audit", "report", "relabel"):
        assert main([command, run_dir]) == 2
        assert "is the folder of a sweep" in (said := capsys.readouterr().err)
        assert "policy.oracle.seed=1" in said
    assert main(["label", "data=sample", "policy=oracle", run_dir]) == 2
    assert "is the folder of a sweep" in capsys.readouterr().err


def test_status_says_what_became_of_a_run_that_the_record_calls_running(done: Path, capsys: Printed) -> None:
    file = done / "sweep" / "sweep.json"
    file.write_text(file.read_text().replace('"finished"', '"running"', 1))
    assert main(["status", f"run_dir={done / 'sweep'}"]) == 0
    assert "its directory says: finished" in capsys.readouterr().out


def test_a_damaged_record_is_named_and_replaced(done: Path, capsys: Printed) -> None:
    for damage in ("{", "[]", '{"version": 2}', '{"version": 1, "runs": [{"name": "../x"}]}'):
        (done / "sweep" / "sweep.json").write_text(damage)
        assert main(["status", f"run_dir={done / 'sweep'}"]) == 1
        assert "sweep.json is damaged" in capsys.readouterr().err
        assert swept(done, "policy.oracle.seed=1,2") == 0
        assert states(done) == ["finished", "finished"]


def test_names_and_values_from_outside_are_printed_without_control_characters(folder: Path, capsys: Printed) -> None:
    swept(folder, "policy.prompt.instruction='\\t\x1b[31m',b")
    assert "\x1b" not in "".join(capsys.readouterr())


def test_the_page_shows_the_runs_and_the_comparison(folder: Path) -> None:
    swept(folder, "policy.oracle.seed=1,2", "run.report=true")
    page = (folder / "sweep" / "sweep.html").read_text()
    assert "Compared with the first run" in page
    assert page.count("<td") > 2 * 8
    assert (folder / "sweep" / "policy.oracle.seed=2" / "report.html").exists()


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
