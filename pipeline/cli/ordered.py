"""Emits results in the order of their inputs, although they are computed out of order. Pure except that it waits.

The thread that finishes the next result emits it, together with the known results after it. So a producer that waits for input
does not delay results. The number and the bytes of waiting results are bounded. A failure is raised in the thread that puts.
Only one thread may put.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_WAITING = 10_000
MAX_WAITING_BYTES = 64 * 2**20
"""The sum of the sizes that are given with the results. One more result may wait."""


class InOrder(Generic[T]):
    """Calls `emit` with every result in the order of `put` and `put_later`, one call at a time."""

    def __init__(self, emit: Callable[[T], None]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[T], int]] = deque()
        self._bytes = 0
        self._failure: BaseException | None = None

    def put(self, result: T, size: int) -> None:
        """Add a known result. Raises the error that `emit` or an earlier result has raised."""
        known: Future[T] = Future()
        known.set_result(result)
        self.put_later(known, size)

    def put_later(self, result: "Future[T]", size: int) -> None:
        """Add a result that becomes known later. Blocks while too many results wait. Raises like `put`."""
        with self._lock:
            self._waiting.append((result, size))
            self._bytes += size
        result.add_done_callback(self._advance)
        while len(self._waiting) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            self._await_oldest()
        self._raise_failure()

    def finish(self) -> None:
        """Wait until all results are emitted. Raises like `put`."""
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
            except BaseException as error:  # noqa: BLE001 - an executor drops the errors of callbacks; `put` raises them instead
                self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
