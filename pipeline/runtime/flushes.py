"""Commits what a unit has while the unit is in work, so that a crash loses little."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def with_flushes(
    flush: Callable[[], Coroutine[Any, Any, None]], seconds: float, work: Coroutine[Any, Any, Result]
) -> Result:
    """The result of `work`, while `flush` is called every `seconds`. Raises what either of them raises, and ends both."""
    working = asyncio.create_task(work)
    flushing = asyncio.create_task(_regularly(flush, seconds))
    try:
        await asyncio.wait([working, flushing], return_when=asyncio.FIRST_COMPLETED)
        if flushing.done():
            flushing.result()
        return await working
    finally:
        for task in (working, flushing):
            task.cancel()


class Uninterrupted:
    """Runs coroutines to their ends even if their callers are cancelled. The thread of a coroutine would go on anyway, next to
    the thread of the next one."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # asyncio prints the errors that nobody asks for, and a caller that was cancelled asks no more


async def _regularly(flush: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        await flush()
