"""What `make bench-gpu` gives the engine to do: the model, chains of known length, and the settings of `label` for them."""

import json
import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.config.fields import as_type
from pipeline.config.label import LabelConfig
from pipeline.core.records import Request
from pipeline.engines.embedded import embedded_model
from pipeline.engines.hugging_face import HfTokenizer
from pipeline.engines.settings import VllmConfig
from pipeline.engines.vllm.arguments import engine_arguments
from pipeline.engines.vllm.loaded import cpu_dtype
from tests.bench.recorder import requests_of
from tests.checkout import ROOT, write_rows
from tests.settings import compose_label

ARCHITECTURES = ROOT / "tests" / "bench" / "architectures"
STEPS = 10
ROLLOUTS = 8
CONTEXT = 1024
TEMPERATURE = 1.0
SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much there is to do: enough that the tail of a run, which takes `max_tokens` steps, is a small part of it.

    `killed_chains`: chains of the run whose engine is killed.
    """

    chains: int
    max_tokens: int
    sequences: int
    killed_chains: int


ON_GPU = Scale(chains=100, max_tokens=256, sequences=1024, killed_chains=30)
"""2 million tokens, eight times what runs at once. The pipeline runs 1,024 sequences on an H100 by default."""
ON_CPU = Scale(chains=3, max_tokens=16, sequences=64, killed_chains=12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What all parts share. `model`: what vLLM loads. `gpu`: as its driver calls it; None for a trial on the CPU. `settings`:
    words of `label`."""

    model: str
    random_weights: bool
    gpu: str | None
    folder: Path
    scale: Scale
    settings: Sequence[str]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({**asdict(self), "folder": str(self.folder)}), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Job":
        stored = json.loads(path.read_text("utf-8"))
        return cls(**{**stored, "folder": Path(stored["folder"]), "scale": Scale(**stored["scale"])})

    def config(self) -> LabelConfig:
        return compose_label([*self.settings, f"run_dir={self.folder}/unused"])

    def engine(self, **changed: object) -> Mapping[str, object]:
        """What the pipeline's own engine is asked for, with these arguments of vLLM changed."""
        policy = as_type(self.config().policy, VllmConfig)
        dtype = policy.dtype if self.gpu else cpu_dtype()
        asked = engine_arguments(policy, model=self.model, dtype=dtype, device=self.gpu or "cpu", seed=0)
        return {**asked, **changed}

    def prompts(self) -> list[list[int]]:
        """The prompts of a run, in its order: read again and again, made once."""
        kept = self.folder / "prompts.json"
        if not kept.is_file():
            kept.write_text(json.dumps([list(request.prefix.prompt_ids) for request in self._requests()]))
        return [list(ids) for ids in json.loads(kept.read_text())]

    def _requests(self) -> list[Request]:
        from transformers import AutoTokenizer

        tokenizer, config = HfTokenizer(AutoTokenizer.from_pretrained(self.model)), self.config()
        assert config.policy.max_model_len is not None
        return requests_of(config, self.folder / "staged", tokenizer, config.policy.max_model_len)


def job(name: str, folder: Path, gpu: str | None, scale: Scale) -> Job:
    """`name`: a shipped architecture, a Hugging Face name or a folder."""
    model, random_weights = _model(name, folder)
    settings = _settings(folder, model, scale, random_weights=random_weights)
    return Job(
        model=model,
        random_weights=random_weights,
        gpu=gpu,
        folder=folder,
        scale=scale,
        settings=settings,
    )


def asked_of_driver(query: str, *more: str) -> list[str]:
    """What nvidia-smi says of each GPU."""
    asked = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", *more]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    return [line.strip() for line in done.stdout.strip().splitlines()]


def gpu_name() -> str | None:
    """As its driver calls the first GPU; None where there is none."""
    try:
        return next(iter(asked_of_driver("name")), None)
    except (OSError, subprocess.CalledProcessError):
        return None


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


def shipped() -> list[str]:
    return sorted(path.stem for path in ARCHITECTURES.glob("*.json"))


def _model(name: str, folder: Path) -> tuple[str, bool]:
    """What vLLM is to load, and whether with random weights."""
    if name not in shipped():
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
        # Compared with one engine and with the bound of one device, whatever else this machine has.
        "cluster.workers=1",
    ]
    return [*settings, "policy.load_format=dummy", "grader.fallback=none"] if random_weights else settings
