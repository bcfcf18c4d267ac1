"""Shared parts of the built-in checkers: a cache of grades, and a pool of children, each used by one thread at a time."""

import queue
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from pipeline.core.errors import StepvalueError
from pipeline.core.records import Grade
from pipeline.graders.base import Checker

CACHE_ENTRIES = 50_000

Key = TypeVar("Key", bound=Hashable)


class VerdictCache(Generic[Key]):
    """An LRU cache of `CACHE_ENTRIES` grades, because many rollouts give the same answer. Usable from any thread."""

    def __init__(self) -> None:
        self._grades: dict[Key, Grade] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Grade | None:
        """The cached grade of a key, or None."""
        with self._lock:
            grade = self._grades.pop(key, None)
            if grade is not None:
                self._grades[key] = grade
            return grade

    def keep(self, key: Key, grade: Grade) -> None:
        """Add a grade. If the cache is full, drop the least recently used grade."""
        with self._lock:
            self._grades[key] = grade
            if len(self._grades) > CACHE_ENTRIES:
                del self._grades[next(iter(self._grades))]


class Killable(Protocol):
    """A child process that is started when it is first needed."""

    def kill(self) -> None:
        """End the process at once."""


Child = TypeVar("Child", bound=Killable)


class ChildPool(Generic[Child]):
    """Child processes, each used by one thread at a time. `whose`: what they belong to, for a message."""

    def __init__(self, children: Sequence[Child], whose: str) -> None:
        self.children = children
        self._whose = whose
        # Last in, first out: no more children are started than are needed at the same time.
        self._idle: queue.LifoQueue[Child] = queue.LifoQueue()
        for child in reversed(children):
            self._idle.put(child)
        self._closed = False

    def close(self) -> None:
        """End the child processes."""
        self._closed = True
        for _ in self.children:
            # Waits for a child that is working. The deadline of its task limits the wait.
            self._idle.get().kill()
        for child in self.children:
            self._idle.put(child)

    @contextmanager
    def child(self) -> Iterator[Child]:
        """A child that no other thread uses. Waits for one. Raises StepvalueError if the pool is closed."""
        child = self._idle.get()
        try:
            if self._closed:
                raise StepvalueError(f"{self._whose} is closed")
            yield child
        finally:
            self._idle.put(child)


class PooledChecker(Checker, Generic[Child]):
    """A checker that asks a child process for every grade that it cannot decide itself."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._pool = ChildPool(children, "this checker")
        self._children = self._pool.children
        self._child = self._pool.child

    def close(self) -> None:
        """End the child processes. Grades that need no child process are still available."""
        self._pool.close()
