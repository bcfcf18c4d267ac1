"""Whether a worker has room for another unit: whether its engine would run short of requests without one."""

import asyncio

BACKLOG = 1.5
"""Requests that wait for an engine, over the number it runs at once, below which another unit is begun. Its prompts have to be
made before it asks for anything, so this is more than the 1.2 that an engine should never fall below."""


class Room:
    """Told of units that are begun and of requests that come and go; it knows nothing else of either.

    `capacity`: requests that the engine runs at once.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._preparing: set[str] = set()
        self._outstanding = 0
        self._changed = asyncio.Event()

    def begin(self, unit_id: str) -> None:
        """A unit is begun, and has asked for nothing yet."""
        self._preparing.add(unit_id)

    def ready(self, unit_id: str) -> None:
        """A unit has asked for what it wants first, or has ended."""
        self._preparing.discard(unit_id)
        self._changed.set()

    def ask(self, requests: int) -> None:
        """So many requests are put to the engine."""
        self._outstanding += requests

    def answer(self, requests: int) -> None:
        """So many have come back from it."""
        self._outstanding -= requests
        self._changed.set()

    @property
    def there(self) -> bool:
        return not self._preparing and self._outstanding < (1 + BACKLOG) * self._capacity

    async def wait(self) -> None:
        """Return when there is room."""
        while not self.there:
            self._changed.clear()
            await self._changed.wait()
