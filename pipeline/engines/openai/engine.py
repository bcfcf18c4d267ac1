"""The policy on running servers with the OpenAI-compatible completions API: `vllm serve`, SGLang and others.

Every request is answered exactly once, or the engine counts as dead. A failed request is retried (`wire.ErrorKind` classifies
failures), on another server if there is one. A server that fails gets no requests until it lists its model again. The engine
is dead when one request has failed too often, or when no server has answered for too long.

Prompts are token ids, so this process loads the tokenizer. Where a server does not return token ids, its text is tokenized
here. The result may differ from the generated tokens: a text has several tokenizations, and the end of a turn has no text.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

from pipeline.config.label import SamplingConfig
from pipeline.core.errors import EngineDied, PolicyError
from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Request
from pipeline.data.prompts import Tokenizer
from pipeline.engines.base import attended_tokens, empty_completion
from pipeline.engines.hugging_face import load_tokenizer
from pipeline.engines.openai.handshake import context_for, model_context, perform_handshakes
from pipeline.engines.openai.http import Http, key_from
from pipeline.engines.openai.queues import Queues
from pipeline.engines.openai.wire import COMPLETIONS, Answer, BadAnswer, Choice, ErrorKind, ServerError, Wire, pause
from pipeline.engines.settings import OpenAiPolicyConfig

LOOK_SECONDS = 0.05
"""Interval of checks while requests wait and no other event would send them."""


@dataclass(slots=True, eq=False)
class _Call:
    """One call of `generate`: the unanswered requests (`open_requests`) by id, and a queue of the completions that arrived."""

    unanswered: dict[str, Request]
    keep_tokens: bool
    arrived: "asyncio.Queue[Completion | EngineDied]" = field(default_factory=asyncio.Queue)


@dataclass(slots=True, eq=False)
class _Ask:
    """Adjacent requests of one prefix that are sent as one HTTP request."""

    call: _Call
    requests: tuple[Request, ...]
    failures: int = 0

    def open_requests(self) -> tuple[Request, ...]:
        return tuple(request for request in self.requests if request.request_id in self.call.unanswered)

    @property
    def problem_id(self) -> str:
        return self.requests[0].problem.problem_id


class OpenAiEngine:
    """See the module. Use one instance in one event loop only, from `start` to `close`."""

    def __init__(self, policy: OpenAiPolicyConfig, sampling: SamplingConfig) -> None:
        self._config = policy
        self._servers = policy.openai
        self._max_tokens = sampling.max_tokens
        # Servers refuse several greedy completions of a prompt, which would be identical.
        self._choices = policy.openai.choices if sampling.temperature else 1
        self._wire = Wire(policy.model, sampling, extensions=policy.openai.extensions)
        self._queues: Queues[_Ask] = Queues(len(policy.openai.urls), policy.openai.connections)
        self._connection: Http | None = None
        self._tokenizer: Tokenizer | None = None
        self._calls: set[_Call] = set()
        self._flights: dict[asyncio.Task[None], _Ask] = {}
        self._reviving: set[asyncio.Task[None]] = set()
        self._later: set[asyncio.TimerHandle] = set()
        self._setbacks = [0] * len(policy.openai.urls)
        self._running = 0
        self._silent_since: float | None = None
        self._last_error = ""
        self._death = ""
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
        return Load(running=min(self._running, unanswered), waiting=max(0, unanswered - self._running))

    @property
    def work(self) -> EngineWork:
        """Counted when completions arrive. `steps` stays 0. `prefilled` stays 0 where servers do not report cached tokens."""
        if self._connection is not None:
            self._count_unfilled()
        return replace(self._work, unfilled_seconds=self._unfilled_seconds)

    async def start(self) -> None:
        config = self._config
        key = key_from(os.environ, self._servers.api_key_env)
        tokenizer = await asyncio.to_thread(load_tokenizer, config.tokenizer or config.model, config.revision)
        urls = self._servers.urls
        self._connection = Http(urls, key, timeout_seconds=self._servers.timeout_seconds)
        try:
            found = await perform_handshakes(self._connection, urls, config.model, self._wire, tokenizer)
            stated = [handshake.context for handshake in found if handshake.context is not None]
            self.max_model_len = context_for(stated, config.max_model_len, self._max_tokens)
        except PolicyError:
            await self.close()
            raise
        self._tokenizer = tokenizer
        for at, handshake in enumerate(found):
            if handshake.server_error:
                self._leave_out(at)
        self._empty, self._counted_at = 1.0, _now()

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        if self._connection is None:
            raise EngineDied("the engine has not been started, or was closed")
        if self._death:
            raise EngineDied(self._death)
        if not self._calls:
            self._silent_since = None
        call = _Call(unanswered={request.request_id: request for request in requests}, keep_tokens=keep_tokens)
        self._calls.add(call)
        try:
            for ask in _asks(call, requests, self._choices):
                self._queues.add(ask, ask.problem_id)
            self._send()
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
            self._cancel_unwanted()

    def abort(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            for call in self._calls:
                if request := call.unanswered.get(request_id):
                    _give(call, empty_completion(request, Finish.ABORT))
        self._cancel_unwanted()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        for handle in self._later:
            handle.cancel()
        under_way = [*self._flights, *self._reviving]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        if connection is not None:
            await connection.close()

    def _send(self) -> None:
        """Send the requests that have a slot, and check whether an answer can still arrive."""
        self._count_unfilled()
        while self._connection is not None and (taken := self._queues.take(_now())) is not None:
            at, ask = taken
            if requests := ask.open_requests():
                flight = asyncio.create_task(self._fly(at, ask, requests, self._connection))
                self._flights[flight] = ask
                self._running += len(requests)
                flight.add_done_callback(partial(self._landed, at, len(requests)))
            else:
                self._queues.release(at)
        self._empty = 0.0 if self.load.waiting else 1 - self._running / self.capacity
        self._check_alive()
        if self.load.waiting and not (self._flights or self._later or self._reviving):
            # A timer may fire slightly before the end of the rest period for which it was set.
            self._after(LOOK_SECONDS, self._send)

    def _landed(self, at: int, requests: int, flight: "asyncio.Task[None]") -> None:
        """Called when a request ends. It is a callback because a task that is cancelled before it begins runs no code."""
        del self._flights[flight]
        self._running -= requests
        self._queues.release(at)
        self._send()

    async def _fly(self, at: int, ask: _Ask, requests: tuple[Request, ...], connection: Http) -> None:
        try:
            prompt = requests[0].prefix.prompt_ids
            body, limit = self._wire.body(prompt, len(requests)), self._wire.max_bytes(prompt, len(requests))
            answer = self._wire.answer(await connection.post(at, COMPLETIONS, body, limit=limit), len(requests))
            self._succeeded(at, ask, requests, answer)
        except BadAnswer as error:
            self._failed(at, ask, ServerError(ErrorKind.FAULT, f"{self._servers.urls[at]}: {error}"))
        except ServerError as server_error:
            self._failed(at, ask, server_error)
        except Exception as error:  # noqa: BLE001  else the caller would wait forever
            stated = f"{requests[0].request_id} could not be sampled: {type(error).__name__}: {error}"
            ask.call.arrived.put_nowait(EngineDied(stated))

    def _succeeded(self, at: int, ask: _Ask, requests: tuple[Request, ...], answer: Answer) -> None:
        self._silent_since = None
        self._setbacks[at] = 0
        self._queues.record_answer(at)
        before, generated, attended = len(requests[0].prefix.prompt_ids), 0, 0
        for request, choice in zip(requests, answer.choices, strict=False):  # a server may return fewer
            completion = self._completion(request, choice, answer, keep_tokens=ask.call.keep_tokens)
            n = completion.n_tokens
            generated, attended = generated + n, attended + attended_tokens(before, n)
            if request.request_id in ask.call.unanswered:
                _give(ask.call, completion)
        prompt = len(answer.choices) * before
        prefilled = 0 if answer.cached is None else max(0, prompt - answer.cached)
        self._work += EngineWork(generated=generated, attended=attended, prompt=prompt, prefilled=prefilled)
        if len(answer.choices) < len(requests):
            self._queues.add_again(ask, ask.problem_id, failed_at=at)

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

    def _failed(self, at: int, ask: _Ask, server_error: ServerError) -> None:
        """Decide what happens to a request and to its server after a failed try."""
        now = _now()
        self._last_error = str(server_error)
        if server_error.kind is ErrorKind.REFUSED:
            for request in ask.open_requests():
                _give(ask.call, empty_completion(request, Finish.ENGINE_FAILED))
            return
        if self._silent_since is None:
            self._silent_since = now
        if server_error.kind in (ErrorKind.DROPPED, ErrorKind.GONE):
            self._leave_out(at)
        if server_error.kind is ErrorKind.BUSY:
            # Requests that were in flight together with the first rejected one count as one setback.
            self._setbacks[at] += not self._queues.is_resting(at, now)
            seconds = pause(self._setbacks[at], random.random()) if server_error.wait is None else server_error.wait
            self._queues.rest(at, now, seconds)
            self._after(seconds, self._send)
        if server_error.kind in (ErrorKind.BUSY, ErrorKind.GONE):
            self._queues.add_again(ask, ask.problem_id, failed_at=at)
            return
        ask.failures += 1
        if ask.failures > self._servers.retries:
            name = ask.requests[0].request_id
            death = f"{name} failed {ask.failures} times (policy.openai.retries), the last time: {server_error}"
            ask.call.arrived.put_nowait(EngineDied(death))
            return
        self._after(pause(ask.failures, random.random()), lambda: self._ask_again(ask, at))

    def _ask_again(self, ask: _Ask, failed_at: int) -> None:
        self._queues.add_again(ask, ask.problem_id, failed_at=failed_at)
        self._send()

    def _leave_out(self, at: int) -> None:
        """Send nothing to a server until it lists its model again."""
        if self._queues.mark_down(at):
            reviving = asyncio.create_task(self._revive(at))
            self._reviving.add(reviving)
            reviving.add_done_callback(self._reviving.discard)

    async def _revive(self, at: int) -> None:
        while self._connection is not None:
            self._setbacks[at] += 1
            await asyncio.sleep(pause(self._setbacks[at], random.random()))
            try:
                context = await model_context(self._connection, at, self._servers.urls[at], self._config.model)
                if context is None or context >= self.max_model_len:
                    self._queues.mark_up(at)
                    self._send()
                    return
                self._last_error = f"{self._servers.urls[at]} came back with a context of {context} tokens"
            except (ServerError, PolicyError) as error:
                self._last_error = str(error)
            self._check_alive()

    def _check_alive(self) -> None:
        """Make all calls raise EngineDied when no server has answered for too long and no answer is expected."""
        now, patience = _now(), self._servers.patience_seconds
        silent = 0.0 if self._silent_since is None else now - self._silent_since
        if self._death or silent < patience or self._queues.in_flight or not self._queues.none_available(now):
            return
        self._death = (
            f"no server of policy.openai.urls answered for {patience:g} s (policy.openai.patience_seconds): "
            f"{self._last_error}"
        )
        for call in self._calls:
            call.arrived.put_nowait(EngineDied(self._death))

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        def run() -> None:
            self._later.discard(handle)
            act()

        handle = asyncio.get_running_loop().call_later(seconds, run)
        self._later.add(handle)

    def _cancel_unwanted(self) -> None:
        """Cancel HTTP requests that no caller waits for. The server stops generating when the connection closes."""
        for flight, ask in self._flights.items():
            if not ask.open_requests():
                flight.cancel()

    def _count_unfilled(self) -> None:
        now = _now()
        self._unfilled_seconds += self._empty * (now - self._counted_at)
        self._counted_at = now


def _asks(call: _Call, requests: Sequence[Request], most: int) -> Iterator[_Ask]:
    for _, adjacent in groupby(requests, key=lambda request: request.prefix.prefix_id):
        group = tuple(adjacent)
        for begin in range(0, len(group), most):
            yield _Ask(call=call, requests=group[begin : begin + most])


def _give(call: _Call, completion: Completion) -> None:
    del call.unanswered[completion.request.request_id]
    call.arrived.put_nowait(completion)


def _now() -> float:
    return asyncio.get_running_loop().time()
