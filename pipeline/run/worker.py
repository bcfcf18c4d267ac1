"""A worker: one engine, one checker, several units in work at once. It writes its own files and hands back a receipt.

`driver` wraps the class in a Ray actor; nothing here knows of Ray.
"""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.config import LabelConfig, PolicyKind
from pipeline.engine.base import Engine
from pipeline.engine.oracle import OracleEngine
from pipeline.engine.vllm import VllmEngine
from pipeline.errors import EngineDied
from pipeline.estimate.labels import rule_name
from pipeline.grading.choose import checker_for
from pipeline.ids import content_id
from pipeline.records import Load, Totals
from pipeline.run.plan import grader_version
from pipeline.run.unit import UnitLabeller, UnitResult
from pipeline.steps import step_texts
from pipeline.store.commits import UNIT, Commit, publish
from pipeline.store.shards import ShardRecord, write_shard
from pipeline.store.units import UnitRef, unit_rows
from pipeline.tables import labels_table, rejects_table, rollouts_table, solutions_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """All the driver hears of a finished unit."""

    unit_id: str
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a worker is doing: counters since its start, and its engine's load. `planned` are the rollouts of `begun` units."""

    begun: int = 0
    planned: int = 0
    rollouts: int = 0
    tokens: int = 0
    load: Load = field(default_factory=Load)


class Worker:
    """One engine beside one checker. `attempt` counts the workers that came before it in its place, from 1."""

    def __init__(self, config: LabelConfig, *, cpus: int, attempt: int = 1) -> None:
        self._config = config
        self._run_dir = Path(config.run_dir or ".")
        self._engine = _engine(config, cpus, attempt)
        self._checker = checker_for(config.grader)
        self._labeller: UnitLabeller | None = None

    async def start(self) -> str:
        """Load the policy and return its identity. Raises PolicyError."""
        await self._engine.start()
        self._labeller = UnitLabeller(self._config, self._engine, self._checker)
        return self._engine.policy

    async def label_unit(self, unit: UnitRef) -> Receipt:
        """Label one unit and commit its files. Raises EngineDied when the engine stopped working."""
        if self._labeller is None:
            raise EngineDied("the worker has not been started")
        started = time.monotonic()
        rows = await asyncio.to_thread(unit_rows, self._run_dir, unit)
        result = await self._labeller.label(rows)
        commit = await asyncio.to_thread(self._commit, unit, result, started)
        return Receipt(unit_id=commit.unit_id, totals=commit.totals)

    async def snapshot(self) -> Snapshot:
        labeller = self._labeller
        if labeller is None:
            return Snapshot()
        return Snapshot(
            begun=labeller.begun,
            planned=labeller.planned,
            rollouts=labeller.rollouts,
            tokens=labeller.tokens,
            load=self._engine.load,
        )

    async def stop(self) -> None:
        """Free the device and end the checker's children."""
        self._checker.close()
        await self._engine.close()

    def _commit(self, unit: UnitRef, result: UnitResult, started: float) -> Commit:
        labels = labels_table(
            result.chains,
            [step_texts(chain.solution.text, chain.solution.ends) for chain in result.chains],
            estimator=self._config.estimator.name.value,
            label_rule=rule_name(self._config.estimator),
            policy=self._engine.policy,
        )
        tables = {
            "rollouts": rollouts_table(result.rollouts, grader_version()),
            "solutions": solutions_table(result.solutions),
            "labels": labels,
            "rejects": rejects_table(result.rejects),
        }
        shards: list[ShardRecord] = [
            write_shard(self._run_dir, name, content_id(name, unit.unit_id), [table])
            for name, table in tables.items()
            if table.num_rows
        ]
        commit = Commit(
            kind=UNIT,
            unit_id=unit.unit_id,
            shards=tuple(shards),
            totals=result.totals,
            seconds=time.monotonic() - started,
        )
        return publish(self._run_dir, commit)


def _engine(config: LabelConfig, cpus: int, attempt: int) -> Engine:
    match config.policy.kind:
        case PolicyKind.oracle:
            return OracleEngine(config.policy, attempt=attempt)
        case PolicyKind.embedded | PolicyKind.hf:
            return VllmEngine(config.policy, config.sampling, cpus=cpus)
