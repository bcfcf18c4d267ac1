"""`make bench-gpu MODEL=...`: bare `vllm.LLM.generate`, the pipeline on the same prompts, and the device's decode bound.

MODEL is one of `architectures/`, which is given random weights and a small tokenizer, so that nothing is downloaded; or a
Hugging Face name or a local folder, with its own weights. Random weights give random text of the full length. Without an
NVIDIA GPU it is a trial on the CPU, with little work and no bound.
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from pipeline.__main__ import compose_label
from pipeline.config.fields import as_type
from pipeline.config.label import LabelConfig
from pipeline.core.hardware import device_named
from pipeline.core.records import Request
from pipeline.engines.architectures import UnknownArchitecture, architecture_of
from pipeline.engines.detected_hardware import is_cpu_build
from pipeline.engines.embedded import embedded_model
from pipeline.engines.hugging_face import HfTokenizer
from pipeline.engines.roofline import decode_bound
from pipeline.engines.settings import VllmConfig
from pipeline.engines.vllm.arguments import engine_arguments
from pipeline.engines.vllm.engine import cpu_dtype
from tests.bench.engine import LabelRun, labelled
from tests.bench.raw import Rate, on_cpu, raw_engine
from tests.bench.recorder import requests_of
from tests.bench.results import FLAG, printed
from tests.checkout import ROOT, write_rows

ARCHITECTURES = ROOT / "tests" / "bench" / "architectures"
STEPS = 10
ROLLOUTS = 8
CONTEXT = 1024
TEMPERATURE = 1.0
SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much there is to do: enough that the tail of the run, which takes `max_tokens` steps, is a small part of it."""

    chains: int
    max_tokens: int
    sequences: int


ON_GPU = Scale(chains=200, max_tokens=256, sequences=1024)
"""4.1 million tokens, sixteen times what runs at once. vLLM runs 1,024 sequences on an H100 by default."""
ON_CPU = Scale(chains=6, max_tokens=32, sequences=128)


def main() -> int:
    names = [argument for argument in sys.argv[1:] if argument != FLAG]
    if len(names) != 1 or not names[0]:
        print(f"usage: make bench-gpu MODEL={'|'.join(_shipped())}, a Hugging Face name or a folder", file=sys.stderr)
        return 2
    if gpu_name() and is_cpu_build():
        print(
            "this Python has vLLM's CPU build: make an environment for the GPU as tests/bench/README.md says, and name it, "
            "GPU_PYTHON=ENVIRONMENT/bin/python",
            file=sys.stderr,
        )
        return 2
    with printed(f"bench-gpu {names[0]}", record=FLAG in sys.argv):
        measure(names[0])
    return 0


def measure(name: str) -> None:
    gpu = gpu_name()
    scale = ON_GPU if gpu else ON_CPU
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as work:
        folder = Path(work)
        model, random_weights = _model(name, folder)
        settings = _settings(folder, model, scale, random_weights=random_weights)
        requests = _requests(model, folder, settings)
        prompts = [list(request.prefix.prompt_ids) for request in requests]
        weights = ", random weights," if random_weights else ""
        print(f"{name}{weights} on {gpu or 'the CPU: no NVIDIA GPU was found'}")
        print(
            f"  {scale.chains} chains of {STEPS} steps, {len(prompts):,} prompts of {mean(map(len, prompts)):.0f} tokens, "
            f"at most {scale.max_tokens} tokens each, {scale.sequences} sequences at once"
        )
        config = compose_label([*settings, f"run_dir={folder}/unused"])
        engine = _engine(model, config, gpu)
        with raw_engine(
            folder, engine, {"VLLM_LOGGING_LEVEL": "ERROR"} if gpu else on_cpu(config), config, prompts
        ) as raw:
            bare = raw.generated()
        print(f"  LLM.generate {_shown(bare)}", flush=True)
        ours = labelled([*settings, f"run_dir={folder}/run"], folder / "run")
        for line in _lines(bare, ours):
            print(line)
        for line in bound_lines(Path(model), gpu, prompts, bare, ours.rate, scale):
            print(line)


def gpu_name() -> str | None:
    """As its driver calls the first GPU; None where there is none."""
    if shutil.which("nvidia-smi") is None:
        return None
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    names = found.stdout.strip().splitlines() if found.returncode == 0 else []
    return names[0].strip() if names else None


