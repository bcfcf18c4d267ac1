"""Settings of policy=openai: servers that run already, and how they are asked."""

import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, FREE, REFUSED, Settings, check
from pipeline.config.label import PolicyConfig, SamplingConfig

DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
_BASE_URL = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(/[A-Za-z0-9._~/-]*)?")
_LAST_PORT = 65_535
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")


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
