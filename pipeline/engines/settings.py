"""Settings of the policies: policy=embedded and policy=hf, which vLLM serves in this process, and policy=openai, which sends
requests to running servers."""

import math
import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Lt
from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, CHOOSES, FREE, REFUSED, Settings, check
from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.core.hardware import KNOWN, device_named

DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
_BASE_URL = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(/[A-Za-z0-9._~/-]*)?")
_LAST_PORT = 65_535
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")


@dataclass(kw_only=True, slots=True)
class DeviceConfig(Settings):
    """Speed and memory of the device, where they are unknown or differ from what its name says. They affect only the planned
    and reported speed of a run and the number of GPUs over which a model is spread."""

    SECTION: ClassVar[str] = "policy.device"
    name: str = ""
    """A known device, such as `H100 SXM`, `H200 SXM`, `A100 80GB SXM` or `L40S`, or any name together with `bandwidth` and
    `flops`."""
    bandwidth: Annotated[float | None, Gt(0), Lt(math.inf)] = None
    """Memory bandwidth in bytes/s."""
    flops: Annotated[float | None, Gt(0), Lt(math.inf)] = None
    """Dense FLOP/s in the number format that the engine computes in."""
    memory: Annotated[float | None, Gt(0), Lt(math.inf)] = None
    """Memory of one device in bytes."""

    def check(self) -> None:
        if self.name and device_named(self.name) is None and None in (self.bandwidth, self.flops):
            raise ValueError(
                f"policy.device.name={self.name} is unknown: choose {', '.join(KNOWN)}, or give policy.device.bandwidth and "
                "policy.device.flops with it"
            )


@dataclass(kw_only=True, slots=True)
class VllmConfig(PolicyConfig):
    revision: str | None = None
    """Revision of the model on the Hugging Face Hub: a branch, a tag or a commit."""
    dtype: str = "auto"
    """Number format of the weights. auto: the model's own."""
    quantization: str | None = None
    """A quantization method of vLLM. null: as the model's files say."""
    tensor_parallel: Annotated[int | None, Ge(1), FREE] = None
    """GPUs per worker, all on one node. null: as few as the model needs."""
    memory_share: Annotated[float | None, Range(gt=0, le=1), FREE] = None
    """Share of the GPU's memory that vLLM may use. null: 0.9, or 0.9 times `cluster.gpus_per_worker` if that is below 1."""
    kv_cache_gib: Annotated[float, Gt(0), FREE] = 2.0
    """Memory of the KV cache in GiB, on a CPU."""
    max_num_seqs: Annotated[int | None, Ge(1), FREE] = None
    """Requests that run at once. null: a default for the device."""
    max_num_batched_tokens: Annotated[int | None, Ge(1), FREE] = None
    """Tokens of one forward pass, prompts included. null: a default for the device."""
    kv_cache_dtype: str | None = None
    """Number format of the KV cache. null: the model's own. Fewer bits (`fp8`) change the policy slightly."""
    speculative_tokens: Annotated[int | None, Ge(1)] = None
    """Draft tokens per step of speculative decoding, which the policy verifies. null: no speculative decoding."""
    speculative_model: str | None = None
    """The draft model. null: drafts are n-grams copied from the prompt and the completion so far."""
    max_cudagraph_capture_size: Annotated[int | None, Ge(1), FREE] = None
    """The largest number of sequences for which vLLM captures a CUDA graph; more run outside graphs. null: vLLM's default, 512
    on most GPUs."""
    request_seed: Annotated[int | None, Ge(0), FREE] = None
    """Give each request a seed that follows from this number and the request's id, so that another run with the same number
    samples the same rollouts as far as the device computes alike. null: no seeds; vLLM's fastest sampler on GPUs takes none."""
    enforce_eager: Annotated[bool | None, FREE] = None
    """Run vLLM without CUDA graphs. null: a default for the device."""
    load_format: Annotated[str, FREE] = "auto"
    """How vLLM loads the weights (`load_format` of vLLM)."""
    device: Annotated[DeviceConfig, FREE] = field(default_factory=DeviceConfig)

    def check_complete(self, sampling: SamplingConfig) -> None:
        if self.speculative_model and self.speculative_tokens is None:
            raise ValueError(
                "policy.speculative_model has no effect without a number of tokens: set policy.speculative_tokens=NUMBER"
            )
        if self.speculative_tokens is not None and sampling.min_p > 0:
            raise ValueError(
                f"sampling.min_p={sampling.min_p} and policy.speculative_tokens exclude each other: vLLM does not support both"
            )


