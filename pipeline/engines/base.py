"""What the rest of the pipeline asks of a policy before it is loaded (`Policy`), and of its engine."""

from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Request
from pipeline.data.prompts import Tokenizer
from pipeline.graders.base import Ending


class PolicyFacts(Protocol):
    """What prompts are made with."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def max_model_len(self) -> int:
        """Context of the policy in tokens."""
        ...

    @property
    def policy(self) -> str:
        """Identity of the policy, as it stands in the column `policy`."""
        ...


class Engine(PolicyFacts, Protocol):
    """Samples completions. One engine serves many calls of `generate` at once, in one event loop."""

    @property
    def capacity(self) -> int:
        """Requests that run at once at most; known once it has started."""
        ...

    @property
    def load(self) -> Load: ...

    @property
    def work(self) -> EngineWork:
        """In as fine steps as the engine knows: tokens are counted while long completions are under way. Cheap to read."""
        ...

    @property
    def hardware(self) -> Hardware | None:
        """What it runs on; known once it has started. None where that is nothing that could be compared."""
        ...

    async def start(self) -> None:
        """Load the policy. Raises PolicyError with a remedy when it cannot be loaded here."""
        ...

    def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        """Every request's completion, exactly once, in batches as they finish, which need not be the order of issue.

        Requests are started in the order given. One that the engine does not serve, though it lives on, comes back without text
        and with the finish `engine_failed`. With `keep_tokens` completions carry their token ids. Raises EngineDied when the
        engine stopped working; what was yielded before stands.
        """
        ...

    def abort(self, request_ids: Iterable[str]) -> None:
        """Stop sampling these requests: those that have not finished come back without text and with the finish `abort`."""
        ...

    async def close(self) -> None:
        """Free the device; safe to call twice and after a failed start."""
        ...


class BatchEngine(Engine):
    """An engine for somebody's own: a subclass answers batches of requests, and the rest is here.

    `complete` is called with at most `capacity` requests, and again while an earlier call is under way. What is aborted is left
    out.
    """

    def __init__(self, tokenizer: Tokenizer, *, policy: str, max_model_len: int, capacity: int = 256) -> None:
        self._tokenizer = tokenizer
        self._policy = policy
        self._max_model_len = max_model_len
        self._capacity = capacity
        self._waiting: dict[str, Request] = {}
        self._work = EngineWork()

    @abstractmethod
    async def complete(self, requests: Sequence[Request]) -> Sequence[Completion]:
        """The completion of every request, in any order, with its tokens. Raises EngineDied when the engine stopped working."""

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def policy(self) -> str:
        return self._policy

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def load(self) -> Load:
        running = min(len(self._waiting), self._capacity)
        return Load(running=running, waiting=len(self._waiting) - running)

    @property
    def work(self) -> EngineWork:
        return self._work

    @property
    def hardware(self) -> Hardware | None:
        return None

    async def start(self) -> None:
        return

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        self._waiting |= {request.request_id: request for request in requests}
        for begin in range(0, len(requests), self._capacity):
            batch = requests[begin : begin + self._capacity]
            wanted = [request for request in batch if request.request_id in self._waiting]
            done = list(await self.complete(wanted)) if wanted else []
            asked = {request.request_id for request in wanted}
            _refuse_others(done, asked)
            aborted = [empty_completion(request, Finish.ABORT) for request in batch if request.request_id not in asked]
            self.abort(asked)
            prompted = sum(len(request.prefix.prompt_ids) for request in wanted)
            tokens = sum(completion.n_tokens for completion in done)
            self._work += EngineWork(
                generated=tokens, finished=tokens, steps=bool(done), prompt=prompted, prefilled=prompted
            )
            yield [*done, *aborted]

    def abort(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            self._waiting.pop(request_id, None)

    async def close(self) -> None:
        return


def _refuse_others(done: Sequence[Completion], asked: Collection[str]) -> None:
    """Raise ValueError unless there is one completion for each request, with a text and a number of tokens."""
    answered = Counter(completion.request.request_id for completion in done)
    if answered != Counter(asked):
        raise ValueError(f"complete has to answer each of {len(asked)} requests once, and gave {len(done)} completions")
    for completion in done:
        text, tokens = completion.text, completion.n_tokens
        if not isinstance(text, str) or isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
            raise ValueError(f"complete gave a completion with text={text!r:.60} and n_tokens={tokens!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where an engine works: `cpus` of the machine are its share, `attempt` counts the workers in this place, from 1."""

    cpus: int = 1
    attempt: int = 1


class Policy(Protocol):
    """A kind of policy with its settings, before anything is loaded. `engine` and `facts` are an implementation's own; the rest
    has a default, for a policy that needs no device of ours."""

    Config: ClassVar[type[PolicyConfig]] = PolicyConfig
    """Its settings: a dataclass under `PolicyConfig`, with its name as `kind`."""
    loads_model: ClassVar[bool] = False
    """A model is loaded into the worker's machine: workers get GPUs, or else all processors."""
    ends_at_answers: ClassVar[bool] = False
    """Its engine can end a completion where it has stated its answer."""

    settings: PolicyConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        """A new engine, not started. `ending`: where completions end by themselves."""
        ...

    @abstractmethod
    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        """What prompts are made with, without loading the policy. Raises PolicyError."""
        ...

    def fingerprint(self) -> str:
        """Which weights it stands for, as far as that can be told without loading them: part of a run's identity. Raises
        PolicyError for something that cannot be a model."""
        return ""

    def identity(self) -> Mapping[str, object]:
        """Settings that are part of a run's identity though their marks do not say so, by dotted key."""
        return {}

    def devices(self) -> int | None:
        """How many devices answer for it elsewhere, where it uses none of the worker's; None: the worker's own count."""
        return None

    def spread(self, gpus: int, memory: float | None) -> int:
        """Over how many GPUs of a node its model is spread. A node has at most `gpus`, each with at least `memory` bytes, where
        that is known. Raises ClusterError where they cannot hold it."""
        return 1

    def spread_over(self) -> int | None:
        """Over how many GPUs the settings say it is spread; None where they leave it open."""
        return None

    def placed(self, gpus: int) -> PolicyConfig:
        """The settings of a worker whose model is spread over so many GPUs."""
        return self.settings

    def planned_speed(self, context: float) -> float | None:
        """Tokens per second that a worker's device allows at best, with so many tokens in front of each generated one; None
        where nothing tells before it is loaded."""
        return None


def empty_completion(request: Request, finish: Finish) -> Completion:
    """The completion of a request that has none."""
    return Completion(request=request, text="", finish=finish, n_tokens=0)


def attended_tokens(n_prompt: int, n_generated: int) -> int:
    """How many tokens stood before each generated one, added up: see `EngineWork`."""
    return n_generated * n_prompt + n_generated * (n_generated - 1) // 2
