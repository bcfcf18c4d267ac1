"""The interfaces of a policy before it is loaded (`Policy`) and of the engine that samples from it (`Engine`)."""

from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.config.oracle_world import WorldSettings
from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Request
from pipeline.data.prompts import Tokenizer
from pipeline.graders.base import Ending


class PolicyFacts(Protocol):
    """What is needed to build prompts."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def max_model_len(self) -> int:
        """Context length of the policy in tokens."""
        ...

    @property
    def policy(self) -> str:
        """Identity of the policy, as written to the column `policy`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """Facts of a policy that is not loaded, see `PolicyFacts`. Its identity is unknown until then."""

    tokenizer: Tokenizer
    max_model_len: int
    policy: str = ""


class Engine(PolicyFacts, Protocol):
    """Samples completions. One engine serves many calls of `generate` at once, in one event loop."""

    @property
    def capacity(self) -> int:
        """The largest number of requests that run at once. Known after `start`."""
        ...

    @property
    def load(self) -> Load: ...

    @property
    def work(self) -> EngineWork:
        """Counts at the finest step that the engine offers: tokens of unfinished completions are included. Cheap to read."""
        ...

    @property
    def hardware(self) -> Hardware | None:
        """The hardware it runs on, known after `start`. None where no bound on speed applies."""
        ...

    async def start(self) -> None:
        """Load the policy. Raises an error that names a remedy: PlaceError when this machine or device is to blame, so that
        another worker may still load it, and PolicyError when no worker can, because of the model or a setting."""
        ...

    def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        """Yield each request's completion exactly once, in batches, in the order in which they finish.

        Requests start in the order given. If the engine cannot serve a request but keeps working, the completion has no text
        and the finish `engine_failed`. With `keep_tokens` completions carry their token ids. Raises EngineDied when the engine
        stops working; completions that were yielded before remain valid.

        A completion that ended at a stop text ends with that text, although its last token may have further characters. One
        where the policy ended its turn does not.
        """
        ...

    def abort(self, request_ids: Iterable[str]) -> None:
        """Stop sampling these requests. Those that are unfinished are yielded without text and with the finish `abort`."""
        ...

    async def close(self) -> None:
        """Free the device. Safe to call twice and after a failed start."""
        ...


class ChainEngine(Protocol):
    """What engines of scorers and of judges have in common. One engine serves many calls at once, in one event loop."""

    @property
    def model(self) -> str:
        """Identity of the model, as written to the column `model`. Known after `start`."""
        ...

    @property
    def capacity(self) -> int:
        """The number of chains that keep the engine busy. Known after `start`."""
        ...

    async def start(self) -> None:
        """Load the model. Raises as `Engine.start` does, and UsageError for a model or a setting that cannot be used."""
        ...

    async def close(self) -> None:
        """Free the device. Safe to call twice and after a failed start."""
        ...


class BatchEngine(Engine):
    """Base class for your own engine: a subclass implements `complete`, which answers a batch of requests.

    `complete` gets at most `capacity` requests. It may be called again while an earlier call still runs. Aborted requests are
    not passed to it. It may ignore `Request.stop` and `Request.max_tokens`, which only save what a search would throw away.
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
        """One completion per request, in any order, with its number of tokens. Raises EngineDied when the engine fails."""

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
    """Raise ValueError unless each request has exactly one completion, with a text and a number of tokens."""
    answered = Counter(completion.request.request_id for completion in done)
    if answered != Counter(asked):
        raise ValueError(
            f"complete must return one completion for each of {len(asked)} requests, but returned {len(done)}"
        )
    for completion in done:
        text, tokens = completion.text, completion.n_tokens
        if not isinstance(text, str) or isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
            raise ValueError(f"complete returned a completion with text={text!r:.60} and n_tokens={tokens!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where an engine runs. `cpus`: its share of the machine's cores. `attempt`: 1 for the first worker, +1 per restart.

    `gpus`: the GPUs that are its own, or its share of one. 0: none, or unknown. `log_folder`: the folder where the output of
    its processes may be kept. None: nowhere.
    """

    cpus: int = 1
    attempt: int = 1
    gpus: float = 0.0
    log_folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineNeeds:
    """What an engine needs of its machine. `memory_share`: the share of a GPU's memory that it takes, if it has GPUs. `folder`:
    the model's folder, if it is one. `hub_names`: models of which files come from the Hugging Face Hub."""

    memory_share: float = 0.9
    folder: str | None = None
    hub_names: tuple[str, ...] = ()


