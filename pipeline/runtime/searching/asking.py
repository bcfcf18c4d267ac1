"""Questions of many searches to one engine: those that come up in one turn of the event loop go to it together."""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from pipeline.core.records import ChainText, Completion, Request
from pipeline.engines.base import Engine
from pipeline.runtime.sampling import sample_batches
from pipeline.runtime.scoring.task import score_chains
from pipeline.scorers.base import ScoringEngine, StepScores

CALLS = 8
"""Calls that are under way at once where more chains wait than the scorer takes, so that no search waits for the longest chain
of another. Few would end together and leave it idle; with many each is small, which an engine that makes its own batches of a
call does not like."""

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
Take = Callable[[Answer], None]
"""What is done with an answer. A coroutine for each question would cost a twentieth of the CPU of a search."""
Begin = Callable[[Coroutine[Any, Any, None]], None]
"""Begins what searches wait for."""


class Questions(Generic[Asked, Answer]):
    """See the module. `open`: questions without an answer; `counted` is called when their number has changed. `call`: asks the
    engine, and gives answers with the places of their questions, as they arrive. `capacity`: the most questions that it has at
    once."""

    def __init__(
        self,
        call: Callable[[Sequence[Asked]], AsyncIterator[Sequence[tuple[int, Answer]]]],
        capacity: Callable[[], int],
        begin: Begin,
        counted: Callable[[], None],
    ) -> None:
        self._call = call
        self._capacity = capacity
        self._begin = begin
        self._counted = counted
        self._waiting: deque[tuple[Asked, Take[Answer]]] = deque()
        self._scheduled = False
        self.open = 0

    @property
    def late(self) -> int:
        """Questions that are more than the engine takes."""
        return max(0, self.open - self._capacity())

    def ask(self, question: Asked, take: Take[Answer]) -> None:
        """Ask for an answer, for which `take` is called. None comes from an engine that stops working."""
        self._waiting.append((question, take))
        self.open += 1
        self._schedule()

    def _schedule(self) -> None:
        """Count and send, after those who have an answer now have asked further."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        self._counted()
        capacity = self._capacity()
        free = capacity - (self.open - len(self._waiting))
        while self._waiting and free > 0:
            size = min(max(1, capacity // CALLS), len(self._waiting), free)
            free -= size
            self._begin(self._ask([self._waiting.popleft() for _ in range(size)]))

    async def _ask(self, asked: Sequence[tuple[Asked, Take[Answer]]]) -> None:
        left = len(asked)
        try:
            async for answers in self._call([question for question, _ in asked]):
                left -= len(answers)
                self.open -= len(answers)
                for place, answer in answers:
                    asked[place][1](answer)
                self._schedule()
        finally:
            self.open -= left
            self._schedule()


def policy_questions(engine: Engine, begin: Begin, counted: Callable[[], None]) -> Questions[Request, Completion]:
    """Requests for samples. The engine gets all: it makes its own batches."""

    async def call(requests: Sequence[Request]) -> AsyncIterator[Sequence[tuple[int, Completion]]]:
        places = {request.request_id: place for place, request in enumerate(requests)}
        # Samples of a node are adjacent, so that the engine computes their prompt once.
        ordered = sorted(requests, key=lambda each: (each.prefix.prefix_id, each.request_id))
        async for batch in sample_batches(engine, ordered, keep_tokens=True):
            yield [(places[completion.request.request_id], completion) for completion in batch]

    return Questions(call, lambda: sys.maxsize, begin, counted)


def scorer_questions(
    engine: ScoringEngine, begin: Begin, counted: Callable[[], None]
) -> Questions[ChainText, StepScores]:
    """Chains to score, in calls of a few: see CALLS."""

    async def call(chains: Sequence[ChainText]) -> AsyncIterator[Sequence[tuple[int, StepScores]]]:
        yield list(enumerate(await score_chains(engine, chains)))

    return Questions(call, lambda: engine.capacity, begin, counted)
