"""A whole run without Ray: the driver, the scheduler, and workers in the driver's event loop."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pipeline.config.label import LabelConfig
from pipeline.core.errors import EngineDied
from pipeline.core.progress import Summary
from pipeline.engines.base import Engine, Surroundings
from pipeline.runtime.driver import Running, label
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker import Receipt, Snapshot, UnitTask, Worker, engine_for
from pipeline.runtime.worker_handle import WorkerHandle, WorkerLocation, WorkerPool
from pipeline.runtime.workload import UnitWorker, Workload
from pipeline.storage.location import storage_at
from pipeline.storage.storage import Storage


class InProcessWorker:
    """A worker whose methods are called directly; see `worker_handle.WorkerHandle`. After `kill` it raises EngineDied."""

    def __init__(self, worker: UnitWorker) -> None:
        self._worker = worker
        self._killed = asyncio.Event()

    async def location(self) -> WorkerLocation:
        self._check()
        return WorkerLocation()

    async def fetch(self) -> None:
        self._check()
        await self._worker.fetch()

    async def start(self) -> str:
        self._check()
        return await self._worker.start()

    async def wait_for_capacity(self, begun: int) -> None:
        self._check()
        await self._worker.wait_for_capacity(begun)

    async def finish_unit(self, task: UnitTask) -> Receipt:
        self._check()
        return await self._worker.finish_unit(task)

    async def missing_requests(self, task: UnitTask) -> list[str]:
        self._check()
        return await self._worker.missing_requests(task)

    async def snapshot(self) -> Snapshot:
        self._check()
        return await self._worker.snapshot()

    async def drain(self) -> None:
        self._check()
        await self._worker.drain()

    async def stop(self) -> None:
        self._check()
        await self._worker.stop()

    def kill(self) -> None:
        self._killed.set()

    def _check(self) -> None:
        if self._killed.is_set():
            raise EngineDied("a worker died: it was killed")


@contextmanager
def in_process(
    config: LabelConfig, storage: Storage | None = None, engine: Engine | None = None
) -> Iterator[WorkerPool]:
    """A pool of workers, like `runtime.actors.ray_workers`. They write to `storage` and use `engine`, if given."""
    assert config.run_dir is not None
    written_to = storage or storage_at(config.run_dir)

    def hire(attempt: int) -> WorkerHandle:
        return InProcessWorker(Worker(config, written_to, engine or engine_for(config, Surroundings(attempt=attempt))))

    yield WorkerPool(hire=hire, workers=config.cluster.workers or 1)


def label_in_process(
    config: LabelConfig, stop: StopSignal | None = None, *, engine: Engine | None = None, run: Running = asyncio.run
) -> Summary:
    """The `label` command but for what it prints. Raises what `driver.label` raises.

    An `engine` that has been started is used in its own event loop, by `run`.
    """
    stop = stop or StopSignal()
    try:
        return label(config, partial(in_process, engine=engine), lambda _: None, stop, run)
    finally:
        stop.release()


@contextmanager
def hired_here(workload: Workload) -> Iterator[WorkerPool]:
    """A pool of workers of any command in the driver's event loop."""

    def hire(attempt: int) -> WorkerHandle:
        return InProcessWorker(workload.make(workload.settings(1), Surroundings(attempt=attempt)))

    yield WorkerPool(hire=hire, workers=workload.cluster.workers or 1)
