"""What a run over chains would cost: `--estimate` counts the chains, does a sample of them in this process, and keeps nothing.

The time of all chains is that of the sample times the ratio of their numbers of characters: what a model computes grows with
the length of its input.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.core.ids import content_id
from pipeline.core.records import UnitTarget
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.chain_task import ChainTask, values
from pipeline.runtime.intake import LeftOutRows
from pipeline.runtime.worker import UnitTask, Worker
from pipeline.storage.location import storage_at
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.temporary import temporary_folder
from pipeline.storage.unit_files import UnitFiles
from pipeline.storage.units import UnitRef, write_chains


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSample:
    """`chains`, `steps`: of the whole input. `drawn`: the sample, in the order of the input. `weight`: characters of all chains
    for one of the sample."""

    chains: int
    steps: int
    left_out: LeftOutRows
    drawn: pa.Table
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What there is to do, and what a `sample` of it cost one worker of this machine. `tables`: the rows that the sample came
    to. `seconds_of_sample`, without those of loading, and `seconds`, for all chains, follow by characters from the chains that
    were timed."""

    sample: ChainSample
    model: str
    seconds_loading: float
    seconds_of_sample: float
    seconds: float
    tables: Mapping[str, pa.Table]

    @property
    def sampled(self) -> int:
        """Chains of the sample."""
        return int(self.sample.drawn.num_rows)

    def column(self, table: str, name: str) -> list[Any]:
        """A column of the rows that the sample came to."""
        return values(self.tables[table], name)


def estimate(task: ChainTask[Any]) -> Estimate:
    """Raises UsageError for an unusable model or run, InputError if there is no chain, PolicyError and EngineDied."""
    sample = sampled_chains(task)
    with temporary_folder("stepvalue-estimate-") as folder:
        storage = storage_at(f"{folder}/run")
        return asyncio.run(_tried(task, storage, sample))


async def _tried(task: ChainTask[Any], storage: Storage, sample: ChainSample) -> Estimate:
    """Do chains in this process, which may use all of its cores. The first one, which is slower, goes alone and is not timed;
    done again, it would cost nothing where prefixes are in a cache."""
    worker = Worker(task.work(Surroundings(cpus=len(os.sched_getaffinity(0)))), storage, task.config.run.flush_seconds)
    try:
        await worker.fetch()
        began = time.monotonic()
        model = await worker.start()
        loaded = time.monotonic()
        first, timed = sample.drawn.slice(0, 1), sample.drawn.slice(1)
        tables = [await _unit(worker, storage, "first", first)]
        warm = time.monotonic()
        if timed.num_rows:
            tables.append(await _unit(worker, storage, "rest", timed))
        else:
            timed, warm = first, loaded
        seconds = max(time.monotonic() - warm, 1e-9) * _characters(sample.drawn) / max(1, _characters(timed))
        return Estimate(
            sample=sample,
            model=model,
            seconds_loading=loaded - began,
            seconds_of_sample=seconds,
            seconds=seconds * sample.weight,
            tables={name: pa.concat_tables([each[name] for each in tables]) for name in tables[0]},
        )
    finally:
        await worker.stop()


async def _unit(worker: Worker, storage: Storage, name: str, chains: pa.Table) -> Mapping[str, pa.Table]:
    unit_id = content_id("estimate", name)
    shard = write_chains(storage, unit_id, {unit_id: chains})
    await worker.finish_unit(UnitTask(unit=UnitRef(unit_id=unit_id, shard=shard, group=0), unit_target=UnitTarget()))
    files = UnitFiles(storage, unit_id)
    files.read()
    assert files.whole is not None
    return {shard.table: read_shard(storage, shard) for shard in files.whole.shards}


def sampled_chains(task: ChainTask[Any]) -> ChainSample:
    """A sample of the chains of a run: those with the smallest ids. Ids are hashes, so it is random, and the same each time.

    Raises InputError if there is no chain, and what reading them raises.
    """
    left_out = LeftOutRows()
    chains = steps = characters = 0
    sample: list[tuple[int, int, pa.Table]] = []
    for table in task.chains(left_out):
        first = chains
        chains += table.num_rows
        steps += int(pc.sum(pc.list_value_length(table["steps"])).as_py() or 0)
        characters += _characters(table)
        for chain_id, row in zip(values(table, "chain_id"), values(table, "row"), strict=True):
            # Negative, so that the largest of the smallest ids is the one that leaves the heap.
            rank = -int(chain_id, 16)
            if len(sample) < task.sample:
                heappush(sample, (rank, row, table.slice(row - first, 1)))
            elif rank > sample[0][0]:
                heapreplace(sample, (rank, row, table.slice(row - first, 1)))
    task.refuse_none(chains, left_out)
    drawn = pa.concat_tables([table for _, _, table in sorted(sample, key=lambda each: each[1])])
    return ChainSample(
        chains=chains,
        steps=steps,
        left_out=left_out,
        drawn=drawn,
        weight=characters / max(1, _characters(drawn)),
    )


def _characters(table: pa.Table) -> int:
    texts = [*values(table, "problem"), *(step for steps in values(table, "steps") for step in steps)]
    return sum(map(len, texts))
