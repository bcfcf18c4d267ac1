"""kill -9 of a judge with its private Ray, of the driver or of a worker, again and again: every vote is there once, and what
was committed is not judged again."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.__main__ import main
from tests.checkout import ROOT
from tests.faults.test_score_kills import committed, kill
from tests.runtime.judging.runs import frame, labelled

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(280)]

CHAINS = 200
VOTES = 3
KILLS = 4
SECONDS = 60.0
SETTINGS = ("judge=oracle", f"judge.votes={VOTES}", "run.unit_problems=10", "run.flush_seconds=0.1")


def words(run_dir: Path, name: str, *more: str) -> list[str]:
    asked = ["judge", f"run_dir={run_dir}", f"judge.name={name}", *SETTINGS, *more]
    return [sys.executable, "-m", "pipeline", *asked]


@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_a_killed_judge_goes_on_where_it_was(victim: str, tmp_path: Path) -> None:
    run_dir = labelled(tmp_path, CHAINS)
    subprocess.run(words(run_dir, "calm"), cwd=ROOT, check=True, timeout=SECONDS)
    own = run_dir / "judges" / "killed"
    luck, kills, before = random.Random(victim), 0, dict[str, bytes]()
    while True:
        process = subprocess.Popen(
            words(run_dir, "killed", "judge.oracle.tokens_per_second=30000"),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + SECONDS
            wanted = len(before) + luck.randrange(1, 9)
            while process.poll() is None and time.monotonic() < deadline:
                if kills < KILLS and len(committed(own)) >= wanted and kill(process, victim):
                    kills += 1
                    wanted = len(committed(own)) + luck.randrange(1, 9)
                time.sleep(0.02)
            said = process.communicate(timeout=SECONDS)[0]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        now = committed(own)
        assert before.items() <= now.items(), "no record that was committed has changed"
        before = now
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, said
    assert kills >= 2
    of_the_judge = ("critique_id", "judge")
    killed, calm = (frame(run_dir, name).drop(of_the_judge) for name in ("killed", "calm"))
    assert killed.equals(calm)
    assert killed.height == CHAINS * VOTES
    assert main(["audit", f"run_dir={run_dir}"]) == 0
