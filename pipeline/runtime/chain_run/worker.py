"""A worker of a run over chains: one engine, several units at once. It writes the files of its units and returns a receipt for
each.

Results are rows of the unit's log, so a crash loses at most those of `run.flush_seconds`, and a chain that kills engines is
found as a request of `label` is.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from pipeline.core.errors import EngineDied
from pipeline.core.failpoints import failpoint
from pipeline.core.records import ChainText, Totals, UnitTarget
from pipeline.runtime.chain_run.chains import chain_texts, values
from pipeline.runtime.flushes import Uninterrupted, with_flushes
from pipeline.runtime.sampling import Backpressure
from pipeline.runtime.unit import Probe
from pipeline.runtime.worker import Receipt, Snapshot, UnitTask
from pipeline.storage.commits import Commit
from pipeline.storage.storage import Storage
from pipeline.storage.unit_log import UnitLog
from pipeline.storage.units import unit_chains

Result = TypeVar("Result")
"""What an engine says of a chain."""


class Collected(Protocol[Result]):
    """What is known of a unit's chains: the results in its log, and new ones that are not committed yet."""

    def read(self, log: UnitLog) -> None:
        """Take the rows that the log has now. New results that it has too are forgotten."""
        ...

    def missing(self) -> dict[int, ChainText]:
        """The chains without results, by row."""
        ...

    def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, Result], None]:
        """The results of these chains as they arrive. Raises EngineDied."""
        ...

    def take(self, results: Mapping[int, Result]) -> None:
        """Keep results until they are committed."""
        ...

    def new(self) -> "New | None":
        """What is to be committed; None if there is nothing."""
        ...

    def committed(self, new: "New") -> None:
        """Note that this is in the log."""
        ...

    def completed(self, log: UnitLog, last: "New | None") -> "Completed":
        """What the record of the finished unit has, if `last` are the last rows of its log."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """Rows for a unit's log, by table, with their counts. `rows`: what `Collected.committed` needs to know of them."""

    tables: Mapping[str, pa.Table]
    totals: Totals
    rows: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """`totals` of a unit, and `tables` that follow from its log."""

    totals: Totals
    tables: Mapping[str, pa.Table]


class ChainWork(Protocol[Result]):
    """What is done with chains, and how it is stored. `votes`: what a chain counts in the number of planned results."""

    votes: int = 1
    counts_requests: bool = False
    """Whether it counts itself what it asks of its engine, with `Backpressure`. If not, each chain counts as one request."""

    @property
    def model(self) -> str:
        """Identity of the model. Known after `start`."""
        ...

    @property
    def capacity(self) -> int:
        """The number of chains that keep the engine busy. Known after `start`."""
        ...

    async def fetch(self) -> None:
        """Download to this machine what the engine loads. Raises PolicyError."""
        ...

    async def start(self) -> None:
        """Load the model. Raises PolicyError."""
        ...

    def failed(self, chain: ChainText) -> Result:
        """The result of a chain that kills engines."""
        ...

    def collect(self, chains: pa.Table) -> Collected[Result]:
        """What collects the results of a unit. `chains`: the unit's, of `tables.CHAINS`."""
        ...

    def begin(self, pressure: Backpressure) -> None:
        """Get the counter of requests, once, after `start`; for work that counts them itself."""
        return

    def snapshot(self) -> Snapshot:
        """Counts of results (`rollouts`), their tokens, and the work and the load of the engine, since its start."""
        ...

    async def close(self) -> None:
        """Free the device."""
        ...


class OneResultEach(ChainWork[Result], Protocol[Result]):
    """Work with one result for each chain. `table`: that of the results. `votes`: rows of a chain in it."""

    table: str

    def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, Result], None]:
        """The results of chains by row, each once, as they arrive. Raises EngineDied."""
        ...

    def rows(self, chains: pa.Table, results: Sequence[Result]) -> pa.Table:
        """The rows of results. `chains`: of `tables.CHAINS`, in the order of `results`."""
        ...

    def totals(self, rows: pa.Table) -> Totals:
        """The counts of rows of results."""
        ...

    def collect(self, chains: pa.Table) -> Collected[Result]:
        return _OneEach(chains, self)


