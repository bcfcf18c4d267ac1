"""Scores for many searches from one scoring engine. What is waiting is scored in calls of a few chains, several at once, so
that no search waits for the longest chain of another."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from pipeline.core.records import ChainText
from pipeline.runtime.scoring.task import score_chains
from pipeline.runtime.searching.sampling import Died, begin
from pipeline.scorers.base import ScoringEngine, StepScores

CALLS = 8
"""Calls that are under way at once where more chains wait than the engine takes. Few would end together and leave it idle; with
many each is small, which an engine that makes its own batches of a call does not like."""


class ScoreQueue:
    """See the module. `open`: chains without scores. `counted` and `died`: see `Sampler`."""

    def __init__(self, engine: ScoringEngine, counted: Callable[[], None], died: Died) -> None:
        self._engine = engine
        self._counted = counted
        self._died = died
        self._waiting: deque[tuple[ChainText, Callable[[StepScores], None]]] = deque()
        self._calls: set[asyncio.Task[None]] = set()
        self._scheduled = False
        self._running = 0
        self.open = 0

    @property
    def capacity(self) -> int:
        """The number of chains that keep the engine busy."""
        return self._engine.capacity

    def ask(self, chain: ChainText, take: Callable[[StepScores], None]) -> None:
        """Ask for the scores of a chain, for which `take` is called."""
        self._waiting.append((chain, take))
        self.open += 1
        self._schedule()

    def close(self) -> None:
        """Wait for no more scores."""
        for call in self._calls:
            call.cancel()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        self._counted()
        most = max(1, self.capacity // CALLS)
        while self._waiting and self._running < self.capacity:
            size = min(most, len(self._waiting), self.capacity - self._running)
            chains = [self._waiting.popleft() for _ in range(size)]
            self._running += size
            begin(self._call(chains), self._calls, self._died)

    async def _call(self, asked: Sequence[tuple[ChainText, Callable[[StepScores], None]]]) -> None:
        try:
            scored = await score_chains(self._engine, [chain for chain, _ in asked])
        finally:
            self._running -= len(asked)
            self.open -= len(asked)
        for (_, take), each in zip(asked, scored, strict=True):
            take(each)
        self._schedule()
