"""Completions of an engine that is not trusted: every request is answered once, or the engine counts as dead."""

from collections.abc import AsyncIterator, Sequence

from pipeline.core.errors import EngineDied
from pipeline.core.records import Completion, Finish, Request
from pipeline.engines.base import Engine, unanswered


async def sampled(
    engine: Engine, requests: Sequence[Request], *, keep_tokens: bool = False
) -> AsyncIterator[Sequence[Completion]]:
    """Completions in batches as they come. Raises EngineDied also for an answer too many, too few or to another request."""
    waiting = {request.request_id for request in requests}
    async for batch in engine.generate(requests, keep_tokens=keep_tokens):
        for completion in batch:
            answered = completion.request.request_id
            if answered not in waiting:
                raise EngineDied(f"the engine answered {answered}, which was answered already or never asked")
            waiting.remove(answered)
        yield batch
    if waiting:
        raise EngineDied(f"the engine left {len(waiting)} requests without an answer, {min(waiting)} for one")


def failed(request: Request) -> Completion:
    """The completion of a request that engines do not survive."""
    return unanswered(request, Finish.ENGINE_FAILED)
