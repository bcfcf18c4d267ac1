"""A scoring worker: one engine, several units at once. It writes the files of its units and returns a receipt for each.

Scored chains are rows of the unit's log, so a crash loses at most those of `run.flush_seconds`, and a chain that kills engines
is found as a request of `label` is.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from pipeline.config.score import ScoreConfig
from pipeline.core.errors import EngineDied
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import ChainText, Totals, UnitTarget
from pipeline.engines.base import Surroundings
from pipeline.runtime.sampling import Backpressure
from pipeline.runtime.scoring.calibrated import calibration_of, refuse_other
from pipeline.runtime.scoring.chains import chain_texts, values
from pipeline.runtime.scoring.tables import scores_table
from pipeline.runtime.scoring.work import score_chains
from pipeline.runtime.unit import Probe
from pipeline.runtime.worker import Receipt, Snapshot, UnitTask
from pipeline.scorers.base import FAILED, TOO_LONG, UNREADABLE, Scorer, ScoringEngine, StepScores, unscored
from pipeline.scorers.calibration import Calibration
from pipeline.scorers.registry import open_scorer, scorer_for
from pipeline.storage.commits import Commit
from pipeline.storage.location import storage_at
from pipeline.storage.storage import Storage
from pipeline.storage.stored_scores import TABLE
from pipeline.storage.unit_log import UnitLog
from pipeline.storage.units import unit_chains

CALL_CHAINS = 256
"""Chains of one call of an engine: few enough that a call is short against `run.flush_seconds`."""


class ScoringWorker:
    """See the module, and `workload.UnitWorker`."""

    def __init__(self, config: ScoreConfig, storage: Storage, scorer: Scorer, engine: ScoringEngine) -> None:
        self._config = config
        self._storage = storage
        self._scorer = scorer
        self._engine = engine
        self._calibration = calibration_of(config)
        self._backpressure: Backpressure | None = None
        self._open: dict[_Unit, None] = {}
        self._began = 0.0
        self._begun = self._planned = self._scored = self._tokens = self._computed = self._running = 0

    async def fetch(self) -> None:
        await self._scorer.fetch()

    async def start(self) -> str:
        await self._engine.start()
        refuse_other(self._config, self._calibration, self._engine.model)
        self._began = _now()
        self._backpressure = Backpressure(self._engine.capacity)
        return self._engine.model

    async def wait_for_capacity(self, begun: int) -> None:
        await self._started().wait(begun)

    async def finish_unit(self, task: UnitTask) -> Receipt:
        started, pressure = _now(), self._started()
        pressure.begin(task.unit.unit_id)
        unit = await self._opened(task)
        self._open[unit] = None
        try:
            self._begun += 1
            self._planned += len(unit.missing())
            while unit.whole is None:
                if not await self._score(unit, task.probe, pressure):
                    return Receipt(unit_id=task.unit.unit_id, whole=False)
                await unit.complete(_now() - started)
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
        return Snapshot(
            begun=self._begun,
            planned=self._planned,
            rollouts=self._scored,
            tokens=self._tokens,
            seconds=_now() - self._began,
            work=EngineWork(prompt=self._tokens, prefilled=self._computed),
            load=Load(running=self._running),
        )

    async def drain(self) -> None:
        for unit in list(self._open):
            await unit.flush()

    async def stop(self) -> None:
        await self._engine.close()

    async def _score(self, unit: "_Unit", probe: Probe | None, pressure: Backpressure) -> bool:
        """Score the chains of a unit that have no scores, or those of `probe`. Returns whether all have some."""
        missing = unit.missing()
        if probe is not None:
            lost = {row: chain for row, chain in missing.items() if chain.chain_id in probe.failed}
            unit.take(list(lost), [unscored(len(chain.steps), FAILED) for chain in lost.values()])
            missing = {row: chain for row, chain in missing.items() if chain.chain_id in probe.only}
        flushed = _now()
        pressure.ask(len(missing))
        pressure.ready(unit.unit_id)
        rows, answered = list(missing), 0
        try:
            for begin in range(0, len(rows), CALL_CHAINS):
                part = rows[begin : begin + CALL_CHAINS]
                self._running += len(part)
                try:
                    scored = await score_chains(self._engine, [missing[row] for row in part])
                finally:
                    self._running -= len(part)
                unit.take(part, scored)
                answered += len(part)
                pressure.answer(len(part))
                self._count(scored)
                if _now() - flushed >= self._config.run.flush_seconds:
                    await unit.flush()
                    flushed = _now()
        except EngineDied:
            await unit.flush()
            raise
        finally:
            pressure.answer(len(rows) - answered)
        if unit.missing():
            await unit.flush()
            return False
        return True

    def _count(self, scored: Sequence[StepScores]) -> None:
        self._scored += len(scored)
        self._tokens += sum(each.n_tokens for each in scored)
        self._computed += sum(each.n_computed for each in scored)

    def _started(self) -> Backpressure:
        if self._backpressure is None:
            raise EngineDied("the worker has not been started")
        return self._backpressure

    async def _opened(self, task: UnitTask) -> "_Unit":
        log = UnitLog(self._storage, task.unit.unit_id, task.known_length)
        chains = await asyncio.to_thread(unit_chains, self._storage, task.unit)
        unit = _Unit(log, chains, self._config, self._engine.model, self._calibration, task.unit_target)
        await unit.read()
        return unit


class _Unit:
    """A unit's chains, those of them with scores in its log, and scores that are not yet committed, by row."""

    def __init__(
        self,
        log: UnitLog,
        chains: pa.Table,
        config: ScoreConfig,
        model: str,
        calibration: Calibration | None,
        unit_target: UnitTarget,
    ) -> None:
        self._log = log
        self._chains = chains
        self._config = config
        self._model = model
        self._calibration = calibration
        self._unit_target = unit_target
        self._writing = asyncio.Lock()
        self._logged: set[int] = set()
        self._new: dict[int, StepScores] = {}
        self._by_row: Mapping[int, ChainText] = dict(zip(values(chains, "row"), chain_texts(chains), strict=True))

    @property
    def unit_id(self) -> str:
        return self._log.unit_id

    @property
    def whole(self) -> Commit | None:
        """The record that completes the unit."""
        return self._log.whole

    async def read(self) -> None:
        """Read the log, and keep only those new scores that are not committed by now. Raises StoreError."""
        await asyncio.to_thread(self._log.read)
        self._logged = {row for table in self._log.rows(TABLE) for row in values(table, "row")}
        self._new = {row: scored for row, scored in self._new.items() if row not in self._logged}

    def missing(self) -> dict[int, ChainText]:
        """The chains without scores, by row."""
        return {row: chain for row, chain in self._by_row.items() if row not in self._logged and row not in self._new}

    def take(self, rows: Sequence[int], scored: Sequence[StepScores]) -> None:
        """Keep the scores of these rows until they are committed."""
        self._new |= dict(zip(rows, scored, strict=True))

    async def flush(self) -> None:
        """Commit the new scores. Raises StoreError."""
        async with self._writing:
            while self._new:
                new = dict(self._new)
                table = self._table(new)
                if await asyncio.to_thread(self._log.append, {TABLE: table}, _totals(table)):
                    self._logged |= new.keys()
                    self._new = {row: scored for row, scored in self._new.items() if row not in new}
                    return
                await self.read()

    async def complete(self, seconds: float) -> None:
        """Commit the unit with its last scores, unless somebody else has extended its log; then read the log again."""
        async with self._writing:
            new = dict(self._new)
            last = self._table(new)
            totals = sum(map(_totals, (*self._log.rows(TABLE), last)), Totals())
            if await asyncio.to_thread(self._log.complete, {TABLE: last}, {}, totals, self._unit_target, seconds):
                self._logged |= new.keys()
                self._new = {}
            else:
                await self.read()

    def _table(self, new: Mapping[int, StepScores]) -> pa.Table:
        of_unit = [row in new for row in self._by_row]
        chains = self._chains.filter(pa.array(of_unit, pa.bool_()))
        scored = [new[row] for row in self._by_row if row in new]
        return scores_table(
            chains,
            scored,
            aggregation=self._config.aggregation,
            model=self._model,
            calibration=self._calibration,
        )


def scoring_worker(config: ScoreConfig, around: Surroundings) -> ScoringWorker:
    """A worker of `score` in its own process."""
    return ScoringWorker(config, storage_at(config.out), scorer_for(config.scorer), open_scorer(config.scorer, around))


def _totals(scores: pa.Table) -> Totals:
    faults = Counter(values(scores, "fault"))
    return Totals(
        chains=scores.num_rows,
        prefixes=sum(values(scores, "n_scored")),
        tokens=sum(values(scores, "n_tokens")),
        too_long=faults[TOO_LONG],
        ungraded=faults[UNREADABLE],
        engine_failed=faults[FAILED],
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