class ChainWorker(Generic[Result]):
    """See the module, and `workload.UnitWorker`."""

    def __init__(self, work: ChainWork[Result], storage: Storage, flush_seconds: float) -> None:
        self._work = work
        self._storage = storage
        self._flush_seconds = flush_seconds
        self._backpressure: Backpressure | None = None
        self._open: dict[_Unit[Result], None] = {}
        self._began = 0.0
        self._begun = self._planned = 0

    async def fetch(self) -> None:
        await self._work.fetch()

    async def start(self) -> str:
        await self._work.start()
        self._began = _now()
        self._backpressure = Backpressure(self._work.capacity)
        self._work.begin(self._backpressure)
        return self._work.model

    async def wait_for_capacity(self, begun: int) -> None:
        await self._started().wait(begun)

    async def finish_unit(self, task: UnitTask) -> Receipt:
        pressure = self._started()
        pressure.begin(task.unit.unit_id)
        unit = await self._opened(task)
        self._open[unit] = None
        try:
            self._begun += 1
            self._planned += len(unit.missing()) * self._work.votes
            while unit.whole is None:
                if not await self._all_done(unit, task.probe, pressure):
                    return Receipt(unit_id=task.unit.unit_id, whole=False)
                await unit.complete()
        finally:
            pressure.ready(task.unit.unit_id)
            del self._open[unit]
        return Receipt(unit_id=task.unit.unit_id, whole=True, engine_failed=unit.whole.totals.engine_failed)

    async def missing_requests(self, task: UnitTask) -> list[str]:
        unit = await self._opened(task)
        return [] if unit.whole else [chain.chain_id for chain in unit.missing().values()]

    async def snapshot(self) -> Snapshot:
        if self._backpressure is None:
            return Snapshot()
        return replace(self._work.snapshot(), begun=self._begun, planned=self._planned, seconds=_now() - self._began)

    async def drain(self) -> None:
        for unit in list(self._open):
            await unit.flush()

    async def stop(self) -> None:
        await self._work.close()

    async def _all_done(self, unit: "_Unit[Result]", probe: Probe | None, pressure: Backpressure) -> bool:
        """Do the chains of a unit that have no result, or those of `probe`. Returns whether all have one."""
        missing = unit.missing()
        if probe is not None:
            for row, chain in missing.items():
                if chain.chain_id in probe.failed:
                    unit.take({row: self._work.failed(chain)})
            missing = {row: chain for row, chain in missing.items() if chain.chain_id in probe.only}
        if not self._work.counts_requests:
            pressure.ask(len(missing))
        pressure.ready(unit.unit_id)
        try:
            await with_flushes(unit.flush, self._flush_seconds, self._take_results(unit, missing, pressure))
        except EngineDied:
            await unit.flush()
            raise
        if unit.missing():
            await unit.flush()
            return False
        return True

    async def _take_results(
        self, unit: "_Unit[Result]", missing: Mapping[int, ChainText], pressure: Backpressure
    ) -> None:
        unanswered = 0 if self._work.counts_requests else len(missing)
        try:
            async with aclosing(unit.results(missing)) as arriving:
                async for results in arriving:
                    unit.take(results)
                    if unanswered:
                        unanswered -= len(results)
                        pressure.answer(len(results))
        finally:
            pressure.answer(unanswered)

    def _started(self) -> Backpressure:
        if self._backpressure is None:
            raise EngineDied("the worker has not been started")
        return self._backpressure

    async def _opened(self, task: UnitTask) -> "_Unit[Result]":
        log = UnitLog(self._storage, task.unit.unit_id, task.known_length)
        chains = await asyncio.to_thread(unit_chains, self._storage, task.unit)
        unit = _Unit(log, self._work.collect(chains), task.unit_target)
        await unit.read()
        return unit


class _Unit(Generic[Result]):
    """A unit's log, and what is collected for it."""

    def __init__(self, log: UnitLog, collected: Collected[Result], unit_target: UnitTarget) -> None:
        self._log = log
        self._collected = collected
        self._unit_target = unit_target
        self._writing = asyncio.Lock()
        self._uninterrupted = Uninterrupted()
        self.missing = collected.missing
        self.results = collected.results
        self.take = collected.take

    @property
    def unit_id(self) -> str:
        return self._log.unit_id

    @property
    def whole(self) -> Commit | None:
        """The record that completes the unit."""
        return self._log.whole

    async def read(self) -> None:
        """Read the log, and keep only those new results that are not committed by now. Raises StoreError."""
        await asyncio.to_thread(self._log.read)
        self._collected.read(self._log)

    async def flush(self) -> None:
        """Commit the new results. Raises StoreError."""
        await self._uninterrupted.run(self._flush())

    async def _flush(self) -> None:
        async with self._writing:
            while (new := self._collected.new()) is not None:
                failpoint("worker.flush")
                if await asyncio.to_thread(self._log.append, new.tables, new.totals):
                    self._collected.committed(new)
                    return
                await self.read()

    async def complete(self) -> None:
        """Commit the unit with its last results, unless somebody else has extended its log; then read the log again."""
        await self._uninterrupted.run(self._complete())

    async def _complete(self) -> None:
        async with self._writing:
            failpoint("worker.complete")
            new = self._collected.new()
            last = {} if new is None else new.tables
            done = self._collected.completed(self._log, new)
            log = self._log
            if await asyncio.to_thread(log.complete, last, done.tables, done.totals, self._unit_target):
                if new is not None:
                    self._collected.committed(new)
            else:
                await self.read()


class _OneEach(Generic[Result]):
    """One result for each chain of a unit, by row: a `Collected` for work with one table."""

    def __init__(self, chains: pa.Table, work: OneResultEach[Result]) -> None:
        self._chains = chains
        self._work = work
        self._logged: set[int] = set()
        self._new: dict[int, Result] = {}
        self._by_row: Mapping[int, ChainText] = dict(zip(values(chains, "row"), chain_texts(chains), strict=True))
        self.results = work.results

    def read(self, log: UnitLog) -> None:
        self._logged = {row for table in log.rows(self._work.table) for row in values(table, "row")}
        self._new = {row: result for row, result in self._new.items() if row not in self._logged}

    def missing(self) -> dict[int, ChainText]:
        return {row: chain for row, chain in self._by_row.items() if row not in self._logged and row not in self._new}

    def take(self, results: Mapping[int, Result]) -> None:
        self._new |= results

    def new(self) -> New | None:
        if not self._new:
            return None
        rows = [row for row in self._by_row if row in self._new]
        chains = self._chains.filter(pa.array([row in self._new for row in self._by_row], pa.bool_()))
        table = self._work.rows(chains, [self._new[row] for row in rows])
        return New(tables={self._work.table: table}, totals=self._work.totals(table), rows=frozenset(rows))

    def committed(self, new: New) -> None:
        self._logged |= new.rows
        self._new = {row: result for row, result in self._new.items() if row not in new.rows}

    def completed(self, log: UnitLog, last: New | None) -> Completed:
        tables = [*log.rows(self._work.table), *([] if last is None else last.tables.values())]
        return Completed(totals=sum(map(self._work.totals, tables), Totals()), tables={})


def _now() -> float:
    return asyncio.get_running_loop().time()
