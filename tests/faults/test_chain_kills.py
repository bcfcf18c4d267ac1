"""kill -9 of `judge`, `check`, `score` and `search` with their private Ray, of the driver or of a worker, again and again: each
ends with the rows of one that nobody disturbs, what was committed is not done again, and no process of a verifier is left."""

import random
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from pipeline.__main__ import main
from tests.checkout import stepvalue
from tests.deadlines import until
from tests.faults.runs import committed
from tests.runtime.chain_tasks import CHECK, JUDGE, SCORE, SEARCH, Task
from tests.runtime.checking import runs as checks
from tests.runtime.judging.runs import NAME
from tests.searches.runs import ORACLES

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(280)]

SECONDS = 60.0
"""The longest that a start may take."""


class Killed(NamedTuple):
    """A task with `words`, and `slow` ones while it is killed, at most `most` times and at `least`, each after
    1 to `apart` commits."""

    task: Task
    chains: int
    words: str
    slow: str = ""
    most: int = 4
    apart: int = 8
    least: int = 2

    def start(self, run_dir: Path, *more: str) -> list[str]:
        words = self.words.format(out=SCORE.place(run_dir), folder=run_dir.parent)
        return [*words.split(), f"run_dir={run_dir}", *more]


ARITHMETIC = replace(
    CHECK,
    prepared=lambda folder, count: checks.labelled(folder, count, checks.sums),
    place=lambda run_dir: run_dir / "checks" / "arithmetic",
    rows=lambda run_dir: checks.frame(run_dir, "arithmetic"),
)
KILLED = (
    Killed(
        JUDGE,
        chains=200,
        words=f"judge judge=lab judge.name={NAME} judge.votes=3 run.unit_problems=10 run.flush_seconds=0.1",
        slow="judge.lab.tokens_per_second=30000",
    ),
    Killed(
        ARITHMETIC,
        chains=600,
        words="check checks=[arithmetic] run.unit_problems=10 run.units_in_flight=1 run.flush_seconds=0.1",
        most=2,
    ),
    Killed(
        SCORE,
        chains=400,
        words="score scorer=lab scorer.oracle.auc=0.8 out={out} run.unit_problems=20 run.flush_seconds=0.1",
        slow="scorer.lab.chains_per_second=300",
    ),
    Killed(
        SEARCH,
        chains=24,
        words=f"search data.path={{folder}}/rows.jsonl {' '.join(ORACLES)} search=beam search.n=8 run.unit_problems=3 "
        "run.units_in_flight=1 run.flush_seconds=0.03",
        slow="policy.lab.tokens_per_second=40000",
        most=3,
        apart=3,
        least=1,
    ),
)


@pytest.mark.parametrize("killed", KILLED, ids=lambda killed: killed.task.command)
@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_a_killed_command_goes_on_where_it_was(killed: Killed, victim: str, tmp_path: Path) -> None:
    task = killed.task
    (folder := tmp_path / "killed").mkdir()
    run_dir = task.prepared(folder, killed.chains)
    calm = shutil.copytree(folder, tmp_path / "calm") / run_dir.name
    assert stepvalue(tmp_path / "calm.log", *killed.start(calm)).wait(SECONDS) == 0
    assert kills_until_done(killed, run_dir, victim) >= killed.least
    found = task.rows(run_dir)
    assert found.equals(task.rows(calm))
    assert set(found["row"]) == set(range(killed.chains))
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    until(lambda: not _orphans(), SECONDS)


def kills_until_done(killed: Killed, run_dir: Path, victim: str) -> int:
    """Start the command until it ends well, and kill the `victim` again and again. Returns the number of kills. No record that
    was committed changes."""
    luck, kills, before = random.Random(victim), 0, dict[str, bytes]()
    words, place = killed.start(run_dir, *killed.slow.split()), killed.task.place(run_dir)
    log = run_dir.with_suffix(".log")
    while True:
        process = stepvalue(log, *words)
        try:
            deadline = time.monotonic() + SECONDS
            wanted = len(before) + luck.randint(1, killed.apart)
            while process.poll() is None and time.monotonic() < deadline:
                if kills < killed.most and len(committed(place)) >= wanted and _kill(process, victim):
                    kills += 1
                    wanted = len(committed(place)) + luck.randint(1, killed.apart)
                time.sleep(0.01)
            code = process.wait(SECONDS)
        finally:
            process.kill()
        now = committed(place)
        assert before.items() <= now.items(), "no record that was committed has changed"
        before = now
        if code == 0:
            return kills
        assert code == -signal.SIGKILL, log.read_text()


def _kill(process: "subprocess.Popen[bytes]", victim: str) -> bool:
    """Kill the driver or a worker. Returns whether there was one."""
    try:
        driver = psutil.Process(process.pid)
        actors = [each for each in driver.children(recursive=True) if "_Actor" in " ".join(each.cmdline())]
        (driver if victim == "driver" else actors[0]).kill()
    except (psutil.Error, IndexError):
        return False
    return True


def _orphans() -> list[psutil.Process]:
    """Processes that ask a verifier and whose parents are gone."""
    running = psutil.process_iter(["cmdline", "ppid"])
    children = [each for each in running if "pipeline.runtime.checking.child" in (each.info["cmdline"] or ())]
    return [each for each in children if each.info["ppid"] == 1]
