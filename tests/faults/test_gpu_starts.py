"""The command line on nodes that claim GPUs, with an engine that fails on some of them, starts slowly or dies."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.checkout import ROOT, stepvalue, write_rows
from tests.faults.gpu_engine.rehearsal import DIED_SAYING
from tests.faults.raylets import Raylets, raylets
from tests.faults.runs import until
from tests.plugin.installed import distribution
from tests.ray_head import TOKEN

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(400)]

GPUS = 8
ON_A_NODE = ("--num-cpus=8", f"--num-gpus={GPUS}")
SECONDS = 150.0
PROBLEMS = 32
ROLLOUTS = 4
PREFIXES = 3
"""The empty one and those of two steps, which state no answer yet."""
SETTINGS = (
    "policy=rehearsal", "estimator=fixed", f"sampling.rollouts={ROLLOUTS}", "run.unit_problems=1", "run.units_in_flight=1",
    "run.report=false", "run.show_chains=0", "run.progress_seconds=1",
)  # fmt: skip
SECRET = "hf_secret0123456789"  # of nobody
LOGIN = "hf_login0123456789"  # of nobody
SHELL = {"HF_TOKEN": SECRET, "HF_HOME": "/shared/hf", "VLLM_HOST_IP": "10.9.8.7", "MY_KEY": "of another service"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the distribution of the engine installed in it, as every node of a cluster needs it."""
    site = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "tests" / "faults" / "gpu_engine" / "rehearsal.py", site)
    points = {"stepvalue.engines": {"rehearsal": "rehearsal:Rehearsal"}}
    return distribution(site, "stepvalue-rehearsal", "1.0", points)


@pytest.fixture(scope="module")
def nodes(site: Path) -> Iterator[Raylets]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(ROOT)]))
        with raylets(1, *ON_A_NODE) as made:
            yield made


