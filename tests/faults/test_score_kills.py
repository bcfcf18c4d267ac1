"""kill -9 of a scoring with its private Ray, of the driver or of a worker, again and again: no score is lost, doubled or
changed, and what was committed is not scored again."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import psutil
import pytest

from pipeline.storage.location import storage_at
from pipeline.storage.stored_scores import score_shards
from tests.checkout import ROOT
from tests.conftest import write_rows

pytestmark = [pytest.mark.faults, pytest.mark.ray, pytest.mark.timeout(280)]

CHAINS = 400
KILLS = 4
SECONDS = 60.0
SETTINGS = ("scorer=oracle", "scorer.oracle.auc=0.8", "run.unit_problems=20", "run.flush_seconds=0.1")


def started(data: Path, out: Path) -> "subprocess.Popen[str]":
    words = ["score", f"data.path={data}", f"out={out}", *SETTINGS, "scorer.oracle.chains_per_second=300"]
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def committed(out: Path) -> dict[str, bytes]:
    """The commit records of units, by name."""
    folder = out / "commits"
    return {file.name: file.read_bytes() for file in sorted(folder.glob("unit-*.json"))} if folder.is_dir() else {}


def workers(process: "subprocess.Popen[str]") -> Iterator[psutil.Process]:
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if any("_Actor" in word for word in child.cmdline()):
                yield child
        except psutil.Error:
            continue


def kill(process: "subprocess.Popen[str]", victim: str) -> bool:
    """Kill the driver or a worker. Returns whether there was one."""
    if victim == "driver":
        os.kill(process.pid, signal.SIGKILL)
        return True
    for worker in workers(process):
        worker.kill()
        return True
    return False


@pytest.mark.parametrize("victim", ["driver", "worker"])
def test_a_killed_scoring_goes_on_where_it_was(victim: str, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"problem": f"{n}+1", "answer": str(n + 1), "steps": [f"{n}+1", f"={n + 1}"]} for n in range(CHAINS)
    ]
    data, out, calm = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "out", tmp_path / "calm.parquet"
    subprocess.run(
        [sys.executable, "-m", "pipeline", "score", f"data.path={data}", f"out={calm}", *SETTINGS],
        cwd=ROOT, check=True, timeout=SECONDS,
    )  # fmt: skip
    luck, kills, before = random.Random(victim), 0, dict[str, bytes]()
    while True:
        process = started(data, out)
        try:
            deadline = time.monotonic() + SECONDS
            wanted = len(before) + luck.randrange(1, 9)
            while process.poll() is None and time.monotonic() < deadline:
                if kills < KILLS and len(committed(out)) >= wanted and kill(process, victim):
                    kills += 1
                    wanted = len(committed(out)) + luck.randrange(1, 9)
                time.sleep(0.02)
            said = process.communicate(timeout=SECONDS)[0]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        now = committed(out)
        assert before.items() <= now.items(), "no record that was committed has changed"
        before = now
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, said
    assert kills >= 2
    found = pl.concat([pl.read_parquet(out / shard.file) for shard in score_shards(storage_at(str(out)))])
    assert found.equals(pl.read_parquet(calm))
