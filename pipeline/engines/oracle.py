"""An engine with known success probabilities, for tests and dry runs. It is never chosen implicitly.

Every completion is a pure function of (seed, rollout id). Which rollouts succeed does not depend on timing, order or the
number of workers, so the expected labels of a run are known in advance. `true_value` is the success probability of a prefix.
The engine can also simulate faults: it can be slow, die, hang, answer wrongly, refuse a request, or be killed by one. The
settings of `policy.oracle` choose the fault.

Not covered: the values are not consistent where the oracle sampled the chain itself. All its completions begin with the same
step, so every rollout of the bare problem reproduces the first step, but the two prefixes have different values.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, FREE, Settings, check
from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.core.errors import EngineDied
from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Problem, Request
from pipeline.engines.base import Engine, Policy, PolicyFacts, Surroundings, empty_completion
from pipeline.graders.base import Ending

_CHUNK = 256
_REMEMBERED_VALUES = 65_536
_CONTEXT = 1_000_000
_UNIT = 1 << 64
_WHOLE = re.compile(r"-?[0-9,]{0,16}[0-9]")

_START_OF_ID = re.compile(r"[0-9a-f]*(-[0-9]*)?")


@dataclass(kw_only=True, slots=True)
class OracleConfig(Settings):
    """What the oracle answers, how fast, and which faults it simulates."""

    SECTION: ClassVar[str] = "policy.oracle"
    seed: int = 0
    """Seed of the success probabilities and of every draw."""
    spread: Annotated[float, Range(ge=0, le=1)] = 0.35
    """Largest difference between the value of a prefix and the value of its problem."""
    tokens_per_step: Annotated[int, Ge(1)] = 20
    """Tokens of the shortest completion. The longest has almost twice as many."""
    tokens_per_second: Annotated[float, Ge(0), FREE] = 0.0
    """Speed of the engine in tokens/s. 0: no delay."""
    fail_after: Annotated[int, Ge(0), FREE] = 0
    """The engine dies after this number of completions. 0: never."""
    hang_after: Annotated[int, Ge(0), FREE] = 0
    """The engine stops answering after this number of completions. 0: never."""
    wrong_after: Annotated[int, Ge(0), FREE] = 0
    """After this number of completions the engine omits one completion and returns another one twice. 0: never."""
    poison: Annotated[str, FREE] = ""
    """A request whose rollout_id starts with this text kills the engine on every attempt. Empty: no request does."""
    refuse: Annotated[str, FREE] = ""
    """Requests whose rollout_id starts with this text return with the finish engine_failed. Empty: no request does."""

    def check(self) -> None:
        for key, start in (("policy.oracle.poison", self.poison), ("policy.oracle.refuse", self.refuse)):
            check(
                _START_OF_ID.fullmatch(start) is not None, key, repr(start), "the beginning of a rollout_id, or empty"
            )


@dataclass(kw_only=True, slots=True)
class OraclePolicyConfig(PolicyConfig):
    MADE_UP: ClassVar[str] = "the oracle draws them from success probabilities of its own, without a model"
    kind: Annotated[str, BY_GROUP] = "oracle"
    oracle: OracleConfig = field(default_factory=OracleConfig)


def true_value(seed: int, spread: float, problem: Problem, prefix_id: str) -> float:
    """P(correct | prefix) of the oracle: the problem's own value, shifted by at most `spread` for each prefix."""
    return value_of(seed, spread, problem.problem_id, prefix_id)


def value_of(seed: int, spread: float, problem_id: str, prefix_id: str) -> float:
    """`true_value` of a prefix of the problem with this id."""
    difficulty = uniform(f"{seed}:{problem_id}")
    return min(1.0, max(0.0, difficulty + spread * (2 * uniform(f"{seed}:{prefix_id}") - 1)))