@dataclass
class Run:
    """`label` on a cluster, with a folder of its own."""

    folder: Path
    nodes: Raylets
    site: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self, *overrides: str, faults: dict[str, Any] | None = None, shell: dict[str, str] | None = None) -> None:
        self.folder.mkdir()
        (self.folder / "faults.json").write_text(json.dumps(faults or {}))
        rows: list[dict[str, object]] = [
            {"problem": f"What is {n} + 1?", "answer": str(n + 1), "steps": ["Let us add.", f"It is {n + 1}."]}
            for n in range(PROBLEMS)
        ]
        where = [
            f"data.path={write_rows(self.folder / 'rows.jsonl', rows)}", f"run_dir={self.folder / 'run'}",
            f"cluster.address={self.nodes.address}", f"policy.rehearsal.folder={self.folder}",
        ]  # fmt: skip
        environment = {**TOKEN, **(shell or {}), "PYTHONPATH": os.pathsep.join([str(self.site), str(ROOT)])}
        self.process = stepvalue(self.folder / "log", "label", *where, *SETTINGS, *overrides, environment=environment)

    @property
    def output(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def started(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in self.folder.glob("start-*.json")]

    def wait(self) -> int:
        assert self.process is not None
        return self.process.wait(SECONDS)

    def assert_whole(self) -> None:
        """All rollouts of all open prefixes are there."""
        assert self.wait() == 0, self.output
        assert "Traceback" not in self.output
        labels = pl.read_parquet(self.folder / "run" / "labels" / "*.parquet")
        rollouts = pl.read_parquet(self.folder / "run" / "rollouts" / "*.parquet")
        assert len(labels) == PROBLEMS
        assert rollouts["rollout_id"].n_unique() == len(rollouts) == PROBLEMS * PREFIXES * ROLLOUTS

    @property
    def recorded_warnings(self) -> list[str]:
        (start,) = (self.folder / "run" / "starts").glob("*.json")
        return list(json.loads(start.read_text())["status"]["warnings"])


@pytest.fixture
def run(nodes: Raylets, site: Path, tmp_path: Path) -> Iterator[Callable[[str], Run]]:
    made: list[Run] = []

    def new(name: str) -> Run:
        made.append(Run(folder=tmp_path / name, nodes=nodes, site=site))
        return made[-1]

    yield new
    for one in made:
        if one.process is not None:
            one.process.kill()
            one.process.wait()
    until(lambda: not nodes.actors(), SECONDS)


EIGHT = (f"cluster.workers={GPUS}", "cluster.gpus_per_worker=1")


def assert_unwritten(secret: str, label: Run, nodes: Raylets) -> None:
    """It stands in no file of the run, in no log of Ray, and was not printed."""
    written = [*label.folder.rglob("run/**/*"), *nodes.folder.rglob("*.*")]
    assert not [path for path in written if path.is_file() and secret.encode() in path.read_bytes()]
    assert secret not in label.output


def test_a_full_gpu_of_eight_costs_one_worker_and_no_rollout_and_no_secret_is_written(
    run: Callable[[str], Run], nodes: Raylets
) -> None:
    label = run("full")
    label.start(*EIGHT, "policy.rehearsal.pause=0.5", faults={"3": "full"}, shell=SHELL)
    label.assert_whole()
    assert sorted(one["gpu"] for one in label.started) == [str(gpu) for gpu in range(GPUS) if gpu != 3]
    assert "GPU 3 could not start (Free memory on device cuda:0 (3.12/79.11 GiB) ***)" in label.output
    assert any("GPU 3 could not start" in warning for warning in label.recorded_warnings)
    for one in label.started:
        assert one["variables"] == {"HF_TOKEN": SECRET, "HF_HOME": "/shared/hf", "VLLM_HOST_IP": None, "MY_KEY": None}
    assert any("raylet" in path.name for path in nodes.folder.rglob("*.out"))
    assert_unwritten(SECRET, label, nodes)


def test_the_token_of_a_login_reaches_workers_and_is_not_written(
    run: Callable[[str], Run], nodes: Raylets, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "token").write_text(LOGIN)
    label = run("login")
    label.start("cluster.workers=1", "cluster.gpus_per_worker=1", shell={"HF_HOME": str(home), "HF_TOKEN": ""})
    label.assert_whole()
    (one,) = label.started
    assert one["variables"]["HF_TOKEN"] == LOGIN
    assert_unwritten(LOGIN, label, nodes)


def test_a_gpu_on_which_engines_die_costs_one_worker_and_no_rollout(run: Callable[[str], Run], nodes: Raylets) -> None:
    label = run("dies")
    label.start(*EIGHT, "policy.rehearsal.pause=1.5", faults={"5": "dies"})
    label.assert_whole()
    assert "GPU 5 could not start (a worker died: " in label.output
    assert any(DIED_SAYING in path.read_text(errors="replace") for path in nodes.folder.rglob("*.err"))


def test_a_gpu_on_which_engines_die_at_work_is_given_up_and_costs_no_rollout(run: Callable[[str], Run]) -> None:
    """Ray gives a new worker the free GPU with the lowest number, the one of the dead worker."""
    label = run("dies at work")
    label.start(
        "cluster.workers=2", "cluster.gpus_per_worker=1", "policy.rehearsal.pause=1.5", faults={"0": "dies at work"}
    )
    label.assert_whole()
    assert [one["gpu"] for one in label.started].count("0") == 3, "run.attempts"
    assert {one["gpu"] for one in label.started} == {"0", "1", "2"}
    (warning,) = (warning for warning in label.recorded_warnings if "without this place" in warning)
    assert "workers died at work 3 times in a row on " in warning
    assert "GPU 0 (a worker died: " in warning
    rollouts = pl.read_parquet(label.folder / "run" / "rollouts" / "*.parquet")
    assert set(rollouts["finish"].cast(pl.String)) == {"stop"}


def test_all_gpus_full_ends_the_run_with_place_and_cause(run: Callable[[str], Run]) -> None:
    label = run("none")
    label.start(*EIGHT, faults={"any": "full"})
    assert label.wait() == 1
    last = label.output.splitlines()[-1]
    assert last.startswith("stepvalue: Free memory on device cuda:0 (3.12/79.11 GiB)")
    assert last.endswith("(and 7 other workers could not start either)")


def test_workers_that_share_gpus_start_one_after_the_other_on_each(run: Callable[[str], Run]) -> None:
    label = run("halves")
    label.start("cluster.workers=4", "cluster.gpus_per_worker=0.5", "policy.rehearsal.pause=1", faults={"any": 2.0})
    label.assert_whole()
    assert {one["share"] for one in label.started} == {0.5}
    by_gpu: dict[str, list[tuple[float, float]]] = {}
    for one in label.started:
        by_gpu.setdefault(one["gpu"], []).append((one["began"], one["ended"]))
    assert sorted(map(len, by_gpu.values())) == [2, 2]
    for times in by_gpu.values():
        (_, first_ended), (second_began, _) = sorted(times)
        assert first_ended <= second_began


def test_nodes_that_join_late_are_waited_for(run: Callable[[str], Run], nodes: Raylets) -> None:
    label = run("growing")
    label.start(
        "cluster.workers=12", "cluster.gpus_per_worker=1", "cluster.wait_seconds=300", "policy.rehearsal.pause=1.5"
    )
    until(lambda: "nodes to join" in label.output, SECONDS)
    waits = next(line for line in label.output.splitlines() if "nodes to join" in line)
    assert waits.startswith(
        "stepvalue: waiting up to 300 s (cluster.wait_seconds) for nodes to join: 12 workers of 1 CPU"
    )
    assert "can hold 8 (8 CPUs and 8 GPUs on 2 nodes)" in waits
    nodes.grow(2)
    label.assert_whole()
    assert len(label.started) == 12
