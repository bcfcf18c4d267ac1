"""`kill -9` of an engine's process in the middle of a run: is its memory freed, its death explained, and the run completed?"""

import math
import os
import re
import secrets
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import psutil

from pipeline.core.progress import replaced_worker
from tests.bench.gpu_work import asked_of_driver
from tests.checkout import stepvalue

START_SECONDS = 240.0
FREE_SECONDS = 30.0
LOOK_SECONDS = 0.2
FREED_SHARE = 0.5
"""Of the memory in use before: a dead engine leaves less. It held 0.9 of the device."""
SETTLE_SECONDS = 5.0
_UNDER_WAY = re.compile(r"rollouts [1-9]")
_READY = re.compile(r"^labelling", re.MULTILINE)
TAG = "STEPVALUE_BENCH_RUN"
_CAUSE = re.compile(rf"warning: ({re.escape(replaced_worker(''))}.+)$", re.MULTILINE)
"""The run's warning of the dead engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """`memory`: MiB in use on the device with the engine, and the least in FREE_SECONDS after its death; None without a GPU.

    `gone`: whether the process ended. `cause`: what the run says of it. `code`: how the run ended. `again`: how the same
    command ended when it was given once more. `rollouts`, `distinct`: those stored.
    """

    memory: tuple[float, float] | None
    gone: bool
    cause: str
    code: int
    again: int
    rollouts: int
    distinct: int

    def faults(self) -> list[str]:
        found = []
        if not self.gone:
            found.append("the engine's process did not end")
        if self.memory and self.memory[1] > FREED_SHARE * self.memory[0]:
            found.append(
                f"of {self.memory[0]:,.0f} MiB, {self.memory[1]:,.0f} were still in use {FREE_SECONDS:.0f} s later"
            )
        if not self.cause:
            found.append("the run says nothing of the dead engine")
        if self.code:
            found.append(f"the run ended with exit code {self.code}")
        if self.again:
            found.append(f"the same command again ended with exit code {self.again}")
        if self.rollouts != self.distinct or not self.rollouts:
            found.append(f"of {self.rollouts} stored rollouts, {self.distinct} are distinct")
        return found

    def figures(self) -> dict[str, float | str | None]:
        with_engine, after = self.memory or (None, None)
        return {"memory_mib": with_engine, "memory_after_mib": after, "rollouts": self.rollouts, "cause": self.cause}

    def lines(self) -> Iterator[str]:
        if self.memory:
            yield f"memory in use: {self.memory[0]:,.0f} MiB with the engine, {self.memory[1]:,.0f} after it was killed"
        yield f"the run says: {self.cause}"
        yield f"{self.rollouts:,} rollouts stored, {self.distinct:,} distinct; exit code {self.code}, then {self.again}"


def killed_engine(words: Sequence[str], folder: Path, *, gpu: bool) -> Killed:
    """Run `label` with these words, kill its engine when rollouts come, and let it end; then give the command once more.

    Raises SystemExit with its last words where the run ends before there is an engine to kill.
    """
    run_dir, log = folder / "run", folder / "label.log"
    command = ("label", *words, f"run_dir={run_dir}")
    tag = secrets.token_hex(8)
    process = stepvalue(log, *command, environment={TAG: tag})
    try:
        core = engine_under_way(process, log, tag)
        with_engine = memory_in_use() if gpu else None
        core.kill()
        gone = not psutil.wait_procs([core], FREE_SECONDS)[1]
        memory = (with_engine, _least_memory()) if with_engine is not None else None
        code = process.wait()
    finally:
        process.kill()
        process.wait()
    text = log.read_text("utf-8", errors="replace")
    again = stepvalue(folder / "again.log", *command).wait()
    stored = pl.read_parquet(run_dir / "rollouts" / "*.parquet")["rollout_id"] if not code else pl.Series("none", [])
    return Killed(
        memory=memory,
        gone=gone,
        cause=causes(text),
        code=code,
        again=again,
        rollouts=len(stored),
        distinct=stored.n_unique(),
    )


def causes(output: str) -> str:
    """Why workers were replaced at work, as the output of `label` says it. Empty if it does not."""
    return " / ".join(_CAUSE.findall(output))


def memory_in_use() -> float:
    """MiB on the device that this process sees, see `gpu.one_gpu`."""
    return float(asked_of_driver("memory.used", f"--id={os.environ.get('CUDA_VISIBLE_DEVICES', '0')}")[0])


def _least_memory() -> float:
    """Over a while: another engine takes the place of the dead one, and takes memory again."""
    deadline = time.monotonic() + FREE_SECONDS
    least = memory_in_use()
    while time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        least = min(least, memory_in_use())
    return least


def engine_under_way(process: "subprocess.Popen[bytes]", log: Path, tag: str) -> psutil.Process:
    """The engine's process, when there are rollouts, or SETTLE_SECONDS after the first engine was there."""
    deadline, ready = time.monotonic() + START_SECONDS, math.inf
    found: list[psutil.Process] = []
    while time.monotonic() < deadline and process.poll() is None:
        text = log.read_text("utf-8", errors="replace")
        if _READY.search(text):
            ready = min(ready, time.monotonic())
            found = _engines(tag)
            if found and (_UNDER_WAY.search(text) or time.monotonic() - ready > SETTLE_SECONDS):
                return found[0]
        time.sleep(LOOK_SECONDS)
    raise SystemExit(
        f"there was no engine to kill: ready {ready < math.inf}, {len(found)} processes, exit code {process.poll()}: "
        + log.read_text("utf-8", errors="replace")[-2000:]
    )


def _engines(tag: str) -> list[psutil.Process]:
    """The processes of vLLM's engine that have this run's tag in their environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if "EngineCore" in " ".join(process.cmdline()) and process.environ().get(TAG) == tag:
                found.append(process)
    return found
