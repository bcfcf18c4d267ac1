"""Questions to servers: one HTTP request each, whose answer the caller reads. Each is answered once, refused, or the servers
count as dead (see `dispatch`)."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pipeline.core.errors import EngineDied, PolicyError
from pipeline.engines.openai.dispatch import Dispatcher
from pipeline.engines.openai.handshake import handshakes, model_context
from pipeline.engines.openai.http import Http, key_from
from pipeline.engines.openai.wire import MODELS, ServerError
from pipeline.engines.settings import OpenAiConfig

T = TypeVar("T")
_VERSION = "/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T]):
    """`name`: what it asks for, for messages. `home`: see `dispatch.Job`. `limit`: the largest answer in bytes. `read`: makes
    the result of an answer; it raises BadAnswer."""

    name: str
    home: str
    path: str
    body: bytes
    limit: int
    read: Callable[[bytes], T]


@dataclass(slots=True, eq=False)
class _Asked(Generic[T]):
    """A question that waits for its answer: a `dispatch.Job`."""

    question: Question[T]
    answer: "asyncio.Future[T]"
    failures: int = 0

    @property
    def home(self) -> str:
        return self.question.home

    @property
    def name(self) -> str:
        return self.question.name

    @property
    def wanted(self) -> int:
        return 0 if self.answer.done() else 1

    async def attempt(self, at: int, connection: Http) -> bool:
        asked = self.question
        result = asked.read(await connection.post(at, asked.path, asked.body, limit=asked.limit))
        if not self.answer.done():
            self.answer.set_result(result)
        return True

    def refuse(self, error: ServerError) -> None:
        self._fail(error)

    def give_up(self, error: EngineDied) -> None:
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(slots=True, eq=False)
class Questions:
    """Asks servers that serve `model`. `at_root`: the paths of questions stand beside `/v1`, where the URLs end, not below it.

    Use one instance in one event loop only, from `start` to `close`.
    """

    servers: OpenAiConfig
    model: str
    at_root: bool = False
    context: int | None = None
    """The smallest context length that a server states, in tokens. Known after `start`."""
    _dispatcher: "Dispatcher[_Asked[Any]] | None" = None
    _open: "set[_Asked[Any]]" = field(default_factory=set)

    @property
    def capacity(self) -> int:
        """The number of questions that are open at once."""
        return len(self.servers.urls) * self.servers.connections

    async def start(self, path: str, probe: Callable[[Http, int], Awaitable[None]]) -> None:
        """Check all servers: that they list the model, and `probe(connection, at)`, which asks server `at` at `path`. Raises
        PolicyError for a mistake, and PlaceError where no server is reachable."""
        urls = [url.rstrip("/").removesuffix(_VERSION) for url in self.servers.urls] if self.at_root else ()
        connection = Http(self.servers, key_from(os.environ, self.servers), urls=urls)
        try:
            found = await handshakes(
                connection, self.servers, self.model, path, lambda at: probe(connection, at), models=self._models
            )
        except PolicyError:
            await connection.close()
            raise
        self.context = min((each.context for each in found if each.context is not None), default=None)
        self._dispatcher = Dispatcher(self.servers, connection, serves=self._serves, died=self._died)
        for at, handshake in enumerate(found):
            if handshake.server_error:
                self._dispatcher.leave_out(at)

    async def ask(self, question: Question[T]) -> T:
        """The answer to a question. Raises ServerError if the servers refuse it, and EngineDied when they stop working."""
        dispatcher = self._dispatcher
        if dispatcher is None:
            raise EngineDied("the connection to the servers has not been started, or was closed")
        if dispatcher.death:
            raise EngineDied(dispatcher.death)
        if not self._open:
            dispatcher.begin_patience()
        asked = _Asked(question=question, answer=asyncio.get_running_loop().create_future())
        self._open.add(asked)
        try:
            dispatcher.add(asked)
            dispatcher.send()
            result: T = await asked.answer
            return result
        except asyncio.CancelledError:
            dispatcher.cancel_unwanted()
            raise
        finally:
            self._open.discard(asked)

    async def close(self) -> None:
        """Close the connections; open questions end with EngineDied. Safe to call twice and after a failed start."""
        dispatcher, self._dispatcher = self._dispatcher, None
        if dispatcher is not None:
            await dispatcher.close()
            self._died("the connection to the servers was closed")

    @property
    def _models(self) -> str:
        return _VERSION + MODELS if self.at_root else MODELS

    async def _serves(self, connection: Http, at: int) -> str:
        context = await model_context(connection, at, self.servers, self.model, self._models)
        if context is None or self.context is None or context >= self.context:
            return ""
        return f"{self.servers.urls[at]} came back with a context of {context} tokens"

    def _died(self, why: str) -> None:
        for asked in [*self._open]:
            asked.give_up(EngineDied(why))
