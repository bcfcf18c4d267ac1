"""Coverage, error, cost and bias on the real path, against truth: the tiny policies' chains, labelled again and again.

Tokeniser, vLLM, checker and estimator are those of a run, and so is the store; only the scheduler is left out. The chains are
the 24 short and the 24 long ones of `tests/tiny`. `figures` makes figures of what they are labelled with.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.__main__ import compose_label
from pipeline.config.fields import as_type
from pipeline.config.label import LabelConfig
from pipeline.core.ids import content_id
from pipeline.core.records import Verdict
from pipeline.data.rows import input_digest
from pipeline.engines.settings import HfConfig
from pipeline.engines.vllm.engine import VllmEngine
from pipeline.graders.registry import checker_for
from pipeline.runtime.intake import stage
from pipeline.runtime.problem_budget import unit_target_of
from pipeline.runtime.state import identity
from pipeline.runtime.worker import LearnedState, UnitTask, Worker
from pipeline.storage.commits import INPUT, UNIT, Commit, CommitState, record_sequence, resolve
from pipeline.storage.editions import LABELS
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.shards import read_shard
from pipeline.storage.units import UnitRef, units_of
from tests.bench.tiny.figures import FIXED, Blocks, Sampled, lines
from tests.settings import deciding
from tests.tiny.compared import Printed, shown, truth
from tests.tiny.policy import LONG, POLICIES, SHORT, TinyPolicy

CEILING = 16
"""Rollouts per prefix that a chain may take on average: twice the default, so that the curve passes the error of fixed N=8."""
CPUS = 1
"""The models are so small that threads wait for each other longer than they compute on a machine with other work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How often the chains of a policy are labelled: by pooled, for each `estimator.target_sd`, and with FIXED rollouts of each
    prefix, cut by order of issue from one run."""

    pooled: dict[float, int]
    fixed: int


AMOUNTS = {
    SHORT.name: Amount(pooled={0.13: 10, 0.1: 20, 0.08: 10}, fixed=20),
    LONG.name: Amount(pooled={0.3: 5, 0.2: 5, 0.15: 5, 0.1: 10}, fixed=5),
}


def tiny() -> None:
    for policy in POLICIES.values():
        measure(policy)


def measure(policy: TinyPolicy) -> None:
    """Label the chains of a policy and print the figures."""
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        found = asyncio.run(_sampled(policy, Path(folder)))
    for line in lines(policy.name, found, truth(policy)):
        print(line)


class _LoadedOnce(VllmEngine):
    """Outlives the workers that use it one after the other."""

    async def start(self) -> None:
        if not self.policy:
            await super().start()

    async def close(self) -> None: ...

    async def unload(self) -> None:
        await super().close()


async def _sampled(policy: TinyPolicy, run_dir: Path) -> Sampled:
    amount = AMOUNTS[policy.name]
    fixed = _config(policy, run_dir, "estimator=fixed", f"sampling.rollouts={FIXED * amount.fixed}")
    storage = LocalStorage(run_dir)
    (unit,) = units_of(storage, _staged(storage, fixed))
    settings = as_type(fixed.policy, HfConfig)
    engine = _LoadedOnce(settings, fixed.sampling, name="tiny", model=lambda: settings.model, cpus=CPUS)
    again = _Again(policy=policy, run_dir=run_dir, storage=storage, engine=engine, unit=unit)
    try:
        await engine.start()
        began = time.monotonic()
        passed_on = {target: await again.labelled(target, times) for target, times in amount.pooled.items()}
        async with _working(fixed, storage, engine) as worker:
            await worker.finish_unit(UnitTask(unit=unit, unit_target=unit_target_of(*deciding(fixed))))
        seconds = time.monotonic() - began
    finally:
        await engine.unload()
    labels, rollouts = _table(storage, unit.unit_id, LABELS), _table(storage, unit.unit_id, "rollouts")
    return Sampled(
        passed_on=passed_on,
        fixed=_blocks(policy, labels, rollouts),
        reproduced=_reproduced(labels, rollouts),
        generated=engine.work.generated,
        seconds=seconds,
    )


@asynccontextmanager
async def _working(config: LabelConfig, storage: LocalStorage, engine: VllmEngine) -> AsyncIterator[Worker]:
    worker = Worker(config, storage, engine)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.stop()


def _config(policy: TinyPolicy, run_dir: Path, *overrides: str) -> LabelConfig:
    return compose_label([*policy.overrides, f"data.path={policy.truth}", f"run_dir={run_dir}", *overrides])


def _staged(storage: LocalStorage, config: LabelConfig) -> Commit:
    staged_id = str(identity(config, input_digest(config.data.path))[STAGED_INPUT])
    with checker_for(config.grader) as checker:
        staged = stage(storage, staged_id, config.data, config.run, checker)
    return Commit(kind=INPUT, sequence_id=staged_id, number=0, state=CommitState.WHOLE, shards=staged.shards)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """Labels the same rows as units of other names, as many at a time as a worker holds."""

    policy: TinyPolicy
    run_dir: Path
    storage: LocalStorage
    engine: VllmEngine
    unit: UnitRef

    async def labelled(self, target_sd: float, times: int) -> list[Printed]:
        """A unit begins with the newest kernel that one before it has learned, as in a run."""
        words = ("estimator=pooled", f"estimator.target_sd={target_sd}", f"sampling.rollouts={CEILING}")
        config = _config(self.policy, self.run_dir, *words)
        free = asyncio.Semaphore(config.run.units_in_flight)
        newest: LearnedState | None = None

        async def label(worker: Worker, unit: UnitRef) -> Printed:
            nonlocal newest
            async with free:
                receipt = await worker.finish_unit(
                    UnitTask(unit=unit, unit_target=unit_target_of(*deciding(config)), learned=newest)
                )
            known = newest.chains if newest else 0
            if receipt.learned and receipt.learned.chains > known:
                newest = receipt.learned
            return shown(_table(self.storage, unit.unit_id, LABELS), self.policy)

        names = [content_id("again", f"{target_sd}", f"{number}") for number in range(times)]
        async with _working(config, self.storage, self.engine) as worker:
            labelling = [label(worker, replace(self.unit, unit_id=name)) for name in names]
            return list(await asyncio.gather(*labelling))


def _table(storage: LocalStorage, unit_id: str, name: str) -> pl.DataFrame:
    whole = resolve(record_sequence(storage, UNIT, unit_id)).whole
    assert whole is not None
    tables = [pl.from_arrow(read_shard(storage, shard)) for shard in whole.shards if shard.table == name]
    return pl.concat([table for table in tables if isinstance(table, pl.DataFrame)])


def _blocks(policy: TinyPolicy, labels: pl.DataFrame, rollouts: pl.DataFrame) -> Blocks:
    rows = {row["source_id"]: _prefixes(row) for row in labels.to_dicts()}
    place = {prefix: at for at, prefix in enumerate(prefix for each in truth(policy).ids for prefix in rows[each])}
    right, graded, tokens = (np.zeros((AMOUNTS[policy.name].fixed, len(place))) for _ in range(3))
    for prefix, issue, verdict, count in rollouts.select("prefix_id", "issue_index", "verdict", "n_tokens").rows():
        at = issue // FIXED, place[prefix]
        right[at] += verdict == Verdict.CORRECT.value
        graded[at] += verdict in (Verdict.CORRECT.value, Verdict.INCORRECT.value, Verdict.NO_ANSWER.value)
        tokens[at] += count
    return Blocks(value=right / graded, graded=graded, tokens=tokens)


def _prefixes(row: dict[str, Any]) -> tuple[str, ...]:
    """Of a chain, those that are sampled."""
    return (row["root_prefix_id"], *row["prefix_ids"][:-1])


def _reproduced(labels: pl.DataFrame, rollouts: pl.DataFrame) -> float:
    following = {
        prefix: step for row in labels.to_dicts() for prefix, step in zip(_prefixes(row), row["steps"], strict=True)
    }
    wrote = [text.split("\n")[0] == following[prefix] for prefix, text in rollouts.select("prefix_id", "text").rows()]
    return float(np.mean(wrote))
