"""kill -9 of a judge with its private Ray, of the driver or of a worker, again and again: every vote is there once, and what
was committed is not judged again."""

import subprocess
from pathlib import Path

import pytest

from pipeline.__main__ import main
from tests.checkout import ROOT
from tests.faults.ray_kills import SECONDS, command, kills_until_done
from tests.runtime.judging.runs import frame, labelled

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(280)]

CHAINS = 200
VOTES = 3
SETTINGS = ("judge=oracle", f"judge.votes={VOTES}", "run.unit_problems=10", "run.flush_seconds=0.1")


@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_a_killed_judge_goes_on_where_it_was(victim: str, tmp_path: Path) -> None:
    run_dir = labelled(tmp_path, CHAINS)
    words = ["judge", f"run_dir={run_dir}", *SETTINGS]
    subprocess.run(command(*words, "judge.name=calm"), cwd=ROOT, check=True, timeout=SECONDS)
    slow = [*words, "judge.name=killed", "judge.oracle.tokens_per_second=30000"]
    assert kills_until_done(slow, run_dir / "judges" / "killed", victim, most=4, apart=8) >= 2
    of_the_judge = ("critique_id", "judge")
    killed, calm = (frame(run_dir, name).drop(of_the_judge) for name in ("killed", "calm"))
    assert killed.equals(calm)
    assert killed.height == CHAINS * VOTES
    assert main(["audit", f"run_dir={run_dir}"]) == 0
