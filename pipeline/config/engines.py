"""Settings of single engines: the oracle, servers that run already, and the device under any. Part of those in `config`."""

import math
import re
from dataclasses import dataclass, field

from pipeline.config.choices import GraderKind, PolicyKind
from pipeline.config.ranges import check
from pipeline.core.devices import KNOWN, device_named

DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
_START_OF_ID = re.compile(r"[0-9a-f]*(-[0-9]*)?")
_BASE_URL = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(/[A-Za-z0-9._~/-]*)?")
_LAST_PORT = 65_535
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")


@dataclass(kw_only=True, slots=True)
class OracleConfig:
    """The engine with known success probabilities: what it answers, how slowly, and which faults it plays."""

    seed: int = 0
    spread: float = 0.35
    """How far the value of a prefix may lie from its problem's."""
    tokens_per_step: int = 20
    tokens_per_second: float = 0.0
    """0: no delay."""
    fail_after: int = 0
    """The engine dies after so many completions; 0: never."""
    hang_after: int = 0
    """The engine stops answering after so many completions; 0: never."""
    wrong_after: int = 0
    """After so many completions the engine leaves one out and gives another one twice; 0: never."""
    poison: str = ""
    """A request whose rollout_id starts so kills the engine, whenever it is asked; empty: none."""
    refuse: str = ""
    """Requests whose rollout_id starts so come back unserved (engine_failed); empty: none."""

    def __post_init__(self) -> None:
        check(0 <= self.spread <= 1, "policy.oracle.spread", self.spread, "between 0 and 1")
        check(self.tokens_per_step >= 1, "policy.oracle.tokens_per_step", self.tokens_per_step, "at least 1")
        check(self.tokens_per_second >= 0, "policy.oracle.tokens_per_second", self.tokens_per_second, "0 or more")
        check(self.fail_after >= 0, "policy.oracle.fail_after", self.fail_after, "0 or more")
        check(self.hang_after >= 0, "policy.oracle.hang_after", self.hang_after, "0 or more")
        check(self.wrong_after >= 0, "policy.oracle.wrong_after", self.wrong_after, "0 or more")
        for key, start in (("policy.oracle.poison", self.poison), ("policy.oracle.refuse", self.refuse)):
            check(
                _START_OF_ID.fullmatch(start) is not None, key, repr(start), "the beginning of a rollout_id, or empty"
            )


@dataclass(kw_only=True, slots=True)
class DeviceConfig:
    """What a device can do, where it is not known or not what its name says. It changes what is told of a run's speed, and over
    how many GPUs a model is spread, nothing else."""

    name: str = ""
    """One that `devices` knows, or any with `bandwidth` and `flops`."""
    bandwidth: float | None = None
    """Of the memory, in bytes/s."""
    flops: float | None = None
    """FLOP/s, dense, in the number format that the engine computes in."""
    memory: float | None = None
    """Bytes."""

    def __post_init__(self) -> None:
        for key, value in (("bandwidth", self.bandwidth), ("flops", self.flops), ("memory", self.memory)):
            check(value is None or 0 < value < math.inf, f"policy.device.{key}", value, "above 0")
        if self.name and device_named(self.name) is None and None in (self.bandwidth, self.flops):
            raise ValueError(
                f"policy.device.name={self.name} is not known: choose {', '.join(KNOWN)}, or give policy.device.bandwidth and "
                "policy.device.flops with it"
            )


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


def check_ending(stop_at_answer: bool | None, policy: PolicyKind, grader: GraderKind) -> None:
    """Raise ValueError where completions are to end at their answer and nobody can see to it."""
    if stop_at_answer and grader is not GraderKind.math:
        raise ValueError(
            f"sampling.stop_at_answer=true is for grader=default: grader={grader.value} takes the last program of a whole text"
        )
    if stop_at_answer and policy is PolicyKind.openai:
        raise ValueError(
            "sampling.stop_at_answer=true needs vLLM in this process (policy=hf): a server ends completions at texts, which "
            "are sampling.stop"
        )


def check_guessing(tokens: int | None, model: str | None, min_p: float) -> None:
    """Raise ValueError for a draft model without a number of tokens, and for sampling that vLLM does not combine with them."""
    if model and tokens is None:
        raise ValueError("policy.speculative_model guesses nothing without policy.speculative_tokens=NUMBER")
    if tokens is not None and min_p > 0:
        raise ValueError(
            f"sampling.min_p={min_p} cannot be had with policy.speculative_tokens: vLLM has no such sampling"
        )
