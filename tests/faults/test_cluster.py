"""Three raylets on one machine: actors ended and stopped, a node lost, the head lost."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from ray.cluster_utils import Cluster

from tests.conftest import ROOT
from tests.faults.runs import Found, Scene, assert_same, until

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(240)]

Scenes = Callable[..., Scene]
STORE_BYTES = 80_000_000
SLOW = "policy.oracle.tokens_per_second=6000"
HEAD_LOST_SECONDS = 90.0
FINISH_SECONDS = 120.0


class Raylets:
    """A head and two nodes, a CPU each, and the actors on them."""

    def __init__(self) -> None:
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False},
        )
        self.nodes = [self.cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES) for _ in range(2)]

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def actors(self, node: Any) -> list[psutil.Process]:
        """Our actors on a node."""
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        return [each for each in raylet.children() if "_Actor" in " ".join(each.cmdline())]


@pytest.fixture
def raylets() -> Iterator[Raylets]:
    made = Raylets()
    yield made
    made.cluster.shutdown()


def labelling(scene: Scene, address: str | None, *overrides: str) -> "subprocess.Popen[str]":
    """The command line with three workers, in a process of its own."""
    settings = [*scene.settings, "run.progress_seconds=0.5", "run.units_in_flight=1", *overrides]
    where = [f"cluster.address={address}", "cluster.workers=3"] if address else []
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # read by `finished`
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pipeline",
            "label",
            f"data.path={scene.data}",
            f"run_dir={scene.run_dir}",
            *settings,
            *where,
        ],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        text=True,
    )
    process.log = log  # type: ignore[attr-defined]
    return process


def finished(process: Any, seconds: float = FINISH_SECONDS) -> tuple[int, str]:
    """Exit code and output."""
    try:
        code = process.wait(seconds)
    finally:
        process.kill()
    process.log.seek(0)
    return code, process.log.read()


def at_work(scene: Scene) -> Callable[[], bool]:
    return lambda: any((scene.run_dir / "commits").glob("unit-*.json"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_an_actor_that_is_ended_or_stopped_is_replaced(
    number: signal.Signals, raylets: Raylets, scenes: Scenes, reference: Found
) -> None:
    scene = scenes()
    process = labelling(scene, raylets.address, SLOW, "run.stall_seconds=4")
    until(at_work(scene), FINISH_SECONDS)
    victim = next(actor for node in raylets.nodes for actor in raylets.actors(node))
    os.kill(victim.pid, number)
    code, output = finished(process)
    assert code == 0, output
    assert_same(scene, reference)


def test_a_node_whose_raylet_is_killed_costs_nothing_but_time(
    raylets: Raylets, scenes: Scenes, reference: Found
) -> None:
    scene = scenes()
    process = labelling(scene, raylets.address, SLOW, "run.attempts=1", "run.max_failures=1")
    until(at_work(scene), FINISH_SECONDS)
    victim = next(node for node in raylets.nodes if raylets.actors(node))
    os.kill(victim.all_processes["raylet"][0].process.pid, signal.SIGKILL)
    code, output = finished(process)
    assert code == 0, output
    assert_same(scene, reference)


def test_a_lost_head_ends_the_run_and_another_cluster_finishes_it(
    raylets: Raylets, scenes: Scenes, reference: Found
) -> None:
    scene = scenes()
    process = labelling(scene, raylets.address, "policy.oracle.tokens_per_second=400")
    until(lambda: raylets.actors(raylets.nodes[0]) and Path(scene.run_dir, "inputs").exists(), FINISH_SECONDS)
    os.kill(raylets.cluster.head_node.all_processes["gcs_server"][0].process.pid, signal.SIGKILL)
    code, output = finished(process, HEAD_LOST_SECONDS)
    assert code != 0, output
    scene.finish()
    assert_same(scene, reference)
