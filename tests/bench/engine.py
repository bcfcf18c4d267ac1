"""The pipeline's tokens per second over those of one bare `vllm.LLM.generate` call with the same prompts."""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from pipeline.__main__ import compose_label
from pipeline.engine.defaults import CPU
from pipeline.engine.embedded import embedded_model
from pipeline.engine.tokenizer import HfTokenizer
from pipeline.engine.vllm import cpu_dtype
from pipeline.errors import EngineDied
from pipeline.grading.choose import checker_for
from pipeline.records import Completion, EngineWork, Load, Request
from pipeline.rows import input_digest
from pipeline.run.goal import goal_of
from pipeline.run.intake import stage
from pipeline.run.journal import Journal
from pipeline.run.plan import identity
from pipeline.run.unit import UnitLabeller
from pipeline.store.commits import INPUT, Commit, State
from pipeline.store.local import LocalStorage
from pipeline.store.run_record import STAGED_INPUT
from pipeline.store.unit_log import UnitLog
from pipeline.store.units import unit_rows, units_of
from tests.conftest import ROOT, run_stepvalue

CHAINS = 40
ROUNDS = 2
_TIME = re.compile(r"\(([\d,]+) tokens/s\)$", re.MULTILINE)

# In a process of its own, as the pipeline's engine is.
_RAW = """
import json, os, sys, time
job = json.load(open(sys.argv[1]))
os.environ.update(job["environment"])
from vllm import LLM, SamplingParams
if __name__ == "__main__":
    llm = LLM(**job["engine"])
    prompts = [{"prompt_token_ids": ids} for ids in job["prompts"]]
    began = time.monotonic()
    outputs = llm.generate(prompts, SamplingParams(**job["sampling"]), use_tqdm=False)
    seconds = time.monotonic() - began
    print("RATE", sum(len(output.outputs[0].token_ids) for output in outputs) / seconds, flush=True)
"""


class _Recorder:
    """An engine that answers nothing and remembers what it was asked."""

    def __init__(self, tokenizer: HfTokenizer) -> None:
        self.tokenizer = tokenizer
        self.max_model_len = 1024
        self.policy = "recorder"
        self.load = Load()
        self.capacity = CPU.max_num_seqs
        self.hardware = None
        self.work = EngineWork()
        self.requests: list[Request] = []

    async def start(self) -> None: ...

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        self.requests.extend(requests)
        yield []

    def abort(self, request_ids: Iterable[str]) -> None: ...

    async def close(self) -> None: ...


def engine_share() -> None:
    print(f"\nengine: {CHAINS} chains of the sample on the embedded model, pipeline and bare LLM.generate in turn")
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        prompts = _prompts(Path(folder) / "staged")
        ratios = []
        for turn in range(ROUNDS):
            raw = _raw_rate(Path(folder), prompts)
            ours = _pipeline_rate(Path(folder) / f"run-{turn}")
            ratios.append(ours / raw)
            print(f"  pipeline {ours:.0f} tokens/s, LLM.generate {raw:.0f} tokens/s, ratio {ours / raw:.3f}")
        print(f"  median ratio {median(ratios):.3f} over {len(prompts)} prompts")


def _overrides(run_dir: Path) -> list[str]:
    return ["data=sample", "estimator=fixed", f"data.limit={CHAINS}", f"run_dir={run_dir}", "run.show_chains=0"]


def _prompts(run_dir: Path) -> list[list[int]]:
    """The prompts of a run, in its own order."""
    from transformers import AutoTokenizer

    config = compose_label(_overrides(run_dir))
    recorder = _Recorder(HfTokenizer(AutoTokenizer.from_pretrained(embedded_model())))
    with checker_for(config.grader) as checker:
        staged_id = str(identity(config, input_digest(config.data.path))[STAGED_INPUT])
        storage = LocalStorage(run_dir)
        staged = stage(storage, staged_id, config.data, config.run, checker)
        record = Commit(kind=INPUT, chain_id=staged_id, number=0, state=State.WHOLE, shards=staged.shards)
        labeller = UnitLabeller(config, recorder, checker)
        for unit in units_of(storage, record):
            journal = Journal(UnitLog(storage, unit.unit_id), grader="", goal=goal_of(config))
            with suppress(EngineDied):  # the recorder answers nothing
                asyncio.run(labeller.label(unit_rows(storage, unit), journal))
    return [list(request.prefix.prompt_ids) for request in recorder.requests]


def _raw_rate(folder: Path, prompts: list[list[int]]) -> float:
    config = compose_label(_overrides(folder))
    job: dict[str, Any] = {
        "environment": {
            "VLLM_CPU_KVCACHE_SPACE": f"{config.policy.kv_cache_gib:g}",
            "VLLM_CPU_OMP_THREADS_BIND": "0-1",
            "VLLM_LOGGING_LEVEL": "ERROR",
        },
        "engine": {
            "model": str(embedded_model()),
            "dtype": cpu_dtype(),
            "max_model_len": config.policy.max_model_len,
            "max_num_seqs": config.policy.max_num_seqs or CPU.max_num_seqs,
            "enforce_eager": True,
            "enable_prefix_caching": True,
            "disable_log_stats": True,
        },
        "sampling": {"temperature": config.sampling.temperature, "max_tokens": config.sampling.max_tokens},
        "prompts": prompts,
    }
    (folder / "job.json").write_text(json.dumps(job))
    (folder / "raw.py").write_text(_RAW)
    done = subprocess.run(
        [sys.executable, str(folder / "raw.py"), str(folder / "job.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    rates = re.findall(r"^RATE ([\d.]+)$", done.stdout, re.MULTILINE)
    if not rates:
        raise SystemExit(done.stderr[-2000:])
    return float(rates[0])


def _pipeline_rate(run_dir: Path) -> float:
    done = run_stepvalue(["label", *_overrides(run_dir)], timeout=3000)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(_TIME.findall(done.stdout)[0].replace(",", ""))
