"""The whole job through the command line, on a Ray cluster, with the oracle."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.engines.vllm.reaper import MARK, marked_processes
from tests.audit.runs import files
from tests.checkout import stepvalue
from tests.conftest import ROOT, run_stepvalue, write_rows
from tests.deadlines import until
from tests.ray_head import Cluster, ray_head, was_ended_by_ray
from tests.runtime.growing import chains
from tests.runtime.in_process import label_in_process
from tests.runtime.without_ray import without_ray
from tests.settings import compose_label

pytestmark = pytest.mark.ray

Printed = pytest.CaptureFixture[str]
ORACLE = ("policy=lab", "estimator=fixed", "run.report=false")


def label(head: Cluster, data: Path, run_dir: Path, *overrides: str) -> "subprocess.CompletedProcess[str]":
    settings = [f"data.path={data}", f"run_dir={run_dir}", *ORACLE, f"cluster.address={head.address}"]
    done = run_stepvalue(["label", *settings, *overrides], environment=head.environment)
    if was_ended_by_ray(done.stderr):
        done = run_stepvalue(["label", *settings, *overrides], environment=head.environment)
    return done


def labels(run_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(run_dir / "labels" / "*.parquet").sort("chain_id")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An input and the run directory of an undisturbed run on it."""
    folder = tmp_path_factory.mktemp("reference")
    rows = [row for number in range(60) for row in (*chains(number), *chains(number, last=3))]
    data = write_rows(folder / "rows.jsonl", rows)
    label_in_process(compose_label([f"data.path={data}", f"run_dir={folder / 'run'}", *ORACLE, "run.unit_problems=10"]))
    return data, folder / "run"


def test_a_finished_run_started_again_does_nothing(reference: tuple[Path, Path], capsys: Printed) -> None:
    data, run_dir = reference
    before = files(run_dir)
    with without_ray():
        assert main(["label", f"data.path={data}", f"run_dir={run_dir}", *ORACLE, "run.unit_problems=10"]) == 0
    assert "this run is already finished" in capsys.readouterr().out
    assert files(run_dir) == before


def test_an_unfinished_run_goes_on_with_what_is_owed(reference: tuple[Path, Path], capsys: Printed) -> None:
    data, run_dir = reference
    expected = labels(run_dir)
    lost = sorted((run_dir / "commits").glob("unit-*.json"))[:2]
    kept = {
        name: data for name, data in files(run_dir).items() if name not in {f"commits/{path.name}" for path in lost}
    }
    for record in lost:
        record.unlink()
    with without_ray():
        assert main(["label", f"data.path={data}", f"run_dir={run_dir}", *ORACLE, "run.unit_problems=10"]) == 0
    assert (
        "to sample and grade 640 rollouts" in capsys.readouterr().out
    )  # 2 units x 10 problems x 4 distinct prefixes x 8
    assert labels(run_dir).equals(expected)
    assert kept.items() <= files(run_dir).items()


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param(["cluster.workers=2", "run.units_in_flight=1", "run.unit_problems=3"], id="two workers"),
        pytest.param(["policy.lab.fail_after=500"], id="an engine that dies", marks=pytest.mark.nightly),
        pytest.param(
            ["policy.lab.hang_after=500", "run.stall_seconds=3", "run.progress_seconds=0.5"],
            id="an engine that hangs",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_labels_do_not_depend_on_workers_or_faults(
    ray_cluster: Cluster, reference: tuple[Path, Path], tmp_path: Path, overrides: list[str]
) -> None:
    data, run_dir = reference
    done = label(ray_cluster, data, tmp_path / "run", "run.unit_problems=10", *overrides)
    assert done.returncode == 0, done.stderr
    assert "120 read = 120 used + 0 rejected" in done.stdout
    assert labels(tmp_path / "run").equals(labels(run_dir))
    if "lab" in overrides[0]:
        assert "replacing a worker" in done.stdout


def test_another_setting_on_the_same_directory_is_refused(reference: tuple[Path, Path], capsys: Printed) -> None:
    data, run_dir = reference
    before = files(run_dir)
    other = ["sampling.temperature=0.5", "run.unit_problems=10"]
    with without_ray():
        assert main(["label", f"data.path={data}", f"run_dir={run_dir}", *ORACLE, *other]) == 2
    refused = capsys.readouterr().err
    assert "sampling.temperature was 1.0, now 0.5" in refused
    assert "use another run_dir" in refused.splitlines()[0]
    assert files(run_dir) == before


@pytest.mark.nightly
def test_more_workers_than_the_cluster_holds(
    ray_cluster: Cluster, reference: tuple[Path, Path], tmp_path: Path
) -> None:
    many = ["cluster.workers=2", "cluster.gpus_per_worker=4", "cluster.wait_seconds=1"]
    refused = label(ray_cluster, reference[0], tmp_path / "run", *many)
    assert refused.returncode == 1
    assert "waiting up to 1 s (cluster.wait_seconds) for nodes to join" in refused.stderr
    assert "4 GPUs each do not fit: the cluster's nodes can hold 0" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.nightly
def test_sigterm_is_exit_75_and_the_run_goes_on_later(
    ray_cluster: Cluster, reference: tuple[Path, Path], tmp_path: Path
) -> None:
    """SIGTERM on a private Ray, as from a machine that is taken away; no process of the run is left."""
    data, run_dir = reference
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    settings = [f"data.path={data}", f"run_dir={tmp_path / 'run'}", *ORACLE, "run.unit_problems=10"]
    slow = ["policy.lab.tokens_per_second=20000", "run.units_in_flight=1", "run.progress_seconds=0.5"]
    log = tmp_path / "log"
    process = stepvalue(log, "label", *settings, *slow, environment={MARK: mark})
    until(lambda: list((tmp_path / "run").glob("commits/unit-*.json")), 120)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 75, log.read_text()
    assert "start the same command again" in log.read_text()
    assert marked_processes(mark) == []
    done = label(ray_cluster, data, tmp_path / "run", "run.unit_problems=10")
    assert done.returncode == 0, done.stderr
    assert "this run is already finished" not in done.stdout
    assert labels(tmp_path / "run").equals(labels(run_dir))


def submit(head: Cluster, job: list[str]) -> "subprocess.CompletedProcess[str]":
    ray = str(Path(sys.executable).with_name("ray"))
    return subprocess.run(
        [ray, "job", "submit", f"--address={head.dashboard}", f"--working-dir={ROOT}", "--", *job],
        env={**os.environ, **head.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.nightly
def test_ray_job_submit_runs_the_job_on_a_cluster(reference: tuple[Path, Path], tmp_path: Path) -> None:
    data, run_dir = reference
    settings = [f"data.path={data}", f"run_dir={tmp_path / 'run'}", *ORACLE, "run.unit_problems=10"]
    job = [sys.executable, "-m", "pipeline", "label", *settings, "cluster.address=auto"]
    with ray_head(dashboard=True) as head:
        submitted = submit(head, job)
        while "No available agent" in submitted.stderr:  # the head has only just started
            time.sleep(2)
            submitted = submit(head, job)
    assert submitted.returncode == 0, submitted.stdout + submitted.stderr
    assert "120 read = 120 used + 0 rejected" in submitted.stdout
    assert labels(tmp_path / "run").equals(labels(run_dir))
