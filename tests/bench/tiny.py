"""Coverage, error, cost and bias on the real path, against truth: the tiny policy's chains, labelled again and again.

Tokeniser, vLLM, checker and estimator are those of a run, and so is the store; only the scheduler is left out. The chains are
the 24 of `tests/tiny/truth.jsonl`. `tiny_figures` makes figures of what they are labelled with.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

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
from tests.bench.tiny_figures import FIXED, USUAL_TARGET, Blocks, Sampled, lines
from tests.settings import deciding
from tests.tiny.compared import Printed, shown, truth
from tests.tiny.policy import OVERRIDES, TRUTH

REPETITIONS = {0.13: 10, 0.1: 20, 0.08: 10}
"""By `estimator.target_sd`."""
CEILING = 16
"""Rollouts per prefix that a chain may take on average: twice the default, so that the curve passes the error of fixed N=8."""
BLOCKS = 20
"""Labellings with FIXED rollouts of each prefix, cut by order of issue from one run."""
CPUS = 1
"""See `tests.tiny.truth`."""


def tiny() -> None:
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        found = asyncio.run(_sampled(Path(folder)))
    for line in lines(found, truth()):
        print(line)


class _LoadedOnce(VllmEngine):
    """Outlives the workers that use it one after the other."""

    async def start(self) -> None:
        if not self.policy:
            await super().start()

    async def close(self) -> None: ...

    async def unload(self) -> None:
        await super().close()


async def _sampled(run_dir: Path) -> Sampled:
    fixed = _config(run_dir, "estimator=fixed", f"sampling.rollouts={FIXED * BLOCKS}")
    storage = LocalStorage(run_dir)
    (unit,) = units_of(storage, _staged(storage, fixed))
    policy = as_type(fixed.policy, HfConfig)
    engine = _LoadedOnce(policy, fixed.sampling, name="tiny", model=lambda: policy.model, cpus=CPUS)
    again = _Again(run_dir=run_dir, storage=storage, engine=engine, unit=unit)
    try:
        await engine.start()
        began = time.monotonic()
        passed_on = {
            target: await again.labelled(target, times, passed_on=True) for target, times in REPETITIONS.items()
        }
        from_prior = await again.labelled(USUAL_TARGET, REPETITIONS[USUAL_TARGET], passed_on=False)
        async with _working(fixed, storage, engine) as worker:
            await worker.label_unit(UnitTask(unit=unit, unit_target=unit_target_of(*deciding(fixed))))
        seconds = time.monotonic() - began
    finally:
        await engine.unload()
    return Sampled(
        passed_on=passed_on,
        from_prior=from_prior,
        fixed=_blocks(_table(storage, unit.unit_id, LABELS), _table(storage, unit.unit_id, "rollouts")),
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


def _config(run_dir: Path, *overrides: str) -> LabelConfig:
    return compose_label([*OVERRIDES, f"data.path={TRUTH}", f"run_dir={run_dir}", *overrides])


def _staged(storage: LocalStorage, config: LabelConfig) -> Commit:
    staged_id = str(identity(config, input_digest(config.data.path))[STAGED_INPUT])
    with checker_for(config.grader) as checker:
        staged = stage(storage, staged_id, config.data, config.run, checker)
    return Commit(kind=INPUT, sequence_id=staged_id, number=0, state=CommitState.WHOLE, shards=staged.shards)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """Labels the same rows as units of other names, as many at a time as a worker holds."""

    run_dir: Path
    storage: LocalStorage
    engine: VllmEngine
    unit: UnitRef

    async def labelled(self, target_sd: float, times: int, *, passed_on: bool) -> list[Printed]:
        """`passed_on`: a unit begins with the newest kernel that one before it has learned, as in a run."""
        words = ("estimator=pooled", f"estimator.target_sd={target_sd}", f"sampling.rollouts={CEILING}")
        config = _config(self.run_dir, *words)
        free = asyncio.Semaphore(config.run.units_in_flight)
        newest: LearnedState | None = None

        async def label(worker: Worker, unit: UnitRef) -> Printed:
            nonlocal newest
            async with free:
                receipt = await worker.label_unit(
                    UnitTask(unit=unit, unit_target=unit_target_of(*deciding(config)), learned=newest)
                )
            known = newest.chains if newest else 0
            if passed_on and receipt.learned and receipt.learned.chains > known:
                newest = receipt.learned
            return shown(_table(self.storage, unit.unit_id, LABELS))

        names = [content_id("again", f"{target_sd}", f"{passed_on}", f"{number}") for number in range(times)]
        async with _working(config, self.storage, self.engine) as worker:
            labelling = [label(worker, replace(self.unit, unit_id=name)) for name in names]
            return list(await asyncio.gather(*labelling))


def _table(storage: LocalStorage, unit_id: str, name: str) -> pl.DataFrame:
    whole = resolve(record_sequence(storage, UNIT, unit_id)).whole
    assert whole is not None
    tables = [pl.from_arrow(read_shard(storage, shard)) for shard in whole.shards if shard.table == name]
    return pl.concat([table for table in tables if isinstance(table, pl.DataFrame)])


def _blocks(labels: pl.DataFrame, rollouts: pl.DataFrame) -> Blocks:
    rows = {row["source_id"]: (row["root_prefix_id"], *row["prefix_ids"][:-1]) for row in labels.to_dicts()}
    place = {prefix: at for at, prefix in enumerate(prefix for each in truth().ids for prefix in rows[each])}
    right, graded, tokens = (np.zeros((BLOCKS, len(place))) for _ in range(3))
    for prefix, issue, verdict, count in rollouts.select("prefix_id", "issue_index", "verdict", "n_tokens").rows():
        at = issue // FIXED, place[prefix]
        right[at] += verdict == Verdict.CORRECT.value
        graded[at] += verdict in (Verdict.CORRECT.value, Verdict.INCORRECT.value, Verdict.NO_ANSWER.value)
        tokens[at] += count
    return Blocks(value=right / graded, graded=graded, tokens=tokens)
