"""Samples of many searches from one policy engine.

Requests of all problems that come up in one turn of the event loop go to the engine together.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from pipeline.core.records import Completion, Request
from pipeline.engines.base import Engine
from pipeline.runtime.sampling import sample_batches

Take = Callable[[Completion], None]
"""What is done with a completion."""
Died = Callable[[BaseException], None]
"""What is done with the error of an engine."""


def begin(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]], died: Died) -> None:
    """Run something as one of `tasks` until it ends. `died` is called with its error."""

    def ended(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            died(error)

    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(ended)


class Sampler:
    """Sends requests to the engine. `open`: requests without a completion. `counted` is called when their number changes, and
    `died` with the error of an engine that stops working."""

    def __init__(self, engine: Engine, counted: Callable[[], None], died: Died) -> None:
        self._engine = engine
        self._counted = counted
        self._died = died
        self._new: list[tuple[Request, Take]] = []
        self._calls: set[asyncio.Task[None]] = set()
        self.open = 0

    def ask(self, request: Request, take: Take) -> None:
        """Ask for a completion, for which `take` is called."""
        if not self._new:
            asyncio.get_running_loop().call_soon(self._send)
        self._new.append((request, take))
        self.open += 1

    def close(self) -> None:
        """Wait for no more completions."""
        for call in self._calls:
            call.cancel()

    def _send(self) -> None:
        new, self._new = self._new, []
        # Samples of a node are adjacent, so that the engine computes their prompt once.
        new.sort(key=lambda each: (each[0].prefix.prefix_id, each[0].request_id))
        self._counted()
        begin(self._call(new), self._calls, self._died)

    async def _call(self, new: list[tuple[Request, Take]]) -> None:
        taking = {request.request_id: take for request, take in new}
        try:
            async for batch in sample_batches(self._engine, [request for request, _ in new], keep_tokens=True):
                self.open -= len(batch)
                for completion in batch:
                    taking.pop(completion.request.request_id)(completion)
                self._counted()
        finally:
            self.open -= len(taking)
            self._counted()
