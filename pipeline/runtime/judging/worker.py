"""What a worker of `judge` does with chains: a judge criticises as many at once as keep its engine busy, and stores critiques.

The reading of a critique is that of its stored text, so that `audit` and `regrade` find it again.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from pipeline.config.judge import JudgeRunConfig
from pipeline.core.errors import EngineDied
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import ChainText, Critique, Finish, Reading, ReadingKind, Totals
from pipeline.core.table import storable
from pipeline.core.tables import critiques_table
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.registry import open_engine, policy_for
from pipeline.judges.base import Judge, JudgingEngine, read_critique, wrong_critiques
from pipeline.judges.registry import judge_for, open_judge
from pipeline.runtime.chain_run.chains import chain_texts, values
from pipeline.runtime.chain_run.worker import ChainWorker, OneResultEach
from pipeline.runtime.worker import Snapshot
from pipeline.storage.location import storage_at
from pipeline.storage.stored_critiques import TABLE, critique_totals, judge_storage

Votes = Sequence[Critique]
"""The critiques of a chain."""


class Judging(OneResultEach[Votes]):
    """See the module. `text_engine`: what writes for the judge; None where nothing does."""

    table = TABLE

    def __init__(self, config: JudgeRunConfig, judge: Judge, engine: JudgingEngine, text_engine: Engine | None) -> None:
        self._config = config
        self._judge = judge
        self._engine = engine
        self._text_engine = text_engine
        self._free = asyncio.Semaphore(0)
        self._written = self._tokens = self._read = self._running = 0
        self.votes = config.judge.votes

    @property
    def model(self) -> str:
        return self._engine.model

    @property
    def capacity(self) -> int:
        return self._engine.capacity

    async def fetch(self) -> None:
        if self._text_engine is not None:
            await policy_for(self._config.policy).fetch()

    async def start(self) -> None:
        await self._engine.start()
        self._free = asyncio.Semaphore(self._engine.capacity)

    async def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, Votes], None]:
        tasks = [asyncio.create_task(self._of_row(row, chain)) for row, chain in chains.items()]
        try:
            for arriving in asyncio.as_completed(tasks):
                row, votes = await arriving
                yield {row: votes}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def critiques(self, chain: ChainText) -> Votes:
        """The critiques of a chain, each with the reading of its stored text. Raises EngineDied for impossible ones."""
        found = [self._as_stored(each, chain) for each in await self._engine.critiques(chain)]
        if wrong := wrong_critiques(found, chain, self.votes):
            raise EngineDied(f"the judge gave a wrong answer: {wrong}")
        return found

    def failed(self, chain: ChainText) -> Votes:
        reading = Reading(kind=ReadingKind.FAILED)
        return [Critique(turns=(), finish=Finish.ENGINE_FAILED, reading=reading)] * self.votes

    def rows(self, chains: pa.Table, results: Sequence[Votes]) -> pa.Table:
        judged = list(zip(values(chains, "row"), chain_texts(chains), results, strict=True))
        return critiques_table(judged, judge=self._config.judge.name, model=self._engine.model)

    def totals(self, rows: pa.Table) -> Totals:
        return critique_totals(rows, self.votes)

    def snapshot(self) -> Snapshot:
        text_engine = self._text_engine
        counted = Snapshot(rollouts=self._written, tokens=self._tokens)
        if text_engine is not None:
            return replace(counted, work=text_engine.work, load=text_engine.load, hardware=text_engine.hardware)
        work = EngineWork(generated=self._tokens, finished=self._tokens, prompt=self._read, prefilled=self._read)
        return replace(counted, work=work, load=Load(running=self._running))

    async def close(self) -> None:
        await self._engine.close()

    async def _of_row(self, row: int, chain: ChainText) -> tuple[int, Votes]:
        async with self._free:
            self._running += self.votes
            try:
                votes = await self.critiques(chain)
            finally:
                self._running -= self.votes
        self._written += len(votes)
        self._tokens += sum(each.n_tokens for each in votes)
        self._read += sum(each.n_prompt_tokens for each in votes)
        return row, votes

    def _as_stored(self, critique: Critique, chain: ChainText) -> Critique:
        turns = tuple(map(storable, critique.turns))
        return replace(
            critique, turns=turns, reading=read_critique(self._judge, turns, critique.finish, len(chain.steps))
        )


def judging_work(config: JudgeRunConfig, around: Surroundings) -> Judging:
    """The judge of the settings with what writes for it, not started. Raises UsageError for what is not installed."""
    judge = judge_for(config.judge)
    text_engine = open_engine(config.policy, judge.sampling(), None, around) if judge.writes else None
    return Judging(config, judge, open_judge(config.judge, text_engine, around), text_engine)


def judging_worker(config: JudgeRunConfig, around: Surroundings) -> ChainWorker[Votes]:
    """A worker of `judge` in its own process."""
    storage = judge_storage(storage_at(config.run_dir), config.judge.name)
    return ChainWorker(judging_work(config, around), storage, config.run.flush_seconds)