def write_chains(path: Path, chains: int) -> Path:
    """Chains of STEPS steps and some 300 tokens, each of its own numbers."""
    rng = random.Random(SEED)
    return write_rows(path, [_chain(rng, number) for number in range(chains)])


def _chain(rng: random.Random, number: int) -> dict[str, object]:
    value = rng.randint(10, 99)
    problem = (
        f"Problem {number}. A counter stands at {value}. What does it show after all of these changes, one by one?"
    )
    steps = []
    for step in range(1, STEPS):
        more = rng.randint(10, 99)
        steps.append(
            f"Step {step}: now the counter goes up by {more}, and so it shows {value} + {more} = {value + more}."
        )
        value += more
    return {"id": f"{number}", "problem": problem, "answer": f"{value}", "steps": [*steps, f"The answer is {value}."]}


def _shipped() -> list[str]:
    return sorted(path.stem for path in ARCHITECTURES.glob("*.json"))


def _model(name: str, folder: Path) -> tuple[str, bool]:
    """What vLLM is to load, and whether with random weights."""
    if name not in _shipped():
        return name, False
    model = folder / name
    model.mkdir()
    shutil.copy(ARCHITECTURES / f"{name}.json", model / "config.json")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(embedded_model() / file, model / file)
    return str(model), True


def _settings(folder: Path, model: str, scale: Scale, *, random_weights: bool) -> list[str]:
    settings = [
        f"data.path={write_chains(folder / 'chains.jsonl', scale.chains)}",
        f"policy.model={model}",
        f"policy.max_model_len={CONTEXT}",
        f"policy.max_num_seqs={scale.sequences}",
        "policy.prompt.style=plain",
        "sampling.stop_at_answer=false",
        "estimator=fixed",
        f"sampling.rollouts={ROLLOUTS}",
        f"sampling.max_tokens={scale.max_tokens}",
        f"sampling.temperature={TEMPERATURE}",
        "run.show_chains=0",
        "run.report=false",
    ]
    return [*settings, "policy.load_format=dummy", "grader.fallback=none"] if random_weights else settings


def _requests(model: str, folder: Path, settings: list[str]) -> list[Request]:
    from transformers import AutoTokenizer

    tokenizer = HfTokenizer(AutoTokenizer.from_pretrained(model))
    config = compose_label([*settings, f"run_dir={folder}/unused"])
    return requests_of(config, folder / "staged", tokenizer, CONTEXT)


def _engine(model: str, config: LabelConfig, gpu: str | None) -> dict[str, object]:
    """What the pipeline's own engine is asked for."""
    policy = as_type(config.policy, VllmConfig)
    dtype = policy.dtype if gpu else cpu_dtype()
    return engine_arguments(policy, model=model, dtype=dtype, device=gpu or "cpu", seed=0)


def _shown(rate: Rate) -> str:
    return f"{rate.tokens_per_second:,.0f} tokens/s ({rate.tokens:,} in {rate.seconds:.0f} s)"


def _lines(bare: Rate, ours: LabelRun) -> Iterator[str]:
    ratio = ours.rate.tokens_per_second / bare.tokens_per_second
    yield f"  pipeline     {_shown(ours.rate)} after {ours.starting:.0f} s to start: {ratio:.3f} of LLM.generate"
    for line in ours.shown:
        yield f"    {line}"


def bound_lines(
    model: Path, gpu: str | None, prompts: list[list[int]], bare: Rate, ours: Rate, scale: Scale
) -> Iterator[str]:
    if gpu is None:
        return
    device = device_named(gpu)
    if device is None:
        yield f"  no bound: {gpu} is not in pipeline/core/hardware.py"
        return
    if not (model / "config.json").is_file():
        yield "  no bound: give a local folder, whose config.json has the model's sizes"
        return
    try:
        architecture = architecture_of(json.loads((model / "config.json").read_text()))
    except UnknownArchitecture as error:
        yield f"  no bound: {error}"
        return
    context = mean(map(len, prompts)) + bare.tokens / len(prompts) / 2
    bound = decode_bound(architecture, device, batch=scale.sequences, context=context)
    where = f"an {device.name} at batch {scale.sequences} and context {context:.0f}"
    shares = [rate.tokens_per_second / bound for rate in (bare, ours)]
    yield f"  decode bound of {where}: {bound:,.0f} tokens/s"
    yield f"  LLM.generate reaches {shares[0]:.1%} of it, the pipeline {shares[1]:.1%}"


if __name__ == "__main__":
    sys.exit(main())
