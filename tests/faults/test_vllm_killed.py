"""kill -9 against vLLM's processes and around them, with the embedded model: nothing is lost, doubled or left running."""

import contextlib
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import psutil
import pytest

from pipeline.core.ids import content_id, rollout_id
from pipeline.core.progress import replaced_worker
from pipeline.engines.vllm.reaper import MARK
from tests.conftest import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.model, pytest.mark.timeout(900)]

ROLLOUTS = 32
SETTINGS = (
    "data=sample",
    "estimator=fixed",
    "data.limit=4",
    f"sampling.rollouts={ROLLOUTS}",
    "run.progress_seconds=0.5",
    "run.report=false",
)
START_SECONDS = 300
END_SECONDS = 20
_TAG = "STEPVALUE_TEST_JOB"
_UNDER_WAY = re.compile(r"rollouts [1-9]")


class Job:
    """The `label` command as a process, and all that come from it, known by a tag in their environment."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self._output = run_dir.parent / "output"
        self._tag = uuid.uuid4().hex

    def start(self) -> "subprocess.Popen[bytes]":
        with self._output.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "pipeline", "label", f"run_dir={self.run_dir}", *SETTINGS],
                cwd=ROOT,
                env={**os.environ, _TAG: self._tag},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def text(self) -> str:
        return self._output.read_text(errors="replace")

    def wait_for_rollouts(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        while not _UNDER_WAY.search(self.text()):
            assert process.poll() is None, self.text()
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.1)

    def processes(self) -> list[psutil.Process]:
        found = {process for process in psutil.process_iter() if environment(process).get(_TAG) == self._tag}
        for process in list(found):  # some are started with an environment of their own
            with contextlib.suppress(psutil.NoSuchProcess):
                found.update(process.children(recursive=True))
        return list(found)

    def engine(self) -> list[psutil.Process]:
        """vLLM's processes: those that carry an owner's mark."""
        return [process for process in self.processes() if MARK in environment(process)]


def environment(process: psutil.Process) -> dict[str, str]:
    try:
        return dict(process.environ())
    except psutil.Error:
        return {}


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path / "run")
    yield made
    kill(made.processes())


def lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def all_ended(processes: Sequence[psutil.Process]) -> bool:
    deadline = time.monotonic() + END_SECONDS
    while any(lives(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not any(lives(process) for process in processes)


def planned(run_dir: Path) -> set[str]:
    """The rollouts that the chains ask for: of the bare problem, and of every prefix that is no whole chain."""
    labels = pl.read_parquet(run_dir / "labels" / "*.parquet")
    assert labels.height == 4
    prefixes = {
        content_id("prefix", row["problem_id"], row["solution"][:end])
        for row in labels.iter_rows(named=True)
        for end, origin in zip([0, *row["step_ends"]], ["measured", *row["origin"]], strict=True)
        if origin == "measured"
    }
    return {rollout_id(prefix_id, issue) for prefix_id in prefixes for issue in range(ROLLOUTS)}


def assert_complete(job: Job) -> None:
    rollouts = pl.read_parquet(job.run_dir / "rollouts" / "*.parquet")
    assert sorted(rollouts["rollout_id"]) == sorted(planned(job.run_dir))
    assert set(rollouts["finish"].cast(pl.String)) <= {"stop", "length"}
    assert all_ended(job.engine())


def test_a_killed_engine_is_replaced_and_every_rollout_is_there_once(job: Job) -> None:
    process = job.start()
    job.wait_for_rollouts(process)
    cores = [engine for engine in job.engine() if "EngineCore" in " ".join(engine.cmdline())]
    assert cores
    kill(cores)
    process.wait()
    assert process.returncode == 0, job.text()
    assert "replacing a worker" in job.text()
    causes = [line.partition(replaced_worker(""))[2] for line in job.text().splitlines() if replaced_worker("") in line]
    assert causes, job.text()
    assert all("vLLM died: its process EngineCore" in cause and "was killed by SIGKILL" in cause for cause in causes)
    assert_complete(job)


def test_an_engine_that_outlived_everything_is_ended_by_the_next_start(job: Job) -> None:
    first = job.start()
    job.wait_for_rollouts(first)
    engine = job.engine()
    others = [process for process in job.processes() if process not in engine]
    for process in others:  # stopped first, so that none of them can end the engine
        process.suspend()
    kill(others)
    first.wait()
    assert all_ended(others)
    assert any(lives(process) for process in engine)
    second = job.start()
    second.wait()
    assert second.returncode == 0, job.text()
    assert all_ended(engine)
    assert_complete(job)
