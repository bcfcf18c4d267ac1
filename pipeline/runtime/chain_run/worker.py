"""What a worker of a run over chains does: one engine gives a result for each chain of its units.

Results are rows of the unit's log, so a crash loses at most those of `run.flush_seconds`, and a chain that kills engines is
found as a request of `label` is.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from pipeline.core.progress import Load
from pipeline.core.records import ChainText, Tally, UnitTarget
from pipeline.core.table import Table
from pipeline.runtime.chain_run.chain_task import chain_texts, values
from pipeline.runtime.sampling import Backpressure
from pipeline.runtime.unit_log import Finished, LogTable, UnitLog
from pipeline.runtime.worker import Snapshot, UnitTask, UnitWork
from pipeline.storage.storage import Storage
from pipeline.storage.unit_files import UnitFiles
from pipeline.storage.units import unit_chains

Result = TypeVar("Result")
"""What an engine says of a chain."""


class LogOfChains(UnitLog):
    """The log of a unit of chains."""

    def missing(self) -> dict[int, ChainText]:
        """The chains without results, by row."""
        raise NotImplementedError

    def fail(self, row: int, chain: ChainText) -> None:
        """Add the result of a chain that kills engines."""
        raise NotImplementedError

    def finished(self) -> Finished:
        """What makes the unit whole when each chain has its results."""
        return Finished(results={}, tally=None, readings=self.readings)


Log = TypeVar("Log", bound=LogOfChains)


class EachChain(UnitWork[Log], Protocol[Log]):
    """Work that ends when each chain of a unit has its results. `votes`: what a chain counts in the number of planned
    results."""

    votes: int = 1
    _begun: int = 0
    _planned: int = 0

    async def load(self) -> tuple[str, int]:
        """Load the model. Returns its identity, and the number of chains that keep the engine busy. Raises PolicyError."""
        ...

    def counted(self) -> Snapshot:
        """Counts of results (`rollouts`), their tokens, and the work and the load of the engine, since its start."""
        ...

    async def add_results(self, log: Log, chains: Mapping[int, ChainText]) -> None:
        """Add the results of these chains as they arrive. Raises EngineDied."""
        ...

    def finished(self, log: Log) -> Finished:
        """What makes a unit whole of which each chain has its results."""
        return log.finished()

    async def start(self) -> str:
        model, capacity = await self.load()
        self.backpressure = Backpressure(capacity)
        return model

    def snapshot(self) -> Snapshot:
        return replace(self.counted(), begun=self._begun, planned=self._planned)

    async def work(self, task: UnitTask, log: Log) -> Finished | None:
        missing, probe = log.missing(), task.probe
        if probe is not None:
            for row, chain in missing.items():
                if chain.chain_id in probe.failed:
                    log.fail(row, chain)
            missing = {row: chain for row, chain in missing.items() if chain.chain_id in probe.only}
        self._begun += 1
        self._planned += len(missing) * self.votes
        await self.add_results(log, missing)
        return None if log.missing() else self.finished(log)

    async def missing(self, task: UnitTask, log: Log) -> list[str]:
        return [chain.chain_id for chain in log.missing().values()]


class ChainWork(EachChain["ChainLog[Result]"], Protocol[Result]):
    """Work with one result for each chain. `table`: that of the results."""

    table: Table[Any]
    _answered: int = 0

    def failed(self, chain: ChainText) -> Result:
        """The result of a chain that kills engines."""
        ...

    def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, Result], None]:
        """The results of chains by row, each once, as they arrive. Raises EngineDied."""
        ...

    def rows(self, chains: pa.Table, results: Sequence[Result]) -> pa.Table:
        """The rows of results. `chains`: of `tables.CHAINS`, in the order of `results`."""
        ...

    def tally(self, rows: pa.Table) -> Tally:
        """The counts of rows of results."""
        ...

    def counted(self) -> Snapshot:
        return Snapshot(rollouts=self._answered, load=Load(running=self.backpressure.outstanding))

    async def open(self, storage: Storage, task: UnitTask, files: UnitFiles) -> "ChainLog[Result]":
        return ChainLog(files, task.unit_target, self, await asyncio.to_thread(unit_chains, storage, task.unit))

    async def add_results(self, log: "ChainLog[Result]", chains: Mapping[int, ChainText]) -> None:
        unanswered = len(chains)
        self.backpressure.ask(unanswered)
        self.backpressure.ready(log.unit_id)
        try:
            async with aclosing(self.results(chains)) as arriving:
                async for results in arriving:
                    for row, result in results.items():
                        log.results.add((row, result))
                    unanswered -= len(results)
                    self._answered += len(results)
                    self.backpressure.answer(len(results))
        finally:
            self.backpressure.answer(unanswered)


class ChainLog(LogOfChains, Generic[Result]):
    """The log of a unit's `chains`, of `tables.CHAINS`. `results`: by row."""

    def __init__(self, files: UnitFiles, unit_target: UnitTarget, work: ChainWork[Result], chains: pa.Table) -> None:
        self._work = work
        self.chains = chains
        self._by_row: Mapping[int, ChainText] = dict(zip(values(chains, "row"), chain_texts(chains), strict=True))
        self.results: LogTable[tuple[int, Result], bool] = LogTable(
            work.table,
            keep=lambda _: True,
            rows=lambda table: dict.fromkeys(values(table, "row"), True),
            key=itemgetter(0),
            to_table=self._rows,
        )
        super().__init__(files, unit_target, [self.results], lambda new: work.tally(new[work.table.name]))

    def missing(self) -> dict[int, ChainText]:
        return {row: chain for row, chain in self._by_row.items() if row not in self.results.kept}

    def fail(self, row: int, chain: ChainText) -> None:
        self.results.add((row, self._work.failed(chain)))

    def _rows(self, results: Sequence[tuple[int, Result]]) -> pa.Table:
        by_row = dict(results)
        chains = self.chains.filter(pa.array([row in by_row for row in self._by_row], pa.bool_()))
        return self._work.rows(chains, [by_row[row] for row in self._by_row if row in by_row])


async def side_by_side(
    chains: Mapping[int, ChainText], result: Callable[[int, ChainText], Awaitable[Result]]
) -> AsyncGenerator[Mapping[int, Result], None]:
    """`ChainWork.results` of work that looks at each chain alone, at all of them at once."""

    async def of_row(row: int, chain: ChainText) -> tuple[int, Result]:
        return row, await result(row, chain)

    tasks = [asyncio.create_task(of_row(row, chain)) for row, chain in chains.items()]
    try:
        for arriving in asyncio.as_completed(tasks):
            row, found = await arriving
            yield {row: found}
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
