"""kill -9 of `judge`, `check` and `score` with their private Ray, of the driver or of a worker, again and again: each ends with
the rows of one that nobody disturbs, what was committed is not done again, and no process of a verifier is left."""

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import psutil
import pytest

from pipeline.__main__ import main
from tests.checkout import ROOT
from tests.faults.ray_kills import SECONDS, command, kills_until_done
from tests.runtime.chain_tasks import JUDGE, SCORE
from tests.runtime.checking import runs as checks
from tests.runtime.judging.runs import NAME

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(280)]


@dataclass(frozen=True, kw_only=True)
class Killed:
    """A command with `words`, and `slow` ones while it is killed, at most `most` times. The rest: see `chain_tasks.Task`."""

    chains: int
    prepared: Callable[[Path, int], Path]
    place: Callable[[Path], Path]
    rows: Callable[[Path], pl.DataFrame]
    words: str
    slow: str = ""
    most: int = 4

    def start(self, run_dir: Path, *more: str) -> list[str]:
        return [*self.words.format(out=SCORE.place(run_dir)).split(), f"run_dir={run_dir}", *more]


KILLED = {
    "judge": Killed(
        chains=200,
        prepared=JUDGE.prepared,
        place=JUDGE.place,
        rows=JUDGE.rows,
        words=f"judge judge=lab judge.name={NAME} judge.votes=3 run.unit_problems=10 run.flush_seconds=0.1",
        slow="judge.lab.tokens_per_second=30000",
    ),
    "check": Killed(
        chains=600,
        prepared=lambda folder, count: checks.labelled(folder, count, checks.sums),
        place=lambda run_dir: run_dir / "checks" / "arithmetic",
        rows=lambda run_dir: checks.frame(run_dir, "arithmetic"),
        words="check checks=[arithmetic] run.unit_problems=10 run.units_in_flight=1 run.flush_seconds=0.1",
        most=2,
    ),
    "score": Killed(
        chains=400,
        prepared=SCORE.prepared,
        place=SCORE.place,
        rows=SCORE.rows,
        words="score scorer=lab scorer.oracle.auc=0.8 out={out} run.unit_problems=20 run.flush_seconds=0.1",
        slow="scorer.lab.chains_per_second=300",
    ),
}


@pytest.mark.parametrize("name", KILLED)
@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_a_killed_command_goes_on_where_it_was(name: str, victim: str, tmp_path: Path) -> None:
    task = KILLED[name]
    run_dir = task.prepared(tmp_path, task.chains)
    calm = shutil.copytree(run_dir, tmp_path / "calm" / "run")
    subprocess.run(command(*task.start(calm)), cwd=ROOT, check=True, timeout=SECONDS, capture_output=True)
    slow = task.start(run_dir, *task.slow.split())
    assert kills_until_done(slow, task.place(run_dir), victim, most=task.most, apart=8) >= 2
    found = task.rows(run_dir)
    assert found.equals(task.rows(calm))
    assert set(found["row"]) == set(range(task.chains))
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    deadline = time.monotonic() + SECONDS
    while left := _orphans():
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def _orphans() -> list[psutil.Process]:
    """Processes that ask a verifier and whose parents are gone."""
    running = psutil.process_iter(["cmdline", "ppid"])
    children = [each for each in running if "pipeline.runtime.checking.child" in (each.info["cmdline"] or ())]
    return [each for each in children if each.info["ppid"] == 1]
