"""A worker's engine as its units sample with it: when it needs more requests, and that each of them is answered once.

When it needs more, what is due is decided, and where that is not enough another unit begins.
While the engine has plenty, decisions wait for each other: many taken together cost little more than one. When it has little,
as at the end of the input, none waits.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

from pipeline.core.errors import EngineDied
from pipeline.core.records import Completion, Finish, Request
from pipeline.engines.base import Engine, empty_completion

LOW = 1.2
"""Requests that wait for an engine, over the number it runs at once, below which it is hungry: enough that one that ends is
replaced at once while others are being prepared."""
HIGH = 2.4
"""As many wait when it is hungry no more."""


class Backpressure:
    """Told of units that begin and of requests that come and go; it knows nothing else of either.

    `capacity`: requests that the engine runs at once.
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
    def wants_requests(self) -> bool:
        """Whether the engine needs more requests; from LOW waiting ones on until there are HIGH."""
        return self._wanted.is_set()

    @property
    def wants_unit(self) -> bool:
        """Whether another unit is wanted: the others have nothing more to ask for now."""
        return self.wants_requests and not self._preparing and not self._deciding

    def begin(self, unit_id: str) -> None:
        """A unit is begun, and has asked for nothing yet."""
        self._preparing.add(unit_id)
        self._begun += 1
        self._changed.set()

    def ready(self, unit_id: str) -> None:
        """A unit has asked for what it wants first, or has ended."""
        self._preparing.discard(unit_id)
        self._changed.set()

    def ask(self, requests: int) -> None:
        """So many requests are put to the engine."""
        self._outstanding += requests
        if self._waiting >= HIGH * self._capacity:
            self._wanted.clear()

    def answer(self, requests: int) -> None:
        """So many have come back from it."""
        self._outstanding -= requests
        if self._waiting < LOW * self._capacity:
            self._wanted.set()
            self._changed.set()

    async def turn(self) -> None:
        """Return when a unit may take decisions that are due; it says so when it has `decided`."""
        self._deciding += 1
        try:
            while not self.wants_requests:
                await self._wanted.wait()
        except asyncio.CancelledError:
            self.decided()
            raise

    def decided(self) -> None:
        """A unit that had its turn has asked for what it wants."""
        self._deciding -= 1
        self._changed.set()

    async def wait(self, begun: int = 0) -> None:
        """Return when another unit is wanted, so many having been begun: a call may overtake the one that brings a unit."""
        while self._begun < begun or not self.wants_unit:
            self._changed.clear()
            await self._changed.wait()

    @property
    def _waiting(self) -> int:
        return self._outstanding - self._capacity


async def sample_batches(
    engine: Engine, requests: Sequence[Request], *, keep_tokens: bool = False
) -> AsyncIterator[Sequence[Completion]]:
    """Completions in batches as they come, of an engine that is not trusted.

    Raises EngineDied also for an answer too many, too few or to another request.
    """
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


def failed_completion(request: Request) -> Completion:
    """The completion of a request that engines do not survive."""
    return empty_completion(request, Finish.ENGINE_FAILED)
