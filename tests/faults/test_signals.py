"""Processes that are asked to stop, stopped, or lost: of the driver, a worker, an engine and a grader."""

import contextlib
import os
import signal
import time

import psutil
import pytest

from tests.faults.answers import sums
from tests.faults.runs import Found, Scene, Scenes, Start, alive, assert_same, found, logged, until

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(120)]

SLOW = "policy.lab.tokens_per_second=30000"
STALL = "run.stall_seconds=1"
A_MOMENT = 0.02


def interrupted(scene: Scene) -> Start:
    """A start that got SIGTERM while units were in work."""
    start = scene.start(SLOW)
    until(scene.committed)
    os.kill(start.pid, signal.SIGTERM)
    return start


def test_sigterm_keeps_what_came_in_and_the_next_start_goes_on(scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    start = interrupted(scene)
    assert start.wait() == 75
    assert "start the same command again" in start.output
    kept = len(logged(scene.run_dir))
    assert kept > 0
    assert scene.finish()["added"]["rollouts"] == len(reference.log) - kept
    assert_same(scene, reference)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGKILL])
def test_a_second_signal_ends_it_at_once(second: signal.Signals, scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    start = interrupted(scene)
    time.sleep(A_MOMENT)
    with contextlib.suppress(ProcessLookupError):
        os.kill(start.pid, second)
    assert start.wait() in (75, -second)
    scene.finish()
    assert_same(scene, reference)


@pytest.mark.parametrize("wakes", ["while its successor works", "after the run"])
def test_a_worker_that_was_given_up_and_wakes_changes_nothing(wakes: str, scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    start = scene.start(SLOW, STALL, unreachable=True)
    until(scene.committed)
    zombie = start.pids("worker")[0]
    os.kill(zombie, signal.SIGSTOP)
    if wakes == "while its successor works":
        until(lambda: len(start.pids("worker")) > 1)
        os.kill(zombie, signal.SIGCONT)
    assert start.wait() == 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(zombie, signal.SIGCONT)
    until(lambda: not alive([zombie]))
    assert_same(scene, reference)


def test_workers_that_outlive_their_driver_and_a_second_driver(scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    start = scene.start(SLOW, workers=2, outlive=True)
    until(scene.committed)
    os.kill(start.pid, signal.SIGKILL)
    assert start.wait() == -signal.SIGKILL
    assert alive(start.pids("worker"))
    scene.finish(SLOW)
    until(lambda: not alive(start.pids("worker")))
    assert_same(scene, reference)


def test_two_drivers_at_once_the_second_is_refused(scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    first = scene.start(SLOW)
    until(scene.committed)
    second = scene.start(SLOW)
    assert second.wait() == 2
    assert "another job works on" in second.output
    assert first.wait() == 0
    assert_same(scene, reference)


@pytest.mark.parametrize("turn", range(4))
def test_two_drivers_at_once_without_the_lock_are_both_right(turn: int, scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    settings = [SLOW, "run.lock=false", f"run.flush_seconds={0.03 * (turn + 1)}"]
    both = [scene.start(*settings, workers=2), scene.start(*settings)]
    assert [start.wait() for start in both] == [0, 0], both[0].output
    assert_same(scene, reference)


@pytest.mark.parametrize(("workers", "in_flight"), [(1, 1), (2, 1), (4, 3)])
def test_the_number_of_workers_changes_nothing(workers: int, in_flight: int, scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    scene.finish(f"run.units_in_flight={in_flight}", workers=workers)
    assert_same(scene, reference)


def graders(start: Start) -> list[psutil.Process]:
    """The children that the workers, and the driver for its input, have for algebra."""
    mine: list[psutil.Process] = []
    for pid in (start.pid, *start.pids("worker")):
        with contextlib.suppress(psutil.Error):
            mine += [each for each in psutil.Process(pid).children() if "pipeline.graders.math.child" in each.cmdline()]
    return mine


@pytest.mark.parametrize("processes", [1, 2], ids=["the only grader", "a whole pool"])
def test_killed_graders_turn_no_answer_into_another(processes: int, scenes: Scenes) -> None:
    calm, scene = scenes("calm"), scenes("killed")
    for each in (calm, scene):
        sums(each.data, 16)
    calm.finish()
    expected = {row["chain_id"]: row["outcome"] for row in found(calm.run_dir).labels.to_pylist()}
    assert set(expected.values()) == {True, False}

    start = scene.start(f"grader.processes={processes}")
    killed: set[int] = set()

    def ended() -> bool:
        for child in graders(start):
            if child.pid not in killed and len(killed) < processes:
                with contextlib.suppress(psutil.Error):
                    child.kill()
                killed.add(child.pid)
        return not alive([start.pid])

    until(ended, 90)
    assert start.wait() == 0, start.output
    assert killed
    there = {row["chain_id"]: row["outcome"] for row in found(scene.run_dir).labels.to_pylist()}
    assert there.keys() == expected.keys()
    assert all(outcome in (None, expected[chain_id]) for chain_id, outcome in there.items())