class OnDevices(Protocol):
    """What a policy or a scorer loads, and what it needs of the devices of its workers. The defaults are for one that uses no
    device."""

    loads_model: bool = False
    """Whether the worker loads a model. If so, each worker gets GPUs, or all processors where there are none."""

    async def fetch(self) -> None:
        """Download to this machine what the engine loads, unless it is there. Workers of one machine call it concurrently.

        Raises PolicyError as `Engine.start` does.
        """
        return

    def fingerprint(self) -> str:
        """A hash of the weights, as far as it can be computed without loading them. It is part of a run's identity. Raises
        UsageError where a setting names a model folder that cannot be one."""
        return ""

    def identity(self) -> Mapping[str, object]:
        """Settings that belong to a run's identity although they are not marked so in their schema, by dotted key."""
        return {}

    def devices(self) -> int | None:
        """Number of remote devices that serve the model. None: it runs on the worker's own devices."""
        return None

    def choose_tensor_parallel(self, gpus: int, memory: float | None) -> int:
        """The number of GPUs of one node over which the model is spread. A node has at most `gpus`, each with at least `memory`
        bytes (None: unknown). Raises ClusterError where they cannot hold the model."""
        return 1

    def given_tensor_parallel(self) -> int | None:
        """The number of GPUs per model that the settings give. None where they leave it open."""
        return None

    def needs(self, gpus: float) -> EngineNeeds:
        """What each of its engines needs of its machine, where it has `gpus` GPUs (below 1: a share of one).

        Asks no network.
        """
        return EngineNeeds()

    def uses_gpus(self) -> bool | None:
        """Whether its workers need GPUs. None: they use them where there are any."""
        return None if self.loads_model else False

    def check_gpus(self, gpus: float) -> None:
        """Raise UsageError where the settings exclude workers with `gpus` GPUs each (0: none; below 1: a share of one)."""
        return


class Policy(OnDevices, Protocol):
    """A kind of policy with its settings, before anything is loaded. An implementation defines `engine` and `facts`. The other
    members have defaults for a policy that uses no device of the worker."""

    Config: ClassVar[type[PolicyConfig]] = PolicyConfig
    """Its settings: a subclass of `PolicyConfig` whose `kind` is the policy's name."""
    ends_at_answers: ClassVar[bool] = False
    """Whether its engine can stop a completion as soon as the completion has stated its final answer."""

    settings: PolicyConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        """A new engine, not started. `ending` detects that a completion has stated its answer and can stop."""
        ...

    @abstractmethod
    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        """What is needed to build prompts, without loading the policy. Raises PolicyError."""
        ...

    def world(self) -> WorldSettings | None:
        """The made-up world that its chains come from. None: it has a model."""
        return None

    def check_stepwise(self) -> None:
        """Raise UsageError where chains that are sampled one step at a time would not end, for another reason than the text of
        the prompt."""
        return

    def download_bytes(self) -> float:
        """The size of the weights that each machine downloads, in bytes, unless it has them. 0: there are none, or it is
        unknown."""
        return 0.0

    def better_gpus_per_worker(self) -> float | None:
        """The value of cluster.gpus_per_worker that uses GPUs better than the default does. None: the default is as good."""
        return None

    def with_tensor_parallel(self, gpus: int) -> PolicyConfig:
        """The settings of a worker whose model is spread over `gpus` GPUs."""
        return self.settings

    def planned_speed(self, context: float) -> float | None:
        """The highest number of tokens per second that a worker's device allows, with `context` tokens before each generated
        one on average. None where it is unknown before the model is loaded."""
        return None


def longest(request: Request, *, usual: int, context: int) -> int:
    """The limit of a completion in tokens: `usual`, that of the settings, or less where the request wants less or the `context`
    leaves less. At least 1."""
    wanted = usual if request.max_tokens is None else min(usual, request.max_tokens)
    return max(1, min(wanted, context - len(request.prefix.prompt_ids)))


def empty_completion(request: Request, finish: Finish) -> Completion:
    """The completion of a request that produced no text."""
    return Completion(request=request, text="", finish=finish, n_tokens=0)


def attended_tokens(n_prompt: int, n_generated: int) -> int:
    """The number of tokens before each generated token, summed over the generated tokens. See `EngineWork.attended`."""
    return n_generated * n_prompt + n_generated * (n_generated - 1) // 2
