"""Runs a search of one problem: which questions are open, and what an answer leads to.

Each question is asked once, although several parts of a search may wait for its answer, or ask it again later.
"""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pipeline.searches.base import Ask, Steps, Together

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Branch:
    """A generator that runs, and where its result goes: entry `place` of `join`; nowhere for the whole search."""

    steps: Steps[Any]
    join: "_Join | None" = None
    place: int = 0


@dataclass(slots=True, eq=False)
class _Join:
    """A branch that waits for parts of it: their results, and how many are missing."""

    branch: _Branch
    results: list[Any]
    missing: int


@dataclass(slots=True, eq=False)
class Machine(Generic[T]):
    """See the module. `begin` and `take` return the questions that are new; `done` says that there are no more, and `result` is
    that of the search."""

    steps: Steps[T]
    result: T | None = None
    done: bool = False
    _answers: dict[str, Any] = field(default_factory=dict)
    _waiting: dict[str, list[_Branch]] = field(default_factory=dict)

    def begin(self) -> list[Ask]:
        """Start the search."""
        return self._run([(_Branch(self.steps), None)])

    def take(self, ask: Ask, answer: Any) -> list[Ask]:
        """Go on with the answer to an open question. Raises KeyError for a question that is not open."""
        key = ask.key
        self._answers[key] = answer
        return self._run([(branch, answer) for branch in self._waiting.pop(key)])

    def _run(self, due: list[tuple[_Branch, Any]]) -> list[Ask]:
        """Run branches until each waits or has ended. In the order of a queue, so that earlier parts ask first."""
        asked: list[Ask] = []
        at = 0
        while at < len(due):
            branch, answer = due[at]
            at += 1
            try:
                wanted = branch.steps.send(answer)
            except StopIteration as ended:
                self._ended(branch, ended.value, due)
                continue
            if isinstance(wanted, Together):
                self._fork(branch, wanted, due)
                continue
            key = wanted.key
            if key in self._answers:
                due.append((branch, self._answers[key]))
            elif key in self._waiting:
                self._waiting[key].append(branch)
            else:
                self._waiting[key] = [branch]
                asked.append(wanted)
        return asked

    def _fork(self, branch: _Branch, wanted: Together, due: list[tuple[_Branch, Any]]) -> None:
        if not wanted.parts:
            due.append((branch, []))
            return
        join = _Join(branch, [None] * len(wanted.parts), len(wanted.parts))
        due.extend((_Branch(part, join, place), None) for place, part in enumerate(wanted.parts))

    def _ended(self, branch: _Branch, result: Any, due: list[tuple[_Branch, Any]]) -> None:
        join = branch.join
        if join is None:
            self.result, self.done = result, True
            return
        join.results[branch.place] = result
        join.missing -= 1
        if not join.missing:
            due.append((join.branch, join.results))
