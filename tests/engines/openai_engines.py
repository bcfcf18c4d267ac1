"""Engines of `policy=openai` on servers of `served`, and the requests that tests give them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pipeline.config.label import SamplingConfig
from pipeline.core.ids import rollout_id
from pipeline.core.records import Completion, Prefix, Problem, Request
from pipeline.engines.openai.engine import OpenAiEngine
from pipeline.engines.settings import OpenAiConfig
from tests.engines.served import MODEL, Server, served
from tests.settings import policy_settings

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
    made: OpenAiEngine, asked: Sequence[Request], done: list[Completion] | None = None, *, keep_tokens: bool = False
) -> list[Completion]:
    done = [] if done is None else done
    async for batch in made.generate(asked, keep_tokens=keep_tokens):
        assert batch
        done.extend(batch)
    return done


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 30))


def answered_once(done: Sequence[Completion], asked: Sequence[Request]) -> bool:
    return Counter(each.request.request_id for each in done) == Counter(each.request_id for each in asked)
