"""Bare `vllm.LLM.generate` in a process of its own, which loads its model once and can be asked again and again."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from pipeline.config.fields import as_type
from pipeline.config.label import LabelConfig
from pipeline.engines.settings import VllmConfig
from tests.checkout import ROOT

SCRIPT = ROOT / "tests" / "bench" / "raw_generate.py"
GRACE_SECONDS = 30.0
"""For vLLM to end its processes and to remove their shared memory."""


def on_cpu(config: LabelConfig) -> dict[str, str]:
    """The environment of an engine on all cores of this process, as the pipeline's has it."""
    return {
        "VLLM_CPU_KVCACHE_SPACE": f"{as_type(config.policy, VllmConfig).kv_cache_gib:g}",
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, sorted(os.sched_getaffinity(0)))),
        "VLLM_LOGGING_LEVEL": "ERROR",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Tokens generated, in which time. `cpu_seconds` and `other_cpu_seconds`: of vLLM's own processes and of its caller."""

    tokens: int
    seconds: float
    cpu_seconds: float
    other_cpu_seconds: float

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEngine:
    """See `raw_engine`."""

    process: "subprocess.Popen[str]"
    log: Path

    def generated(self) -> Rate:
        """What all prompts take, once. Raises SystemExit with its last words where it fails."""
        assert self.process.stdin is not None
        before, before_others = self._cpu_seconds()
        self.process.stdin.write("again\n")
        self.process.stdin.flush()
        _, tokens, seconds = self.said("DONE").split()
        after, after_others = self._cpu_seconds()
        return Rate(
            tokens=int(tokens),
            seconds=float(seconds),
            cpu_seconds=after - before,
            other_cpu_seconds=after_others - before_others,
        )

    def said(self, beginning: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(beginning):
                return line
        raise SystemExit(self.log.read_text(errors="replace")[-3000:])

    def _cpu_seconds(self) -> tuple[float, float]:
        caller = psutil.Process(self.process.pid)
        engine = sum(_cpu_seconds(child) for child in caller.children(recursive=True))
        return engine, _cpu_seconds(caller)


@contextmanager
def raw_engine(
    folder: Path,
    engine: Mapping[str, object],
    environment: Mapping[str, str],
    config: LabelConfig,
    prompts: Sequence[Sequence[int]],
) -> Iterator[RawEngine]:
    """`LLM(**engine)` under the `sampling` settings of `config`, loaded. Its processes end with the context."""
    sampling = config.sampling
    job = {
        "environment": dict(environment),
        "engine": dict(engine),
        "sampling": {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "min_p": sampling.min_p,
            "max_tokens": sampling.max_tokens,
        },
        "prompts": [list(ids) for ids in prompts],
    }
    (folder / "raw.json").write_text(json.dumps(job))
    log = folder / "raw.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder / "raw.json")],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    raw = RawEngine(process=process, log=log)
    try:
        raw.said("READY")
        yield raw
    finally:
        _end(process)


def _end(process: "subprocess.Popen[str]") -> None:
    """Without more input it ends by itself and removes its shared memory, which it cannot do when it is killed."""
    assert process.stdin is not None
    with suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
        with suppress(BrokenPipeError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        for child in family:
            with suppress(psutil.Error):
                child.kill()
    process.kill()
    process.wait()


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