class ByteTokenizer:
    """One token per UTF-8 byte."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8", "replace"))

    encode_plain = encode

    def encode_chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        return self.encode(
            "".join(f"{message['role']}: {message['content']}\n" for message in messages) + "assistant: "
        )

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode("utf-8", "replace")


class OracleEngine:
    """See the module. `attempt` counts from 1. Faults after a number of completions occur only on the first attempt, so a retry
    succeeds. Faults of a certain request occur on every attempt."""

    def __init__(self, policy: OraclePolicyConfig, *, attempt: int = 1) -> None:
        config = policy.oracle
        self._config = config
        self._faults = attempt == 1
        self._finished = 0
        self._generated = 0
        self._prompted = 0
        self._steps = 0
        self._waiting = 0
        self._outstanding: set[str] = set()
        self._aborted: set[str] = set()
        self._died_of = ""
        self._will_err = self._faults and config.wrong_after > 0
        self._values: dict[str, float] = {}
        self.tokenizer = ByteTokenizer()
        self.max_model_len = policy.max_model_len or _CONTEXT
        self.capacity = _CHUNK
        self.hardware: Hardware | None = None
        self.policy = f"oracle:seed={config.seed},spread={config.spread:g}"

    @property
    def load(self) -> Load:
        return Load(running=min(self._waiting, _CHUNK), waiting=max(0, self._waiting - _CHUNK))

    @property
    def work(self) -> EngineWork:
        return EngineWork(generated=self._generated, steps=self._steps, prompt=self._prompted, prefilled=self._prompted)

    async def start(self) -> None:
        return

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        self._waiting += len(requests)
        self._outstanding.update(request.request_id for request in requests)
        for start in range(0, len(requests), _CHUNK):
            batch = [self._complete(request, keep_tokens) for request in requests[start : start + _CHUNK]]
            await self._pass_time(batch)
            self._outstanding.difference_update(completion.request.request_id for completion in batch)
            answers = self._garbled(batch)
            self._waiting -= len(batch)
            self._finished += len(batch)
            self._generated += sum(completion.n_tokens for completion in batch)
            self._prompted += sum(len(completion.request.prefix.prompt_ids) for completion in batch)
            self._steps += max(completion.n_tokens for completion in batch)
            yield answers

    def abort(self, request_ids: Iterable[str]) -> None:
        self._aborted.update(self._outstanding.intersection(request_ids))

    async def close(self) -> None:
        return

    async def _pass_time(self, batch: Sequence[Completion]) -> None:
        config = self._config
        if self._faults and config.fail_after and self._finished >= config.fail_after:
            self._died_of = "fail_after"
        if config.poison and any(completion.request.request_id.startswith(config.poison) for completion in batch):
            self._died_of = "poison"
        self._check_alive()
        if self._faults and config.hang_after and self._finished >= config.hang_after:
            await asyncio.Event().wait()
        tokens = sum(completion.n_tokens for completion in batch)
        await asyncio.sleep(tokens / config.tokens_per_second if config.tokens_per_second else 0)
        self._check_alive()

    def _check_alive(self) -> None:
        if self._died_of:
            raise EngineDied(f"the oracle engine died because of policy.oracle.{self._died_of}")

    def _garbled(self, batch: Sequence[Completion]) -> Sequence[Completion]:
        """The batch. Once, after `policy.oracle.wrong_after` completions, the first one twice and the last one missing."""
        if not self._will_err or self._finished < self._config.wrong_after or len(batch) < 2:
            return batch
        self._will_err = False
        return [batch[0], *batch[:-1]]

    def _complete(self, request: Request, keep_tokens: bool) -> Completion:
        if request.request_id in self._aborted:
            self._aborted.remove(request.request_id)
            return empty_completion(request, Finish.ABORT)
        if self._config.refuse and request.request_id.startswith(self._config.refuse):
            return empty_completion(request, Finish.ENGINE_FAILED)
        prefix_id = request.prefix.prefix_id
        value = self._values.get(prefix_id)
        if value is None:
            value = true_value(self._config.seed, self._config.spread, request.problem, prefix_id)
            if len(self._values) >= _REMEMBERED_VALUES:
                self._values.clear()
            self._values[prefix_id] = value
        draw = _draw(f"{self._config.seed}:{request.request_id}")
        right = draw / _UNIT < value
        golds = request.problem.golds
        text = f"So the work is done.\nThe answer is {golds[0] if right and golds else _wrong(golds, draw)}."
        length = self._config.tokens_per_step
        return Completion(
            request=request,
            text=text,
            finish=Finish.STOP,
            n_tokens=length + draw % length,
            token_ids=tuple(self.tokenizer.encode(text)) if keep_tokens else (),
        )


def _wrong(golds: Sequence[str], draw: int) -> str:
    """An answer that is not in `golds`: a larger number where all of them are whole numbers, else words."""
    if golds and all(_WHOLE.fullmatch(gold) for gold in golds):
        return str(max(int(gold.replace(",", "")) for gold in golds) + 1 + draw % 3)
    return "none of these" if "none of these" not in golds else "something else"


def _draw(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def uniform(key: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return _draw(key) / _UNIT


class Oracle(Policy):
    """The oracle as a policy (`policy=oracle`)."""

    Config = OraclePolicyConfig
    settings: OraclePolicyConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        return OracleEngine(self.settings, attempt=around.attempt)

    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        return OracleEngine(self.settings)
