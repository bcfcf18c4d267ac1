"""The policy on running servers with the OpenAI-compatible completions API: `vllm serve`, SGLang and others.

Every request is answered exactly once, or the engine counts as dead: when one request has failed too often, or when no server
has answered for too long (see `dispatch`).

Prompts are token ids, so this process loads the tokenizer. Where a server does not return token ids, its text is tokenized
here. The result may differ from the generated tokens: a text has several tokenizations, and the end of a turn has no text.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from pipeline.config.label import SamplingConfig
from pipeline.core.errors import EngineDied, PolicyError
from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Request
from pipeline.data.prompts import Tokenizer
from pipeline.engines.base import attended_tokens, empty_completion, longest
from pipeline.engines.hugging_face import load_tokenizer
from pipeline.engines.openai.dispatch import Dispatcher
from pipeline.engines.openai.handshake import context_for, model_context, perform_handshakes
from pipeline.engines.openai.http import Http, key_from
from pipeline.engines.openai.wire import COMPLETIONS, Answer, Choice, ServerError, Wire
from pipeline.engines.settings import OpenAiPolicyConfig


@dataclass(slots=True, eq=False)
class _Call:
    """One call of `generate`: the unanswered requests (`open_requests`) by id, and a queue of the completions that arrived."""

    unanswered: dict[str, Request]
    keep_tokens: bool
    arrived: "asyncio.Queue[Completion | EngineDied]" = field(default_factory=asyncio.Queue)


@dataclass(slots=True, eq=False)
class _Ask:
    """Adjacent requests that are alike (see `_asked_alike`) and are sent as one HTTP request: a `dispatch.Job`."""

    engine: "OpenAiEngine"
    call: _Call
    requests: tuple[Request, ...]
    failures: int = 0

    @property
    def home(self) -> str:
        return self.requests[0].problem.problem_id

    @property
    def name(self) -> str:
        return self.requests[0].request_id

    @property
    def wanted(self) -> int:
        return len(self.open_requests())

    async def attempt(self, at: int, connection: Http) -> bool:
        return await self.engine.attempt(self, at, connection)

    def refuse(self, error: ServerError) -> None:
        for request in self.open_requests():
            _give(self.call, empty_completion(request, Finish.ENGINE_FAILED))

    def give_up(self, error: EngineDied) -> None:
        self.call.arrived.put_nowait(error)

    def open_requests(self) -> tuple[Request, ...]:
        return tuple(request for request in self.requests if request.request_id in self.call.unanswered)


class OpenAiEngine:
    """See the module. Use one instance in one event loop only, from `start` to `close`."""

    def __init__(self, policy: OpenAiPolicyConfig, sampling: SamplingConfig) -> None:
        self._config = policy
        self._servers = policy.openai
        self._max_tokens = sampling.max_tokens
        # Servers refuse several greedy completions of a prompt, which would be identical.
        self._choices = policy.openai.choices if sampling.temperature else 1
        self._wire = Wire(policy.model, sampling, extensions=policy.openai.extensions)
        self._dispatcher: Dispatcher[_Ask] | None = None
        self._tokenizer: Tokenizer | None = None
        self._calls: set[_Call] = set()
        self._work = EngineWork()
        self._empty = 0.0
        """Share of the request slots that are empty while no request waits, since `_counted_at`."""
        self._counted_at = 0.0
        self._unfilled_seconds = 0.0
        self.capacity = len(policy.openai.urls) * policy.openai.connections * self._choices
        self.max_model_len = 0
        self.hardware: Hardware | None = Hardware(unknown="the servers do not report their hardware")
        self.policy = f"{policy.model}:openai"

    @property
    def tokenizer(self) -> Tokenizer:
        if self._tokenizer is None:
            raise RuntimeError("the engine has not been started")
        return self._tokenizer

    @property
    def load(self) -> Load:
        unanswered = sum(len(call.unanswered) for call in self._calls)
        running = self._dispatcher.running if self._dispatcher else 0
        return Load(running=min(running, unanswered), waiting=max(0, unanswered - running))

    @property
    def work(self) -> EngineWork:
        """Counted when completions arrive. `steps` stays 0. `prefilled` stays 0 where servers do not report cached tokens."""
        if self._dispatcher is not None:
            self._count_unfilled()
        return replace(self._work, unfilled_seconds=self._unfilled_seconds)

    async def start(self) -> None:
        config = self._config
        key = key_from(os.environ, self._servers)
        tokenizer = await asyncio.to_thread(load_tokenizer, config.tokenizer or config.model, config.revision)
        urls = self._servers.urls
        connection = Http(self._servers, key)
        try:
            found = await perform_handshakes(connection, self._servers, config.model, self._wire, tokenizer)
            stated = [handshake.context for handshake in found if handshake.context is not None]
            self.max_model_len = context_for(stated, config.max_model_len, self._max_tokens)
        except PolicyError:
            await connection.close()
            raise
        self._dispatcher = Dispatcher(
            self._servers,
            connection,
            serves=self._serves,
            died=self._died,
            changing=self._count_unfilled,
            changed=self._count_empty,
        )
        self._tokenizer = tokenizer
        self._empty, self._counted_at = 1.0, _now()
        for at in range(len(urls)):
            if found[at].server_error:
                self._dispatcher.leave_out(at)

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        dispatcher = self._dispatcher
        if dispatcher is None:
            raise EngineDied("the engine has not been started, or was closed")
        if dispatcher.death:
            raise EngineDied(dispatcher.death)
        if not self._calls:
            dispatcher.begin_patience()
        call = _Call(unanswered={request.request_id: request for request in requests}, keep_tokens=keep_tokens)
        self._calls.add(call)
        try:
            for ask in self._asks(call, requests):
                dispatcher.add(ask)
            dispatcher.send()
            outstanding = len(call.unanswered)
            while outstanding:
                batch = [await call.arrived.get()]
                while not call.arrived.empty():
                    batch.append(call.arrived.get_nowait())
                completions = [item for item in batch if isinstance(item, Completion)]
                outstanding -= len(completions)
                if completions:
                    yield completions
                for item in batch:
                    if isinstance(item, EngineDied):
                        raise item
        finally:
            call.unanswered.clear()
            self._calls.discard(call)
            dispatcher.cancel_unwanted()

    def abort(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            for call in self._calls:
                if request := call.unanswered.get(request_id):
                    _give(call, empty_completion(request, Finish.ABORT))
        if self._dispatcher is not None:
            self._dispatcher.cancel_unwanted()

    async def close(self) -> None:
        dispatcher, self._dispatcher = self._dispatcher, None
        if dispatcher is not None:
            await dispatcher.close()

    async def attempt(self, ask: _Ask, at: int, connection: Http) -> bool:
        """Send the unanswered requests of `ask` once. See `dispatch.Job`."""
        requests = ask.open_requests()
        if not requests:
            return True
        prompt = requests[0].prefix.prompt_ids
        stop, most = requests[0].stop, longest(requests[0], usual=self._max_tokens, context=self.max_model_len)
        body = self._wire.body(prompt, len(requests), max_tokens=most, stop=stop)
        raw = await connection.post(at, COMPLETIONS, body, limit=self._wire.max_bytes(prompt, len(requests)))
        answer = self._wire.answer(raw, len(requests), stop=stop)
        before, generated, attended = len(prompt), 0, 0
        for request, choice in zip(requests, answer.choices, strict=False):  # a server may return fewer
            completion = self._completion(request, choice, answer, keep_tokens=ask.call.keep_tokens)
            n = completion.n_tokens
            generated, attended = generated + n, attended + attended_tokens(before, n)
            if request.request_id in ask.call.unanswered:
                _give(ask.call, completion)
        prompted = len(answer.choices) * before
        prefilled = 0 if answer.cached is None else max(0, prompted - answer.cached)
        self._work += EngineWork(generated=generated, attended=attended, prompt=prompted, prefilled=prefilled)
        return len(answer.choices) == len(requests)

    def _completion(self, request: Request, choice: Choice, answer: Answer, *, keep_tokens: bool) -> Completion:
        ids = choice.token_ids
        alone = len(answer.choices) == 1
        if ids is None and (keep_tokens or not alone or answer.generated is None):
            ids = tuple(self.tokenizer.encode(choice.text))
        stated = answer.generated if alone and choice.token_ids is None else None
        return Completion(
            request=request,
            text=choice.text,
            finish=choice.finish,
            n_tokens=len(ids or ()) if stated is None else stated,
            token_ids=(ids or ()) if keep_tokens else (),
        )

    async def _serves(self, connection: Http, at: int) -> str:
        context = await model_context(connection, at, self._servers, self._config.model)
        if context is None or context >= self.max_model_len:
            return ""
        return f"{self._servers.urls[at]} came back with a context of {context} tokens"

    def _died(self, why: str) -> None:
        for call in self._calls:
            call.arrived.put_nowait(EngineDied(why))

    def _asks(self, call: _Call, requests: Sequence[Request]) -> Iterator[_Ask]:
        for _, adjacent in groupby(requests, key=_asked_alike):
            group = tuple(adjacent)
            for begin in range(0, len(group), self._choices):
                yield _Ask(engine=self, call=call, requests=group[begin : begin + self._choices])

    def _count_empty(self) -> None:
        running = self._dispatcher.running if self._dispatcher else 0
        self._empty = 0.0 if self.load.waiting else 1 - running / self.capacity

    def _count_unfilled(self) -> None:
        now = _now()
        self._unfilled_seconds += self._empty * (now - self._counted_at)
        self._counted_at = now


def _asked_alike(request: Request) -> tuple[object, ...]:
    """What requests must have in common to be sent as one."""
    return request.prefix.prefix_id, request.stop, request.max_tokens


def _give(call: _Call, completion: Completion) -> None:
    del call.unanswered[completion.request.request_id]
    call.arrived.put_nowait(completion)


def _now() -> float:
    return asyncio.get_running_loop().time()
