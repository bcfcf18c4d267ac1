"""kill -9 against vLLM's processes and around them, with the embedded model: nothing is lost, doubled or left running."""

import contextlib
import uuid
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import psutil
import pytest

from pipeline.core.ids import content_id, rollout_id
from pipeline.engines.vllm.reaper import MARK
from tests.bench.gpu_kill import TAG, engine_under_way, killed_engine
from tests.checkout import stepvalue
from tests.faults.runs import alive, until

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
END_SECONDS = 20


def tagged(tag: str) -> list[psutil.Process]:
    """All processes that come from a command with this tag in its environment."""
    found = {process for process in psutil.process_iter() if environment(process).get(TAG) == tag}
    for process in list(found):  # some are started with an environment of their own
        with contextlib.suppress(psutil.NoSuchProcess):
            found.update(process.children(recursive=True))
    return list(found)


def environment(process: psutil.Process) -> dict[str, str]:
    try:
        return dict(process.environ())
    except psutil.Error:
        return {}


def kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def wait_for_end(processes: Sequence[psutil.Process]) -> None:
    until(lambda: not alive([each.pid for each in processes]), END_SECONDS)


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


def assert_complete(run_dir: Path) -> None:
    rollouts = pl.read_parquet(run_dir / "rollouts" / "*.parquet")
    assert sorted(rollouts["rollout_id"]) == sorted(planned(run_dir))
    assert set(rollouts["finish"].cast(pl.String)) <= {"stop", "length"}


def test_a_killed_engine_is_replaced_and_every_rollout_is_there_once(tmp_path: Path) -> None:
    seen = killed_engine(SETTINGS, tmp_path, gpu=False)
    assert seen.faults() == []
    for cause in seen.cause.split(" / "):
        assert "vLLM died: its process EngineCore" in cause
        assert "was killed by SIGKILL" in cause
    assert_complete(tmp_path / "run")


def test_an_engine_that_outlived_everything_is_ended_by_the_next_start(tmp_path: Path) -> None:
    log, tag, words = tmp_path / "log", uuid.uuid4().hex, ("label", f"run_dir={tmp_path / 'run'}", *SETTINGS)
    first = stepvalue(log, *words, environment={TAG: tag})
    try:
        engine_under_way(first, log, tag)
        engine = [process for process in tagged(tag) if MARK in environment(process)]
        others = [process for process in tagged(tag) if process not in engine]
        for process in others:  # stopped first, so that none of them can end the engine
            process.suspend()
        kill(others)
        first.wait()
        wait_for_end(others)
        assert alive([process.pid for process in engine])
        assert stepvalue(log, *words, environment={TAG: tag}).wait() == 0, log.read_text()
        wait_for_end(engine)
        assert_complete(tmp_path / "run")
        wait_for_end([process for process in tagged(tag) if MARK in environment(process)])
    finally:
        kill(tagged(tag))
