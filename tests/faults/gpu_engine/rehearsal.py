"""A plug-in policy whose engines do on each GPU what a file says: fail, die or start slowly. Others answer all requests."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn

from pipeline.config.fields import BY_GROUP, FREE, Settings
from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.core.errors import PlaceError
from pipeline.core.records import Completion, Finish, Request
from pipeline.engines.base import BatchEngine, Engine, Policy, PolicyFacts, Surroundings
from pipeline.engines.oracle import ByteTokenizer
from pipeline.graders.base import Ending

DIED_SAYING = "CUDA error: uncorrectable ECC error encountered"


@dataclass(kw_only=True, slots=True)
class RehearsalConfig(Settings):
    SECTION: ClassVar[str] = "policy.rehearsal"
    folder: Annotated[str, FREE] = ""
    """Holds `faults.json`, and gets a file for each start."""
    pause: Annotated[float, FREE] = 0.0
    """Seconds before each batch of answers."""


@dataclass(kw_only=True, slots=True)
class RehearsalPolicyConfig(PolicyConfig):
    kind: Annotated[str, BY_GROUP] = "rehearsal"
    rehearsal: RehearsalConfig = field(default_factory=RehearsalConfig)


class RehearsalEngine(BatchEngine):
    def __init__(self, settings: RehearsalPolicyConfig, around: Surroundings) -> None:
        super().__init__(ByteTokenizer(), policy="rehearsal", max_model_len=100_000)
        self._folder = Path(settings.rehearsal.folder)
        self._pause = settings.rehearsal.pause
        self._around = around

    async def start(self) -> None:
        gpu, began = _gpu(), time.time()
        match self._fault():
            case "full":
                raise PlaceError(f"Free memory on device cuda:0 (3.12/79.11 GiB) {os.environ.get('HF_TOKEN', '')}")
            case "dies":
                _die()
            case float(seconds):
                await asyncio.sleep(seconds)
        started = {
            "gpu": gpu,
            "share": self._around.gpus,
            "began": began,
            "ended": time.time(),
            "variables": {name: os.environ.get(name) for name in ("HF_TOKEN", "HF_HOME", "VLLM_HOST_IP", "MY_KEY")},
        }
        (self._folder / f"start-{os.getpid()}.json").write_text(json.dumps(started))

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        await asyncio.sleep(self._pause)
        if self._fault() == "dies at work":
            _die()
        texts = [f"The answer is {request.problem.golds[0]}." for request in requests]
        return [
            Completion(request=request, text=text, finish=Finish.STOP, n_tokens=len(text))
            for request, text in zip(requests, texts, strict=True)
        ]

    def _fault(self) -> Any:
        faults: dict[str, Any] = json.loads((self._folder / "faults.json").read_text())
        return faults.get(_gpu(), faults.get("any", ""))


def _gpu() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")


def _die() -> NoReturn:
    print(DIED_SAYING, file=sys.stderr, flush=True)
    os._exit(1)


class Rehearsal(Policy):
    Config = RehearsalPolicyConfig
    settings: RehearsalPolicyConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        return RehearsalEngine(self.settings, around)

    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        return RehearsalEngine(self.settings, Surroundings())
