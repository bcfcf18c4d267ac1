"""Settings of `policy=openai`: which servers hold the policy, and how they are asked. Part of those in `config`."""

import re
from dataclasses import dataclass, field

from pipeline.ranges import check

DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
_BASE_URL = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(/[A-Za-z0-9._~/-]*)?")
_LAST_PORT = 65_535
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")


@dataclass(kw_only=True, slots=True)
class OpenAiConfig:
    """policy=openai: the servers that hold the policy, and how they are asked."""

    urls: list[str] = field(default_factory=list)
    """Base URLs, the part in front of `/completions`: `http://HOST:8000/v1`. All serve the same model."""
    connections: int = 320
    """HTTP requests under way at each server. vLLM runs 256 sequences at once by default (1024 on an H100), and stays full
    where a quarter more are at hand."""
    choices: int = 1
    """Completions per HTTP request, adjacent rollouts of a prefix. Above 1, they come back when the longest is done."""
    timeout_seconds: float = 600.0
    """How long one HTTP request may take, waiting at the server included."""
    retries: int = 8
    """How often a request that failed is asked again, after pauses that double, before the engine counts as dead."""
    patience_seconds: float = 300.0
    """How long all servers may fail or turn requests away, without one answer, before the engine counts as dead."""
    extensions: bool = True
    """Send what vLLM and SGLang take beyond OpenAI's API. false: for a server that refuses unknown fields."""
    api_key_env: str = DEFAULT_KEY_VARIABLE
    """Name of the environment variable that holds the key, on the machines of the workers."""

    def __post_init__(self) -> None:
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
        check(1 <= self.connections <= 10_000, "policy.openai.connections", self.connections, "1 to 10000")
        check(1 <= self.choices <= 128, "policy.openai.choices", self.choices, "1 to 128")
        for key, seconds in (("timeout_seconds", self.timeout_seconds), ("patience_seconds", self.patience_seconds)):
            check(0 < seconds <= 86_400, f"policy.openai.{key}", seconds, "above 0, at most 86400")
        check(0 <= self.retries <= 1000, "policy.openai.retries", self.retries, "0 to 1000")
        if not _VARIABLE.fullmatch(self.api_key_env):
            # It may be a key, so it is not repeated.
            raise ValueError(
                "policy.openai.api_key_env is no name of an environment variable: it takes capital letters, digits and _, and "
                "names the variable that holds the key; the key itself is no setting"
            )

    def check_complete(self, model: str) -> None:
        """Raise ValueError where nothing says whom to ask for what."""
        if not self.urls or not model:
            raise ValueError(
                "policy=openai needs policy.openai.urls=[http://HOST:8000/v1] and policy.model=NAME, as the server names it"
            )

    def check_sampling(self, top_k: int, min_p: float) -> None:
        """Raise ValueError for what the server would not be told."""
        if not self.extensions and (top_k or min_p):
            raise ValueError(
                f"sampling.top_k={top_k} and sampling.min_p={min_p:g} are no part of OpenAI's API: leave them at 0, or set "
                "policy.openai.extensions=true"
            )
