"""Settings of the policies that vLLM serves in this process: policy=embedded and policy=hf."""

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt
from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, CHOOSES, FREE, REFUSED, Settings
from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.core.devices import KNOWN, device_named


@dataclass(kw_only=True, slots=True)
class DeviceConfig(Settings):
    """What a device can do, where it is not known or not what its name says. It changes what is told of a run's speed, and over
    how many GPUs a model is spread, nothing else."""

    SECTION: ClassVar[str] = "policy.device"
    name: str = ""
    """One that `core.devices` knows, or any with `bandwidth` and `flops`."""
    bandwidth: Annotated[float | None, Gt(0), Lt(math.inf)] = None
    """Of the memory, in bytes/s."""
    flops: Annotated[float | None, Gt(0), Lt(math.inf)] = None
    """FLOP/s, dense, in the number format that the engine computes in."""
    memory: Annotated[float | None, Gt(0), Lt(math.inf)] = None
    """Bytes."""

    def check(self) -> None:
        if self.name and device_named(self.name) is None and None in (self.bandwidth, self.flops):
            raise ValueError(
                f"policy.device.name={self.name} is not known: choose {', '.join(KNOWN)}, or give policy.device.bandwidth and "
                "policy.device.flops with it"
            )


@dataclass(kw_only=True, slots=True)
class VllmConfig(PolicyConfig):
    revision: str | None = None
    dtype: str = "auto"
    quantization: str | None = None
    tensor_parallel: Annotated[int | None, Ge(1), FREE] = None
    """GPUs of one worker, on one node. None: as few as the model needs."""
    memory_share: Annotated[float | None, Range(gt=0, le=1), FREE] = None
    """Share of the GPU's memory that vLLM may take; null: by device, see `engines.defaults`."""
    kv_cache_gib: Annotated[float, Gt(0), FREE] = 2.0
    """On a CPU: memory for the KV cache."""
    max_num_seqs: Annotated[int | None, Ge(1), FREE] = None
    """Requests that run at once; null: by device."""
    max_num_batched_tokens: Annotated[int | None, Ge(1), FREE] = None
    """Tokens of one forward pass, prompts included; null: by device."""
    kv_cache_dtype: str | None = None
    """Null: the model's own type. Fewer bits (`fp8`) change the policy a little."""
    speculative_tokens: Annotated[int | None, Ge(1)] = None
    """Tokens that are guessed ahead and then checked by the policy; null: none."""
    speculative_model: str | None = None
    """The draft model that guesses; null: guesses are copied from what the prompt and completion say already."""
    enforce_eager: Annotated[bool | None, FREE] = None
    load_format: Annotated[str, FREE] = "auto"
    device: Annotated[DeviceConfig, FREE] = field(default_factory=DeviceConfig)

    def check_complete(self, sampling: SamplingConfig) -> None:
        if self.speculative_model and self.speculative_tokens is None:
            raise ValueError("policy.speculative_model guesses nothing without policy.speculative_tokens=NUMBER")
        if self.speculative_tokens is not None and sampling.min_p > 0:
            raise ValueError(
                f"sampling.min_p={sampling.min_p} cannot be had with policy.speculative_tokens: vLLM has no such sampling"
            )


@dataclass(kw_only=True, slots=True)
class EmbeddedConfig(VllmConfig):
    """The model that comes with the package: it has no name to be given."""

    kind: Annotated[str, BY_GROUP] = "embedded"


@dataclass(kw_only=True, slots=True)
class HfConfig(VllmConfig):
    kind: Annotated[str, BY_GROUP] = "hf"
    model: Annotated[str, CHOOSES, REFUSED] = ""
    """A Hugging Face name or a local folder. Given alone it chooses policy=hf."""

    def check_complete(self, sampling: SamplingConfig) -> None:
        if not self.model:
            raise ValueError("policy=hf needs policy.model=NAME_OR_FOLDER")
        VllmConfig.check_complete(self, sampling)
