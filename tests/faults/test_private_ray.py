"""The processes of a private Ray killed under the command line."""

import psutil
import pytest

from tests.faults.command_line import ended, label, started
from tests.faults.runs import Found, Scenes, assert_same, until

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(280)]

SLOW = "policy.lab.tokens_per_second=300"
"""A minute and a half for the scene."""


def test_a_killed_raylet_ends_the_run_by_name_and_the_next_start_goes_on(scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    process = started(scene, SLOW)
    until(lambda: process.poll() is not None or any((scene.run_dir / "commits").glob("unit-*.json")), 60)
    (raylet,) = (each for each in psutil.Process(process.pid).children() if each.name() == "raylet")
    raylet.kill()
    done = ended(scene, process)
    assert done.code == 1, done.said
    assert "(raylet) has died" in done.said
    assert "start the same command again" in done.said
    assert "Traceback" not in done.said
    assert label(scene).code == 0
    assert_same(scene, reference)
