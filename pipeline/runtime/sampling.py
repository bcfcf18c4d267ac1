"""Connects units to a worker's engine: signals when the engine needs requests, and checks that each request is answered once.

When the engine needs requests, units first take the decisions that are due. If that is not enough, another unit begins.
While the engine has enough requests, decisions are delayed, because many decisions together cost little more than one. When it
has few, as at the end of the input, no decision is delayed.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

from pipeline.core.errors import EngineDied
from pipeline.core.records import Completion, Request
from pipeline.engines.base import Engine

LOW = 1.2
"""The engine needs more requests if fewer than LOW x its capacity wait for it. That many waiting requests replace every request
that ends at once, while others are being prepared."""
HIGH = 2.4
"""The engine needs no more requests once HIGH x its capacity wait for it."""


class Backpressure:
    """Counts the units that begin and the requests at the engine, and signals when the engine needs more.

    `capacity`: number of requests that the engine runs at once.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._outstanding = 0
        self._preparing: set[str] = set()
        self._begun = 0
        self._deciding = 0
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._wanted.set()

    @property
    def outstanding(self) -> int:
        """The number of requests at the engine."""
        return self._outstanding

    @property
    def wants_requests(self) -> bool:
        """Whether the engine needs more requests: from below LOW x capacity waiting requests until HIGH x capacity wait."""
        return self._wanted.is_set()

    @property
    def wants_unit(self) -> bool:
        """Whether another unit should begin, because no other unit is about to send requests."""
        return self.wants_requests and not self._preparing and not self._deciding

    def begin(self, unit_id: str) -> None:
        """Note that a unit has begun. It has sent no requests yet."""
        self._preparing.add(unit_id)
        self._begun += 1
        self._changed.set()

    def ready(self, unit_id: str) -> None:
        """Note that a unit has sent its first requests, or has ended."""
        self._preparing.discard(unit_id)
        self._changed.set()

    def ask(self, requests: int) -> None:
        """Note that `requests` requests are sent to the engine."""
        self._outstanding += requests
        if self._waiting >= HIGH * self._capacity:
            self._wanted.clear()

    def answer(self, requests: int) -> None:
        """Note that the engine has answered `requests` requests."""
        self._outstanding -= requests
        if self._waiting < LOW * self._capacity:
            self._wanted.set()
            self._changed.set()

    async def turn(self) -> None:
        """Return when a unit may take the decisions that are due. Afterwards the unit calls `end_turn`."""
        self._deciding += 1
        try:
            while not self.wants_requests:
                await self._wanted.wait()
        except asyncio.CancelledError:
            self.end_turn()
            raise

    def end_turn(self) -> None:
        """Note that a unit that had its turn has sent its requests."""
        self._deciding -= 1
        self._changed.set()

    async def wait(self, begun: int = 0) -> None:
        """Return when another unit should begin, but not before `begun` units have begun: this call may overtake the call that
        brings a unit."""
        while self._begun < begun or not self.wants_unit:
            self._changed.clear()
            await self._changed.wait()

    @property
    def _waiting(self) -> int:
        return self._outstanding - self._capacity


async def sample_batches(
    engine: Engine, requests: Sequence[Request], *, keep_tokens: bool = False
) -> AsyncIterator[Sequence[Completion]]:
    """The completions of an engine, in batches as they arrive. The answers are checked.

    Raises EngineDied if the engine dies, leaves a request unanswered, answers it twice or answers an unknown request.
    """
    waiting = {request.request_id for request in requests}
    async for batch in engine.generate(requests, keep_tokens=keep_tokens):
        for completion in batch:
            answered = completion.request.request_id
            if answered not in waiting:
                raise EngineDied(f"the engine answered request {answered}, which was already answered or never sent")
            waiting.remove(answered)
        yield batch
    if waiting:
        raise EngineDied(f"the engine left {len(waiting)} requests without an answer, for example {min(waiting)}")
