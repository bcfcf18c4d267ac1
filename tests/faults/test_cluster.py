"""Three nodes of Ray on one machine, and the command line on them: workers ended and stopped, a node lost, the head lost."""

import contextlib
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.faults.command_line import Job, started
from tests.faults.raylets import Raylets, raylets
from tests.faults.runs import Found, Scene, Scenes, assert_same, logged, until

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(240)]

OTHERS = 2
WORKERS = 2
RATE, FAST, SLOW = (f"policy.lab.tokens_per_second={rate}" for rate in (2000, 4000, 300))
"""A worker alone takes 13, 7 and 87 s for the scene."""
SECONDS = 60.0
HEAD_LOST_SECONDS = 90.0
STALL = "run.stall_seconds=3"
NO_FAILURE = ("run.attempts=1", "run.max_failures=1")
TOTALS = (
    "11 read = 11 used + 0 rejected",
    "rollouts  880 = 382 correct + 498 incorrect + 0 without an answer + 0 ungraded",
)


Label = Callable[..., Job]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Raylets]:
    with raylets(OTHERS) as made:
        yield made


@pytest.fixture
def cluster(nodes: Raylets) -> Raylets:
    """With all nodes, also where the test before lost one."""
    nodes.grow(OTHERS)
    until(lambda: not nodes.actors())
    return nodes


@pytest.fixture
def label() -> Iterator[Label]:
    """Starts the command line on a scene and a cluster."""
    jobs: list[Job] = []

    def start(scene: Scene, cluster: Raylets, *overrides: str, workers: int = WORKERS) -> Job:
        usual = (RATE, f"cluster.workers={workers}", "run.units_in_flight=1", "run.progress_seconds=0.5")
        jobs.append(started(scene, *usual, *overrides, cluster=cluster))
        return jobs[-1]

    yield start
    for job in jobs:
        job.end()


def assert_finished(job: Job, scene: Scene, reference: Found) -> None:
    assert job.wait(SECONDS) == 0, job.said
    for line in TOTALS:
        assert line in job.said
    assert_same(scene, reference)


@pytest.mark.parametrize(
    ("end", "workers", "settings", "said"),
    [
        (psutil.Process.kill, WORKERS, (), "replacing a worker"),
        # It is reported to go, which costs no attempt.
        (psutil.Process.terminate, 1, NO_FAILURE, "receives a SIGTERM"),
    ],
)
def test_an_actor_that_is_ended_is_replaced(
    end: Callable[[psutil.Process], None], workers: int, settings: tuple[str, ...], said: str,
    cluster: Raylets, scenes: Scenes, label: Label, reference: Found,
) -> None:  # fmt: skip
    scene = scenes()
    job = label(scene, cluster, *settings, workers=workers)
    until(job.at_work, SECONDS)
    end(cluster.actors()[0])
    assert_finished(job, scene, reference)
    assert said in job.said


def test_a_killed_actor_is_charged(cluster: Raylets, scenes: Scenes, label: Label) -> None:
    """Unlike one that is reported to go, and one that is lost with its node."""
    scene = scenes()
    job = label(scene, cluster, *NO_FAILURE, workers=1)
    until(job.at_work, SECONDS)
    cluster.actors()[0].kill()
    assert job.wait(SECONDS) == 1
    assert "workers failed 1 time (run.max_failures)" in job.said
    assert "Traceback" not in job.said


def test_a_lost_node_costs_no_attempt_and_its_actor_writes_on_while_it_lives(
    cluster: Raylets, scenes: Scenes, label: Label, reference: Found
) -> None:
    scene = scenes()
    job = label(scene, cluster, *NO_FAILURE, "run.unit_problems=1", workers=1)
    until(job.at_work, SECONDS)
    node = next(node for node in cluster.others if node.actors())
    (actor,) = node.actors()
    try:
        node.child("raylet").kill()
        before = scene.committed()
        until(lambda: scene.committed().keys() > before.keys(), SECONDS)
        assert cluster.actors() == [], "it has a successor already"
    finally:
        actor.kill()
    assert_finished(job, scene, reference)
    assert "replacing a worker" in job.said


def test_an_actor_that_stops_is_replaced_and_changes_nothing_when_it_goes_on(
    cluster: Raylets, scenes: Scenes, label: Label, reference: Found
) -> None:
    scene = scenes()
    job = label(scene, cluster, STALL)
    until(job.at_work, SECONDS)
    stopped = cluster.actors()[0]
    stopped.suspend()
    try:
        until(lambda: "no progress within run.stall_seconds=3" in job.said, SECONDS)
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            stopped.resume()
    assert_finished(job, scene, reference)


def test_a_run_that_gets_no_worker_ends_and_says_why(
    cluster: Raylets, scenes: Scenes, label: Label, reference: Found
) -> None:
    first, other = scenes("first"), scenes("second")
    job = label(first, cluster, SLOW)
    until(lambda: len(cluster.actors()) == WORKERS, SECONDS)
    late = label(other, cluster, "cluster.wait_seconds=3")
    assert late.wait(SECONDS) == 1, late.said
    why = "no worker got its resources within cluster.wait_seconds=3: each needs 1 CPU of one node, and 0 of"
    assert why in late.said, late.said
    assert "Traceback" not in late.said
    job.end()
    until(lambda: not cluster.actors(), SECONDS)
    assert_finished(label(other, cluster, FAST), other, reference)


def test_a_lost_head_ends_the_run_and_another_cluster_finishes_it(
    cluster: Raylets, scenes: Scenes, label: Label, reference: Found
) -> None:
    scene = scenes()
    with raylets(1) as lost:
        job = label(scene, lost, SLOW, "run.unit_problems=1", workers=1)
        until(job.at_work, SECONDS)
        lost.nodes[0].child("gcs_server").kill()
        assert job.wait(HEAD_LOST_SECONDS) > 0, job.said
    assert 0 < len(logged(scene.run_dir)) < len(reference.log)
    assert_finished(label(scene, cluster, FAST, "run.unit_problems=1"), scene, reference)
