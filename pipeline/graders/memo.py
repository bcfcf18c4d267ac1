"""Grades that are known already: many rollouts of one problem say the same."""

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

from pipeline.core.records import Grade

MEMO_ENTRIES = 50_000

Key = TypeVar("Key", bound=Hashable)


class Memo(Generic[Key]):
    """The grades used last, `MEMO_ENTRIES` at most. Usable from any thread."""

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
            if len(self._grades) > MEMO_ENTRIES:
                del self._grades[next(iter(self._grades))]
