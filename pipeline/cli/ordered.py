"""Results that become known out of order, handed on in order. Pure but for the waiting.

Covered: whichever thread finishes the result that is due hands it on, with those behind it that are known; so nobody who waits
for input holds results back. What waits is bounded in number and in bytes. A failure is raised to the thread that puts.
Not covered: more than one thread that puts.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_WAITING = 10_000
MAX_WAITING_BYTES = 64 * 2**20
"""By the sizes that are named with the results: with one more result behind it, this is what can wait."""


class InOrder(Generic[T]):
    """Calls `emit` with every result in the order of `put` and `put_later`, one call at a time."""

    def __init__(self, emit: Callable[[T], None]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[T], int]] = deque()
        self._bytes = 0
        self._failure: BaseException | None = None

    def put(self, result: T, size: int) -> None:
        """Hand on a known result. Raises what `emit`, or a result before it, has raised."""
        known: Future[T] = Future()
        known.set_result(result)
        self.put_later(known, size)

    def put_later(self, result: "Future[T]", size: int) -> None:
        """Hand on a result when it is known; blocks while too much waits. Raises like `put`."""
        with self._lock:
            self._waiting.append((result, size))
            self._bytes += size
        result.add_done_callback(self._advance)
        while len(self._waiting) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            self._await_oldest()
        self._raise_failure()

    def finish(self) -> None:
        """Wait until everything has been handed on. Raises like `put`."""
        while self._waiting:
            self._await_oldest()
        self._raise_failure()

    def _await_oldest(self) -> None:
        with self._lock:
            oldest = [self._waiting[0][0]] if self._waiting else []
        wait(oldest)
        self._advance()
        self._raise_failure()

    def _advance(self, _known: "Future[T] | None" = None) -> None:
        with self._lock:
            try:
                while self._failure is None and self._waiting and self._waiting[0][0].done():
                    result, size = self._waiting.popleft()
                    self._bytes -= size
                    self._emit(result.result())
            except BaseException as error:  # noqa: BLE001 - an executor drops what a callback raises; `put` raises it instead
                self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
