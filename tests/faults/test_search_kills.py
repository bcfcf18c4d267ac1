"""kill -9 of a search, again and again, at any moment: it goes on and ends with the tables of one that nobody disturbs.

The same with its private Ray, of the driver or of a worker.
"""

import os
import random
import signal
import time
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from tests.conftest import write_rows
from tests.faults.local_driver import CONTEXT
from tests.faults.ray_kills import SECONDS, committed, kills_until_done
from tests.runtime.searching.tables import assert_alike, tables
from tests.searches.runs import ORACLES, Row, search_in, searched, settings, sums

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(280)]

METHODS = ("best_of_n", "beam", "mcts")
PROBLEMS = 24
KILLS = 12
SMALL = ("search.n=8", "run.unit_problems=3", "run.units_in_flight=1")
SLOW = ("policy.lab.tokens_per_second=40000", "run.flush_seconds=0.03", "run.progress_seconds=0.05")


def rows() -> list[Row]:
    """Every fourth problem has no known answer."""
    return [row for n, row in enumerate(sums(PROBLEMS)) if n % 4] + sums(PROBLEMS, known=False)[::4]


def start(folder: Path, method: str) -> None:
    """The main function of a process that searches."""
    searched(settings(folder, rows(), f"search={method}", *SMALL, *SLOW))


@pytest.mark.parametrize("method", METHODS)
def test_a_search_that_is_killed_at_any_moment_goes_on(method: str, tmp_path: Path) -> None:
    (tmp_path / "calm").mkdir()
    calm = tables(search_in(tmp_path / "calm", rows(), f"search={method}", *SMALL))
    (folder := tmp_path / "killed").mkdir()
    luck, kills, within, before = random.Random(method), 0, 0, dict[str, bytes]()
    while True:
        process = CONTEXT.Process(target=start, args=(folder, method))
        process.start()
        assert process.pid is not None
        if kills < KILLS:
            # Every second time it has committed something first, so that it comes to an end also on a busy machine.
            wanted, deadline = len(before) + luck.randrange(1, 4) * (kills % 2), time.monotonic() + SECONDS
            while process.is_alive() and len(committed(folder / "run")) < wanted and time.monotonic() < deadline:
                time.sleep(0.002)
            process.join(luck.expovariate(1 / 0.1))
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
        process.join(SECONDS)
        now = committed(folder / "run")
        assert before.items() <= now.items(), "no record that was committed has changed"
        within += bool(now.items() - before.items())
        before = now
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert kills >= 3
    assert within >= 2, "several starts have committed something"
    assert_alike(tables(folder / "run"), calm)
    assert main(["audit", f"run_dir={folder / 'run'}"]) == 0


@pytest.mark.ray
@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_a_search_with_ray_goes_on_where_it_was(victim: str, tmp_path: Path) -> None:
    (tmp_path / "calm").mkdir()
    calm = tables(search_in(tmp_path / "calm", rows(), "search=beam", *SMALL))
    data, run_dir = write_rows(tmp_path / "rows.jsonl", rows()), tmp_path / "run"
    words = ["search", f"data.path={data}", f"run_dir={run_dir}", *ORACLES, "search=beam", *SMALL, *SLOW]
    assert kills_until_done(words, run_dir, victim, most=3, apart=3) >= 1
    assert_alike(tables(run_dir), calm)
    assert main(["audit", f"run_dir={run_dir}"]) == 0
    assert tables(run_dir)["searches"].filter(pl.col("gold_answer").is_null())["verdict"].null_count() == 6
