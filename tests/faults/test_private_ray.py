"""The processes of a private Ray killed under the command line."""

import psutil
import pytest

from tests.faults.command_line import started
from tests.faults.runs import Found, Scenes, assert_same, until

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(280)]

SLOW = "policy.lab.tokens_per_second=300"
"""A minute and a half for the scene."""


def test_a_killed_raylet_ends_the_run_by_name_and_the_next_start_goes_on(scenes: Scenes, reference: Found) -> None:
    scene = scenes()
    job = started(scene, SLOW)
    until(job.at_work, 60)
    (raylet,) = (each for each in psutil.Process(job.process.pid).children() if each.name() == "raylet")
    raylet.kill()
    assert job.wait() == 1, job.said
    assert "(raylet) has died" in job.said
    assert "start the same command again" in job.said
    assert "Traceback" not in job.said
    assert started(scene).wait() == 0
    assert_same(scene, reference)
