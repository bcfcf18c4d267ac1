"""What our checkers have in common: grades that are known are kept, and children are lent, each to one thread at a time."""

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
    """The grades used last, `CACHE_ENTRIES` at most: many rollouts of one problem say the same. Usable from any thread."""

    def __init__(self) -> None:
        self._grades: dict[Key, Grade] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Grade | None:
        """The grade kept under a key, None where there is none."""
        with self._lock:
            grade = self._grades.pop(key, None)
            if grade is not None:
                self._grades[key] = grade
            return grade

    def keep(self, key: Key, grade: Grade) -> None:
        """Keep a grade, and forget the one used longest ago where there are too many."""
        with self._lock:
            self._grades[key] = grade
            if len(self._grades) > CACHE_ENTRIES:
                del self._grades[next(iter(self._grades))]


class Killable(Protocol):
    """A process, or a place for one, that is started when it is first needed."""

    def kill(self) -> None:
        """End it, whatever it is doing."""


Child = TypeVar("Child", bound=Killable)


class PooledChecker(Checker, Generic[Child]):
    """A checker that asks child processes where it does not know a grade itself."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children
        # Last in, first out: few children are started where few are needed.
        self._idle: queue.LifoQueue[Child] = queue.LifoQueue()
        for child in reversed(children):
            self._idle.put(child)
        self._closed = False

    def close(self) -> None:
        """End the children. Grades that need none can still be had."""
        self._closed = True
        for _ in self._children:
            # Waits for a child at work; its own deadline ends it.
            self._idle.get().kill()
        for child in self._children:
            self._idle.put(child)

    @contextmanager
    def _child(self) -> Iterator[Child]:
        child = self._idle.get()
        try:
            if self._closed:
                raise StepvalueError("this checker is closed")
            yield child
        finally:
            self._idle.put(child)