@dataclass(kw_only=True, slots=True)
class EmbeddedConfig(VllmConfig):
    """The model that is installed with the package. It takes no `model` setting."""

    kind: Annotated[str, BY_GROUP] = "embedded"


@dataclass(kw_only=True, slots=True)
class HfConfig(VllmConfig):
    kind: Annotated[str, BY_GROUP] = "hf"
    model: Annotated[str, CHOOSES, REFUSED] = ""
    """A Hugging Face name or a local folder. policy.model without policy selects policy=hf."""

    def check_complete(self, sampling: SamplingConfig) -> None:
        if not self.model:
            raise ValueError("policy=hf needs policy.model=NAME_OR_FOLDER")
        VllmConfig.check_complete(self, sampling)


@dataclass(kw_only=True, slots=True)
class OpenAiConfig(Settings):
    """How requests are sent to the servers. Only `extensions` is part of a run's identity."""

    SECTION: ClassVar[str] = "policy.openai"
    urls: Annotated[list[str], FREE, REFUSED] = field(default_factory=list)
    """Base URLs, the part before `/completions`: `http://HOST:8000/v1`. All serve the same model."""
    connections: Annotated[int, Range(ge=1, le=10_000), FREE] = 320
    """HTTP requests open at once per server. vLLM runs 256 sequences at once by default (1024 on an H100) and stays full with
    a quarter more requests than that."""
    choices: Annotated[int, Range(ge=1, le=128), FREE] = 1
    """Completions per HTTP request: adjacent rollouts of a prefix. They return together when the longest is done."""
    timeout_seconds: Annotated[float, Range(gt=0, le=86_400), FREE] = 600.0
    """Longest duration of one HTTP request, including its wait at the server."""
    retries: Annotated[int, Range(ge=0, le=1000), FREE] = 8
    """Retries of a failed request, after pauses that double, before the engine counts as dead."""
    patience_seconds: Annotated[float, Range(gt=0, le=86_400), FREE] = 300.0
    """How long all servers may fail or reject requests, without one answer, before the engine counts as dead."""
    extensions: bool = True
    """Send the fields that vLLM and SGLang accept beyond OpenAI's API. false: for servers that reject unknown fields."""
    api_key_env: Annotated[str, FREE] = DEFAULT_KEY_VARIABLE
    """Name of the environment variable that holds the API key, on the machines of the workers."""

    def check(self) -> None:
        for url in self.urls:
            # The message does not repeat a malformed URL, which may contain a password.
            found = _BASE_URL.fullmatch(url)
            if not found or not 1 <= int(found[2] or 1) <= _LAST_PORT:
                raise ValueError(
                    f"{self.SECTION}.urls has an entry that is not a base URL: write http://HOST:PORT/v1 or https://HOST/v1, "
                    f"without user, password, query or spaces; put a key into the environment ({self.SECTION}.api_key_env)"
                )
        names = [url.rstrip("/") for url in self.urls]
        check(len(set(names)) == len(names), f"{self.SECTION}.urls", self.urls, "URLs that differ")
        if not _VARIABLE.fullmatch(self.api_key_env):
            # The message does not repeat the value, which may be a key.
            raise ValueError(
                f"{self.SECTION}.api_key_env is not the name of an environment variable (capital letters, digits and _): set "
                "it to the name of the variable that holds the key, not to the key itself"
            )


@dataclass(kw_only=True, slots=True)
class OpenAiPolicyConfig(PolicyConfig):
    kind: Annotated[str, BY_GROUP] = "openai"
    model: str = ""
    """The name under which the servers know the model."""
    tokenizer: Annotated[str | None, REFUSED] = None
    """The model's tokenizer: a Hugging Face name or a local folder. null: the same as policy.model."""
    revision: str | None = None
    """Revision of the tokenizer on the Hugging Face Hub: a branch, a tag or a commit."""
    openai: OpenAiConfig = field(default_factory=OpenAiConfig)

    def check_complete(self, sampling: SamplingConfig) -> None:
        if not self.openai.urls or not self.model:
            raise ValueError(
                "policy=openai needs policy.openai.urls=[http://HOST:8000/v1] and policy.model=NAME, as the server names it"
            )
        if not self.openai.extensions and (sampling.top_k or sampling.min_p):
            raise ValueError(
                f"sampling.top_k={sampling.top_k} and sampling.min_p={sampling.min_p:g} are not part of OpenAI's API: set both "
                "to 0, or set policy.openai.extensions=true"
            )
