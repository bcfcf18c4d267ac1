"""A worker: one engine, one grader, several units at once. It writes the files of its units and returns a receipt for each.

`actors` wraps the worker in a Ray actor. This module does not depend on Ray.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from pipeline.config.grow import PickerConfig
from pipeline.config.label import LabelConfig
from pipeline.config.recorded_settings import chosen_settings
from pipeline.core.errors import EngineDied
from pipeline.core.failpoints import failpoint
from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load, Verdicts
from pipeline.core.records import InputRow, UnitTarget
from pipeline.core.tables import LEARNED, REJECTS
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.registry import open_engine, policy_for
from pipeline.engines.roofline import common
from pipeline.estimators.labelling import labels_of
from pipeline.estimators.registry import estimator_for
from pipeline.graders.registry import checker_for
from pipeline.pickers.registry import PICKERS, picker_for
from pipeline.runtime.answer_ending import ending_for
from pipeline.runtime.growing import Growth
from pipeline.runtime.unit import Probe, UnitLabeller, UnitResult, UnitSettings
from pipeline.runtime.unit_buffer import UnitBuffer
from pipeline.storage.commits import Commit
from pipeline.storage.editions import LABELS
from pipeline.storage.growths import STRENGTH, allotments, growth_settings
from pipeline.storage.location import storage_at
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.unit_log import UnitLog
from pipeline.storage.units import UnitRef, unit_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedState:
    """The file of a state that an estimator has learned, and the number of chains that it was learned from."""

    shard: ShardRecord
    chains: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTask:
    """A unit to label up to its target, as a whole or only the part that `probe` names.

    `known_length`: number of the unit's commit records that the driver knows. A unit that has not begun uses the state
    `learned` for its decisions. `growths`: the records of the run's growths.
    """

    unit: UnitRef
    unit_target: UnitTarget
    known_length: int = 0
    learned: LearnedState | None = None
    probe: Probe | None = None
    growths: tuple[Commit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the driver receives when a task ends.

    `whole`: the unit needs no more rollouts. `engine_failed` of its rollouts are requests that were written off.
    """

    unit_id: str
    whole: bool
    engine_failed: int = 0
    learned: LearnedState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a worker: counters since its start, and the load of its engine.

    `planned`: rollouts requested so far by `begun` units. `prefixes`: the prefixes of these units that can be sampled;
    `decided` of them need no more rollouts. `seconds`: time since the engine started. `grading_seconds`: time spent on
    verdicts, summed over all processes. `distinct_prompt`: distinct prompt tokens of the units that have ended. `hardware`: the
    hardware of the engine; for a sum of snapshots, the hardware that all engines have in common.
    """

    begun: int = 0
    planned: int = 0
    prefixes: int = 0
    decided: int = 0
    rollouts: int = 0
    tokens: int = 0
    verdicts: Verdicts = field(default_factory=Verdicts)
    seconds: float = 0.0
    grading_seconds: float = 0.0
    distinct_prompt: int = 0
    work: EngineWork = field(default_factory=EngineWork)
    load: Load = field(default_factory=Load)
    hardware: Hardware | None = None

    def __add__(self, other: "Snapshot") -> "Snapshot":
        counted = [part.name for part in fields(self) if part.name != "hardware"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in counted}
        return Snapshot(**sums, hardware=common(self.hardware, other.hardware))

    def left_by(self, unfinished: int) -> "Snapshot":
        """What counts on of a worker that has ended with this number of units unfinished. Those begin again elsewhere and are
        counted then, but their finished rollouts are not requested again. All units count as equally large."""
        if not unfinished:
            return replace(self, load=Load())
        begun = max(0, self.begun - unfinished)
        prefixes = self.prefixes * begun // self.begun if self.begun else 0
        return replace(
            self,
            load=Load(),
            begun=begun,
            planned=self.rollouts,
            prefixes=prefixes,
            decided=min(self.decided, prefixes),
        )

    @property
    def progress(self) -> tuple[object, ...]:
        """A value that changes with any progress, and never with time alone."""
        return self.begun, self.planned, self.rollouts, self.tokens, self.work.generated, self.load


class Worker:
    """One engine and one grader that write to one run directory."""

    def __init__(
        self,
        config: LabelConfig,
        storage: Storage,
        engine: Engine,
        log: Callable[[Storage, str, int, tuple[ShardRecord, ...]], UnitLog] = UnitLog,
    ) -> None:
        self._log = log
        self._storage = storage
        # Units of a start mostly have the same growth.
        self._allotments = lru_cache(maxsize=1)(partial(allotments, storage))
        self._engine = engine
        self._policy = policy_for(config.policy)
        self._settings = unit_settings(config)
        self._estimator = self._settings.estimator
        self._checker = checker_for(config.grader)
        self._labeller: UnitLabeller | None = None
        self._began = 0.0
        self._buffers: dict[UnitBuffer, None] = {}

    async def fetch(self) -> None:
        """Download to this machine what the engine loads. Raises PolicyError."""
        await self._policy.fetch()

    async def start(self) -> str:
        """Load the policy and return its identity. Raises PolicyError."""
        await self._engine.start()
        self._began = _now()
        self._labeller = UnitLabeller(self._settings, self._engine, self._checker)
        return self._engine.policy

    async def finish_unit(self, task: UnitTask) -> Receipt:
        """Label a unit and commit its files. Raises EngineDied if the engine stopped working, and StoreError."""
        labeller = self._started()
        labeller.backpressure.begin(task.unit.unit_id)
        try:
            return await self._label_unit(task, labeller)
        finally:
            labeller.backpressure.ready(task.unit.unit_id)

    async def _label_unit(self, task: UnitTask, labeller: UnitLabeller) -> Receipt:
        rows, buffer = await self._opened(task)
        self._buffers[buffer] = None
        try:
            while (whole := buffer.done) is None:
                result = await labeller.label(rows, buffer, task.probe, await self._growths(task))
                if result is None:
                    return Receipt(unit_id=task.unit.unit_id, whole=False)
                await buffer.complete(
                    self._tables(result),
                    result.totals,
                    readings=result.readings,
                    learned_from=_chains_of(result.state, buffer),
                )
        finally:
            del self._buffers[buffer]
        return Receipt(
            unit_id=task.unit.unit_id,
            whole=True,
            engine_failed=whole.totals.engine_failed,
            learned=learned_state_of(whole),
        )

    async def wait_for_capacity(self, begun: int) -> None:
        """Return when the engine needs another unit to stay busy, but not before `begun` units have arrived."""
        await self._started().backpressure.wait(begun)

    async def missing_requests(self, task: UnitTask) -> list[str]:
        """Ids of the requests that a unit needs next; an empty list if it is whole."""
        labeller, (rows, buffer) = self._started(), await self._opened(task)
        return [] if buffer.done else await labeller.missing_requests(rows, buffer, await self._growths(task))

    async def snapshot(self) -> Snapshot:
        labeller = self._labeller
        if labeller is None:
            return Snapshot()
        return Snapshot(
            begun=labeller.begun,
            planned=labeller.planned,
            prefixes=labeller.prefixes,
            decided=labeller.decided,
            rollouts=labeller.rollouts,
            tokens=labeller.tokens,
            verdicts=labeller.verdicts,
            seconds=_now() - self._began,
            grading_seconds=labeller.judge.seconds,
            distinct_prompt=labeller.prompts.tokens,
            work=self._engine.work,
            load=replace(self._engine.load, grading=labeller.judge.waiting),
            hardware=self._engine.hardware,
        )

    async def drain(self) -> None:
        """Commit all finished rollouts. Raises StoreError."""
        for buffer in list(self._buffers):
            await buffer.flush()

    async def stop(self) -> None:
        """Free the device and end the grading processes."""
        if self._labeller is not None:
            self._labeller.judge.close()
        self._checker.close()
        await self._engine.close()

    def _started(self) -> UnitLabeller:
        if self._labeller is None:
            raise EngineDied("the worker has not been started")
        return self._labeller

    async def _opened(self, task: UnitTask) -> tuple[list[InputRow], UnitBuffer]:
        rows = await asyncio.to_thread(unit_rows, self._storage, task.unit)
        offered = (task.learned.shard,) if task.learned else ()
        log = self._log(self._storage, task.unit.unit_id, task.known_length, offered)
        buffer = UnitBuffer(
            log,
            unit_target=task.unit_target,
            learner=self._estimator.learner,
            with_tokens=self._settings.sampling.store_tokens,
        )
        await buffer.read()
        failpoint("worker.opened")
        return rows, buffer

    async def _growths(self, task: UnitTask) -> list[Growth]:
        return [await asyncio.to_thread(self._growth, record, task.unit) for record in task.growths]

    def _growth(self, record: Commit, unit: UnitRef) -> Growth:
        settings = growth_settings(record)
        picking = chosen_settings(settings, PickerConfig, PICKERS)
        return Growth(
            number=record.number,
            picker=picker_for(picking),
            budget_unit=picking.budget_unit,
            rollouts=picking.rollouts,
            strength=float(str(settings[STRENGTH])),
            threshold=self._estimator.settings.good_above,
            allotments=self._allotments(record).get(unit.unit_id, {}),
        )

    def _tables(self, result: UnitResult) -> dict[str, pa.Table]:
        tables = {
            LABELS: labels_of(result.chains, result.trials, self._estimator, result.state),
            "rejects": REJECTS.to_table(result.rejects),
        }
        if (learner := self._estimator.learner) is not None:
            tables[learner.table] = learner.to_table(result.state)
        return tables


def _now() -> float:
    return asyncio.get_running_loop().time()


def _chains_of(state: Any, buffer: UnitBuffer) -> int:
    """The chains that a unit's state was learned from. Those of a unit that was whole before are in what it began with."""
    if state is None:
        return 0
    return int(buffer.state.chains if buffer.settled else state.chains)


def learned_state_of(whole: Commit) -> LearnedState | None:
    """The state that an estimator has learned after this whole unit, or from all units of this edition; None if it does not
    learn."""
    for shard in whole.shards:
        if shard.table in LEARNED:
            return LearnedState(shard=shard, chains=whole.learned_from)
    return None


def engine_for(config: LabelConfig, around: Surroundings) -> Engine:
    """The engine of the policy in a worker with these surroundings."""
    return open_engine(config.policy, config.sampling, ending_for(config), around)


def unit_settings(config: LabelConfig) -> UnitSettings:
    return UnitSettings(
        estimator=estimator_for(config.estimator),
        sampling=config.sampling,
        prompt=config.policy.prompt,
        data=config.data,
        processes=config.grader.processes,
        flush_seconds=config.run.flush_seconds,
    )


def labelling_worker(config: LabelConfig, around: Surroundings) -> Worker:
    """A worker of `label` in its own process."""
    assert config.run_dir is not None
    return Worker(config, storage_at(config.run_dir), engine_for(config, around))
