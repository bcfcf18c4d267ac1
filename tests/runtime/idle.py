"""Workers without an engine, for tests of the scheduler."""

from collections.abc import Sequence
from typing import Any

from pipeline.config.label import RunConfig
from pipeline.core.progress import EngineWork
from pipeline.core.records import UnitTarget
from pipeline.runtime.scheduler import Scheduler
from pipeline.runtime.worker import Receipt, Snapshot, UnitTask
from pipeline.runtime.worker_handle import Job, WorkerLocation, WorkerPool
from pipeline.storage.shards import ShardRecord
from pipeline.storage.units import UnitRef

SHARD = ShardRecord(table="inputs", file="f", sha256="0", rows=1)


class IdleWorker:
    """See `worker_handle.WorkerHandle`: it starts at once, and finishes each unit at once."""

    async def location(self) -> WorkerLocation:
        return WorkerLocation()

    async def fetch(self) -> None:
        return

    async def start(self) -> str:
        return "policy"

    async def wait_for_capacity(self, begun: int) -> None:
        return

    async def finish_unit(self, task: UnitTask) -> Receipt:
        return Receipt(whole=True)

    async def missing_requests(self, task: UnitTask) -> list[str]:
        raise AssertionError(f"{task.unit.unit_id} is no suspect")

    async def snapshot(self) -> Snapshot:
        return Snapshot(work=EngineWork())

    async def drain(self) -> None:
        return

    async def stop(self) -> None:
        return

    def kill(self) -> None:
        return


def job(unit_id: str = "u", *, size: int = 0, **own: Any) -> Job:
    unit = UnitRef(unit_id=unit_id, shard=SHARD, group=0, size=size)
    return Job(asked=UnitTask(unit=unit, unit_target=UnitTarget(rollouts=1)), **own)


def scheduler(pool: WorkerPool, jobs: Sequence[Job], run: RunConfig, **own: Any) -> Scheduler:
    return Scheduler(run, pool, **{"jobs": jobs, "units": len(jobs), "watch": lambda _: None, **own})
