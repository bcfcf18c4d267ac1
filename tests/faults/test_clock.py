"""The system's clock jumps under the command line with its private Ray: hours back, days ahead, in all its processes."""

import json
import time
from pathlib import Path

import pytest

from tests.faults.command_line import compiled, started
from tests.faults.runs import Found, Scenes, assert_same, until

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(280)]

FOLDERS = ("/usr/lib", "/usr/local/lib", "/usr/lib64")
RATE = "policy.lab.tokens_per_second=3000"
BETWEEN_SECONDS = 1.5
JUMP_SECONDS = 1800


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> str:
    """libfaketime, which Debian has in a package of that name, and what it needs beside it."""
    found = [path for folder in FOLDERS for path in Path(folder).glob("**/faketime/libfaketimeMT.so.1")]
    if not found:
        pytest.skip("libfaketime is not installed; clocks that jump ahead are also played by tests/faults/sim.py")
    return f"{compiled('monotonic_sleep', tmp_path_factory.mktemp('library'))}:{found[0]}"


@pytest.mark.parametrize("jumps", [("+0", "-3h"), ("+2d", "-5d"), ("-30d", "+400d", "+0", "+1h")])
def test_a_clock_that_jumps_costs_nothing(
    scenes: Scenes, reference: Found, libraries: str, jumps: tuple[str, ...]
) -> None:
    scene = scenes()
    offset = scene.folder / "offset"
    offset.write_text("+0\n")
    environment = {
        "LD_PRELOAD": libraries,
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    job = started(scene, RATE, environment=environment)
    until(job.at_work, 60)
    for jump in jumps:
        assert job.at_work()
        offset.write_text(f"{jump}\n")
        time.sleep(BETWEEN_SECONDS)
    assert job.wait() == 0, job.said
    assert "Traceback" not in job.said
    (record,) = (scene.run_dir / "starts").glob("*.json")
    assert abs(json.loads(record.read_text())["at"] - time.time()) > JUMP_SECONDS, "the clock of the run did not jump"
    assert_same(scene, reference)
