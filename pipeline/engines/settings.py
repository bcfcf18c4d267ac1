"""Settings of the policies: policy=embedded and policy=hf, which vLLM serves in this process; policy=openai, servers that run
already, and how they are asked."""

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
    """Of the model on the Hugging Face Hub: a branch, a tag or a commit."""
    dtype: str = "auto"
    """Number format of the weights; auto: the model's own."""
    quantization: str | None = None
    """A method that vLLM knows; null: as the model's files say."""
    tensor_parallel: Annotated[int | None, Ge(1), FREE] = None
    """GPUs of one worker, on one node. None: as few as the model needs."""
    memory_share: Annotated[float | None, Range(gt=0, le=1), FREE] = None
    """Share of the GPU's memory that vLLM may take; null: by device, see `vllm.arguments`."""
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
    """Whether vLLM works without CUDA graphs; null: by device."""
    load_format: Annotated[str, FREE] = "auto"
    """How vLLM reads the weights."""
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


@dataclass(kw_only=True, slots=True)
class OpenAiConfig(Settings):
    """How servers are asked is not what they serve: of these settings one is part of a run's identity."""

    SECTION: ClassVar[str] = "policy.openai"
    urls: Annotated[list[str], FREE, REFUSED] = field(default_factory=list)
    """Base URLs, the part in front of `/completions`: `http://HOST:8000/v1`. All serve the same model."""
    connections: Annotated[int, Range(ge=1, le=10_000), FREE] = 320
    """HTTP requests under way at each server. vLLM runs 256 sequences at once by default (1024 on an H100), and stays full
    where a quarter more are at hand."""
    choices: Annotated[int, Range(ge=1, le=128), FREE] = 1
    """Completions per HTTP request, adjacent rollouts of a prefix. Above 1, they come back when the longest is done."""
    timeout_seconds: Annotated[float, Range(gt=0, le=86_400), FREE] = 600.0
    """How long one HTTP request may take, waiting at the server included."""
    retries: Annotated[int, Range(ge=0, le=1000), FREE] = 8
    """How often a request that failed is asked again, after pauses that double, before the engine counts as dead."""
    patience_seconds: Annotated[float, Range(gt=0, le=86_400), FREE] = 300.0
    """How long all servers may fail or turn requests away, without one answer, before the engine counts as dead."""
    extensions: bool = True
    """Send what vLLM and SGLang take beyond OpenAI's API. false: for a server that refuses unknown fields."""
    api_key_env: Annotated[str, FREE] = DEFAULT_KEY_VARIABLE
    """Name of the environment variable that holds the key, on the machines of the workers."""

    def check(self) -> None:
        for url in self.urls:
            # What is not a URL may hold a password, so it is not repeated.
            found = _BASE_URL.fullmatch(url)
            if not found or not 1 <= int(found[2] or 1) <= _LAST_PORT:
                raise ValueError(
                    "policy.openai.urls holds something that is no base URL: write http://HOST:PORT/v1 or https://HOST/v1, "
                    "without user, password, query or blanks; a key goes into the environment (policy.openai.api_key_env)"
                )
        names = [url.rstrip("/") for url in self.urls]
        check(len(set(names)) == len(names), "policy.openai.urls", self.urls, "URLs that differ")
        if not _VARIABLE.fullmatch(self.api_key_env):
            # It may be a key, so it is not repeated.
            raise ValueError(
                "policy.openai.api_key_env is no name of an environment variable: it takes capital letters, digits and _, and "
                "names the variable that holds the key; the key itself is no setting"
            )


@dataclass(kw_only=True, slots=True)
class OpenAiPolicyConfig(PolicyConfig):
    kind: Annotated[str, BY_GROUP] = "openai"
    model: str = ""
    """The name under which the servers know the model."""
    tokenizer: Annotated[str | None, REFUSED] = None
    """The model's tokenizer, a Hugging Face name or a local folder; null: policy.model is one."""
    revision: str | None = None
    """Of the tokenizer on the Hugging Face Hub: a branch, a tag or a commit."""
    openai: OpenAiConfig = field(default_factory=OpenAiConfig)

    def check_complete(self, sampling: SamplingConfig) -> None:
        if not self.openai.urls or not self.model:
            raise ValueError(
                "policy=openai needs policy.openai.urls=[http://HOST:8000/v1] and policy.model=NAME, as the server names it"
            )
        if not self.openai.extensions and (sampling.top_k or sampling.min_p):
            raise ValueError(
                f"sampling.top_k={sampling.top_k} and sampling.min_p={sampling.min_p:g} are no part of OpenAI's API: leave "
                "them at 0, or set policy.openai.extensions=true"
            )
