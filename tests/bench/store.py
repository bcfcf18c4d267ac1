"""The run directory: what storing costs beside a model, and how long a large log takes to be read before a run goes on."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from pipeline.__main__ import compose_label
from pipeline.data.rows import input_digest
from pipeline.engines.base import Surroundings
from pipeline.graders.registry import checker_for
from pipeline.runtime.intake import stage
from pipeline.runtime.problem_budget import unit_target_of
from pipeline.runtime.state import identity
from pipeline.runtime.worker import UnitTask, Worker, engine_for
from pipeline.storage.commits import INPUT, Commit, CommitState
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.unit_log import UnitLog
from pipeline.storage.units import units_of
from tests.bench.control import STEPS, write_chains
from tests.conftest import ROOT
from tests.settings import deciding

CHAINS = 41
FLUSH_SECONDS = 5.0
LOG_ROLLOUTS = 1_000_000
UNIT_PROBLEMS = (32, 4)
_SAMPLE_SECONDS = 0.02


def store() -> None:
    _cost_beside_a_model()
    _planning()


class _TimedLog(UnitLog):
    """Counts the seconds in which the log is read and written."""

    seconds = 0.0

    def read(self) -> Any:
        return self._timed(super().read)

    def append(self, *args: Any) -> Any:
        return self._timed(super().append, *args)

    def complete(self, *args: Any) -> Any:
        return self._timed(super().complete, *args)

    def _timed(self, work: Callable[..., Any], *args: Any) -> Any:
        began = time.perf_counter()
        try:
            return work(*args)
        finally:
            _TimedLog.seconds += time.perf_counter() - began


def _cost_beside_a_model() -> None:
    print(f"\nstore: {CHAINS} chains of the sample on the embedded model, flushed every {FLUSH_SECONDS:g} s")
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        settings = [
            "data=sample",
            "estimator=fixed",
            f"data.limit={CHAINS}",
            f"run_dir={folder}/run",
            f"run.flush_seconds={FLUSH_SECONDS}",
        ]
        config = compose_label(settings)
        storage = LocalStorage(Path(folder) / "run")
        staged_id = str(identity(config, input_digest(config.data.path))[STAGED_INPUT])
        with checker_for(config.grader) as checker:
            staged = stage(storage, staged_id, config.data, config.run, checker)
        record = Commit(kind=INPUT, sequence_id=staged_id, number=0, state=CommitState.WHOLE, shards=staged.shards)

        async def work() -> float:
            worker = Worker(
                config, storage, engine_for(config, Surroundings(cpus=psutil.cpu_count() or 1)), log=_TimedLog
            )
            await worker.start()
            began = time.perf_counter()
            await asyncio.gather(
                *(
                    worker.finish_unit(UnitTask(unit=unit, unit_target=unit_target_of(*deciding(config))))
                    for unit in units_of(storage, record)
                )
            )
            seconds = time.perf_counter() - began
            await worker.stop()
            return seconds

        wall = asyncio.run(work())
        parts = len(storage.names("flushed"))
        print(
            f"  {wall:.1f} s of labelling, {parts} parts flushed; {_TimedLog.seconds:.2f} s in the store, "
            f"{_TimedLog.seconds / wall:.1%} of the wall time"
        )


def _planning() -> None:
    for unit_problems in UNIT_PROBLEMS:
        print(
            f"\nstore: reading a log of {LOG_ROLLOUTS:,} rollouts before a run goes on, units of {unit_problems} problems"
        )
        with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
            data = write_chains(Path(folder), LOG_ROLLOUTS // (STEPS * 8))
            settings = [
                f"data.path={data}",
                f"run_dir={folder}/run",
                "policy=oracle",
                "estimator=fixed",
                "run.show_chains=0",
                "run.report=false",
            ]
            settings.append(f"run.unit_problems={unit_problems}")
            _measured([*settings])
            records = sorted((Path(folder) / "run" / "commits").glob("unit-*.json"))
            records[
                0
            ].unlink()  # one unit is owed again, and no cluster answers: the command ends where labelling would begin
            seconds, memory = _measured([*settings, "cluster.address=127.0.0.1:1"])
            print(f"  {len(records):,} units: {seconds:.1f} s and {memory:.0f} MiB, start of the command included")


def _measured(settings: list[str]) -> tuple[float, float]:
    """Seconds and peak MiB of a `label` command."""
    began = time.monotonic()
    process = psutil.Popen(
        [sys.executable, "-m", "pipeline", "label", *settings],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    memory = 0
    while process.poll() is None:
        try:
            memory = max(memory, process.memory_info().rss)
        except psutil.Error:
            break
        time.sleep(_SAMPLE_SECONDS)
    process.wait()
    return time.monotonic() - began, memory / 2**20
