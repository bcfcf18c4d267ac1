"""kill -9 of `check` with its private Ray, of the driver or of a worker, again and again: every finding is there once, what was
committed is not checked again, and no process of a verifier is left."""

import subprocess
import time
from pathlib import Path

import psutil
import pytest

from pipeline.__main__ import main
from tests.checkout import ROOT
from tests.faults.ray_kills import SECONDS, command, kills_until_done
from tests.runtime.checking.runs import frame, labelled, sums

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(280)]

CHAINS = 600
SETTINGS = ("checks=[arithmetic]", "run.unit_problems=10", "run.units_in_flight=1", "run.flush_seconds=0.1")


@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_a_killed_check_goes_on_where_it_was(victim: str, tmp_path: Path) -> None:
    run_dir = labelled(tmp_path, CHAINS, sums)
    assert (
        kills_until_done(
            ["check", f"run_dir={run_dir}", *SETTINGS], run_dir / "checks" / "arithmetic", victim, most=2, apart=8
        )
        >= 2
    )
    killed = frame(run_dir, "arithmetic")
    calm = tmp_path / "calm"
    words = ["check", f"data.path={tmp_path}/rows.jsonl", f"run_dir={calm}", *SETTINGS]
    subprocess.run(command(*words), cwd=ROOT, check=True, timeout=SECONDS, capture_output=True)
    said = ["row", "step_index", "verdict", "covers", "evidence", "fault"]
    assert killed.select(said).equals(frame(calm, "arithmetic").select(said))
    assert killed.height == 3 * CHAINS
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    deadline = time.monotonic() + 10
    while left := _orphans():
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def _orphans() -> list[psutil.Process]:
    """Processes that ask a verifier and whose parents are gone."""
    running = psutil.process_iter(["cmdline", "ppid"])
    children = [each for each in running if "pipeline.runtime.checking.child" in (each.info["cmdline"] or ())]
    return [each for each in children if each.info["ppid"] == 1]
