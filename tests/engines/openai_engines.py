"""Engines of `policy=openai` on servers of `served`, and the requests that tests give them."""

import asyncio
import selectors
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec

from pipeline.config.label import SamplingConfig
from pipeline.core.ids import rollout_id
from pipeline.core.records import Completion, Prefix, Problem, Request
from pipeline.engines.base import Engine
from pipeline.engines.openai.engine import OpenAiEngine
from pipeline.engines.settings import OpenAiConfig
from tests.engines.served import MODEL, Server, served
from tests.settings import policy_settings

P = ParamSpec("P")
ON_ITS_WAY = 0.01
"""Seconds that what was sent on this machine may take to arrive."""
TEXT = "=12#7"
"""What every server answers."""


def engine(
    *servers: Server,
    model: str = MODEL,
    max_model_len: int | None = None,
    sampling: SamplingConfig | None = None,
    **how: Any,
) -> OpenAiEngine:
    asked = OpenAiConfig(urls=[server.url for server in servers], **{"retries": 3, "connections": 8, **how})
    policy = policy_settings("openai", model=model, openai=asked, max_model_len=max_model_len)
    return OpenAiEngine(policy, sampling or SamplingConfig(max_tokens=16))


@asynccontextmanager
async def running(*servers: Server, **how: Any) -> AsyncIterator[OpenAiEngine]:
    """A started engine on servers whose record of its first requests is cleared."""
    async with AsyncExitStack() as stack:
        for server in servers:
            if not server.url:
                await stack.enter_async_context(served(server))
        acts = [list(server.acts) for server in servers]
        for server in servers:
            server.acts.clear()
        made = engine(*servers, **how)
        await made.start()
        for server, planned in zip(servers, acts, strict=True):
            server.bodies.clear()
            server.headers.clear()
            server.seen.clear()
            server.misbehave(planned)
        try:
            yield made
        finally:
            await made.close()
            await made.close()


def requests(count: int, problem_id: str = "p", start: int = 0) -> list[Request]:
    problem = Problem(problem_id=problem_id, text="?", golds=("7",))
    prefix = Prefix(prefix_id=f"x{problem_id}", step_index=0, text="", prompt_ids=(1, 2, *problem_id.encode()))
    return [
        Request(request_id=rollout_id(prefix.prefix_id, index), issue_index=index, problem=problem, prefix=prefix)
        for index in range(start, start + count)
    ]


async def drained(
    made: Engine, asked: Sequence[Request], done: list[Completion] | None = None, *, keep_tokens: bool = False
) -> list[Completion]:
    done = [] if done is None else done
    async for batch in made.generate(asked, keep_tokens=keep_tokens):
        assert batch
        done.extend(batch)
    return done


class HurriedLoop(asyncio.SelectorEventLoop):
    """Waiting takes no time: its clock jumps to the next timer when neither a socket nor a thread has anything for it."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._in_threads = 0
        super().__init__(_Hurried(self))

    def time(self) -> float:
        return super().time() + self._ahead

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        self._in_threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._one_less)
        return future

    def _one_less(self, _: object) -> None:
        self._in_threads -= 1


class _Hurried(selectors.DefaultSelector):
    def __init__(self, loop: HurriedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout <= ON_ITS_WAY or self._loop._in_threads:
            return super().select(timeout)
        found = super().select(ON_ITS_WAY)
        if not found:
            self._loop._ahead += timeout - ON_ITS_WAY
        return found


def run(work: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        return runner.run(asyncio.wait_for(work, 300))


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """The test as one that pytest runs: in a loop in which waiting takes no time."""

    @wraps(test)
    def in_its_loop(*given: P.args, **named: P.kwargs) -> None:
        run(test(*given, **named))

    return in_its_loop


def answered_once(done: Sequence[Completion], asked: Sequence[Request]) -> bool:
    return Counter(each.request.request_id for each in done) == Counter(each.request_id for each in asked)
