"""A completions server on the loopback interface with faults on request, for tests of `policy=openai`."""

import asyncio
import json
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aiohttp import web

MODEL = "tiny"
CONTEXT = 512


class Act(Enum):
    """What the server does with one request for completions."""

    SERVE = "serve"
    DROP = "drop"
    DROP_HALFWAY = "drop halfway"
    SLOW = "slow"
    HANG = "hang"
    NOT_JSON = "not JSON"
    WRONG_TYPES = "wrong types"
    OTHER_MODEL = "other model"
    FEWER_CHOICES = "fewer choices"
    NO_CHOICE = "no choice"
    MORE_CHOICES = "more choices"
    TOO_LARGE = "too large"
    DEEP = "deep"
    SHUTTING_DOWN = "shutting down"
    BUSY = "429"
    OVERLOADED = "503"
    REFUSE = "400"
    ERROR = "500"
    NO_KEY = "401"
    NO_ROUTE = "404"
    REDIRECT = "307"


_STATUSES = {act: int(act.value) for act in Act if act.value.isdigit()}


@dataclass(kw_only=True)
class Server:
    """It does one of `acts` per request for completions. After the last one it serves every request."""

    acts: deque[Act] = field(default_factory=deque)
    models: Any = field(default_factory=lambda: {"data": [{"id": MODEL, "max_model_len": CONTEXT}]})
    models_status: int = 200
    key: str = ""
    seconds: float = 0.0
    """How long a completion takes."""
    retry_after: str | None = "0.05"
    reports_ids: bool = True
    reports_usage: bool = True
    stops: bool = False
    """It ends completions at the stop texts and the limit of a request, and keeps the stop text if asked."""
    names_stop: str = ""
    """The field in which it names the stop text that it reached: stop_reason in vLLM, matched_stop in SGLang."""
    elsewhere: str = ""
    """Where it redirects to."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    seen: "Counter[Act]" = field(default_factory=Counter)
    most_at_once: int = 0
    given_up: int = 0
    """Requests whose client went away."""
    url: str = ""
    _at_once: int = 0

    def misbehave(self, acts: Iterable[Act]) -> None:
        self.acts.extend(acts)

    @property
    def prompts(self) -> list[tuple[int, ...]]:
        return [tuple(body["prompt"]) for body in self.bodies]

    async def list_models(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            said = f"Incorrect API key provided: {request.headers.get('Authorization')}"
            return web.json_response({"error": {"message": said}}, status=401)
        if isinstance(self.models, str):
            return web.Response(text=self.models, status=self.models_status)
        return web.json_response(self.models, status=self.models_status)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        body = json.loads(await request.read())
        self.bodies.append(body)
        act = self.acts.popleft() if self.acts else Act.SERVE
        self.seen[act] += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._acted(act, request, body)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        finally:
            self._at_once -= 1

    async def _acted(self, act: Act, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if act is Act.DROP:
            return _dropped(request)
        if act is Act.HANG:
            await asyncio.Event().wait()
        if act in _STATUSES:
            headers = {"Retry-After": self.retry_after} if self.retry_after and act is not Act.REDIRECT else {}
            if act is Act.REDIRECT:
                headers = {"Location": self.elsewhere}
            said = {"error": {"message": f"authorised by {request.headers.get('Authorization')}\x1b[31m"}}
            return web.json_response(said, status=_STATUSES[act], headers=headers)
        if self.seconds or act is Act.SLOW:
            await asyncio.sleep(self.seconds or 0.05)
        answer = self._answer(act, {**body, "said": request.headers.get("Authorization", "")})
        if act is Act.DROP_HALFWAY:
            response = web.StreamResponse(headers={"Content-Length": str(len(answer))})
            await response.prepare(request)
            await response.write(answer[: len(answer) // 2])
            return _dropped(request)
        return web.Response(body=answer, content_type="application/json")

    def _answer(self, act: Act, body: dict[str, Any]) -> bytes:
        n = body["n"]
        count = {Act.FEWER_CHOICES: max(1, n - 1), Act.NO_CHOICE: 0, Act.MORE_CHOICES: n + 1}.get(act, n)
        answer: dict[str, Any] = {
            "object": "text_completion",
            "model": "somebody else" if act is Act.OTHER_MODEL else body["model"],
            "choices": [self._choice(index, act, body) for index in range(count)],
        }
        if self.reports_usage:
            answer["usage"] = {"prompt_tokens": len(body["prompt"]), "completion_tokens": 5 * count}
        match act:
            case Act.NOT_JSON:
                return f"<html>Welcome{body['said']}</html>".encode()
            case Act.DEEP:
                return b"[" * 200_000
            case Act.WRONG_TYPES:
                answer["choices"][0] |= {"text": 7, "token_ids": "12345"}
            case Act.TOO_LARGE:
                answer["padding"] = "x" * (8 * 1024 * 1024)
            case _:
                pass
        return json.dumps(answer).encode()

    def _choice(self, index: int, act: Act, body: dict[str, Any]) -> dict[str, Any]:
        text = "=12#7"
        reason = "abort" if act is Act.SHUTTING_DOWN else "stop"
        choice: dict[str, Any] = {"index": index, "text": text, "finish_reason": reason}
        if self.stops:
            written = text[: body["max_tokens"]]
            if len(written) < len(text):
                choice["finish_reason"] = "length"
            reached = [(written.find(stop), stop) for stop in body.get("stop", []) if stop in written]
            text = written
            if reached:
                at, stop = min(reached)
                text = written[:at] + (stop if body.get("include_stop_str_in_output") else "")
                choice["finish_reason"] = "stop"
                if self.names_stop:
                    choice[self.names_stop] = stop
            choice["text"] = text
        if self.reports_ids:
            choice["token_ids"] = list(text.encode())
        return choice


def _dropped(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@asynccontextmanager
async def listening(app: web.Application, port: int = 0) -> AsyncIterator[str]:
    """The address of its routes below /v1."""
    # A client that goes away cancels its request, as it does at vLLM.
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def served(server: Server, port: int = 0) -> AsyncIterator[Server]:
    """The listening server. Its `url` ends in /v1."""
    app = web.Application()
    app.router.add_get("/v1/models", server.list_models)
    app.router.add_post("/v1/completions", server.complete)
    async with listening(app, port) as server.url:
        yield server


@contextmanager
def beside(serving: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
    """What it yields, which lives in a thread of its own: for code that has its own event loop."""
    begun, ended, loop = Future[Any](), asyncio.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with serving as found:
            begun.set_result(found)
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        yield begun.result(30)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def served_beside(server: Server) -> AbstractContextManager[Server]:
    return beside(served(server))
