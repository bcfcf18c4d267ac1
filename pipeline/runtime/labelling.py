"""What a worker of `label` does with units: it samples and grades rollouts, and labels chains with them."""

import asyncio
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from pipeline.config.grow import PickerConfig
from pipeline.config.label import LabelConfig
from pipeline.config.recorded_settings import chosen_settings
from pipeline.core.tables import REJECTS
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.registry import open_engine, policy_for
from pipeline.estimators.labelling import labels_of
from pipeline.estimators.registry import estimator_for
from pipeline.graders.registry import checker_for
from pipeline.pickers.registry import PICKERS, picker_for
from pipeline.runtime.answer_ending import ending_for
from pipeline.runtime.growing import Growth
from pipeline.runtime.rollout_log import RolloutLog
from pipeline.runtime.sampling import Backpressure
from pipeline.runtime.unit import UnitLabeller, UnitResult, UnitSettings
from pipeline.runtime.unit_log import Finished
from pipeline.runtime.worker import Snapshot, UnitTask, Worker
from pipeline.storage.commits import Commit
from pipeline.storage.editions import LABELS
from pipeline.storage.growths import STRENGTH, allotments, growth_settings
from pipeline.storage.storage import Storage
from pipeline.storage.unit_files import UnitFiles
from pipeline.storage.units import unit_rows


class Labelling:
    """See the module, and `worker.UnitWork`."""

    backpressure: Backpressure

    def __init__(self, config: LabelConfig, engine: Engine, storage: Storage) -> None:
        # Units of a start mostly have the same growth.
        self._allotments = lru_cache(maxsize=1)(partial(allotments, storage))
        self._labeller: UnitLabeller | None = None
        self._engine = engine
        self._policy = policy_for(config.policy)
        self._settings = unit_settings(config)
        self._estimator = self._settings.estimator
        self._checker = checker_for(config.grader)

    async def fetch(self) -> None:
        await self._policy.fetch()

    async def start(self) -> str:
        await self._engine.start()
        self._labeller = UnitLabeller(self._settings, self._engine, self._checker)
        self.backpressure = self._labeller.backpressure
        return self._engine.policy

    async def open(self, storage: Storage, task: UnitTask, files: UnitFiles) -> RolloutLog:
        return RolloutLog(
            files,
            rows=await asyncio.to_thread(unit_rows, storage, task.unit),
            unit_target=task.unit_target,
            learner=self._estimator.learner,
            with_tokens=self._settings.sampling.store_tokens,
        )

    async def work(self, task: UnitTask, log: RolloutLog) -> Finished | None:
        result = await self._started.label(log, task.probe, await self._growths(task, log))
        if result is None:
            return None
        return Finished(
            results=self._results(result),
            tally=result.totals.tally,
            readings=result.readings,
            learned_from=_chains_of(result.state, log),
        )

    async def missing(self, task: UnitTask, log: RolloutLog) -> list[str]:
        return await self._started.missing_requests(log, await self._growths(task, log))

    def snapshot(self) -> Snapshot:
        labeller = self._started
        return Snapshot(
            begun=labeller.begun,
            planned=labeller.planned,
            prefixes=labeller.prefixes,
            decided=labeller.decided,
            rollouts=labeller.rollouts,
            tokens=labeller.tokens,
            verdicts=labeller.verdicts,
            grading_seconds=labeller.judge.seconds,
            distinct_prompt=labeller.prompts.tokens,
            work=self._engine.work,
            load=replace(self._engine.load, grading=labeller.judge.waiting),
            hardware=self._engine.hardware,
        )

    async def close(self) -> None:
        if self._labeller is not None:
            self._labeller.judge.close()
        self._checker.close()
        await self._engine.close()

    @property
    def _started(self) -> UnitLabeller:
        assert self._labeller is not None
        return self._labeller

    async def _growths(self, task: UnitTask, log: RolloutLog) -> list[Growth]:
        return [await asyncio.to_thread(self._growth, record, log) for record in task.growths]

    def _growth(self, record: Commit, log: RolloutLog) -> Growth:
        settings = growth_settings(record)
        picking = chosen_settings(settings, PickerConfig, PICKERS)
        return Growth(
            number=record.number,
            picker=picker_for(picking),
            budget_unit=picking.budget_unit,
            rollouts=picking.rollouts,
            strength=float(str(settings[STRENGTH])),
            threshold=self._estimator.settings.good_above,
            allotments=self._allotments(record).get(log.unit_id, {}),
        )

    def _results(self, result: UnitResult) -> dict[str, pa.Table]:
        tables = {
            LABELS: labels_of(result.chains, result.trials, self._estimator, result.state),
            REJECTS.name: REJECTS.to_table(result.rejects),
        }
        if (learner := self._estimator.learner) is not None:
            tables[learner.table] = learner.to_table(result.state)
        return tables


def _chains_of(state: Any, log: RolloutLog) -> int:
    """The chains that a unit's state was learned from. Those of a unit that was whole before are in what it began with."""
    if state is None:
        return 0
    return int(log.state.chains if log.settled else state.chains)


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
    )


def worker_with(config: LabelConfig, engine: Engine, storage: Storage) -> Worker:
    """A worker of `label` with this engine."""
    return Worker(Labelling(config, engine, storage), storage, config.run.flush_seconds)
