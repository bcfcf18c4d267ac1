"""A whole run without Ray: the driver, the scheduler, and workers in the driver's event loop."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from pipeline.config.label import LabelConfig
from pipeline.core.errors import EngineDied
from pipeline.core.progress import Status, Summary
from pipeline.engines.base import Engine, Surroundings
from pipeline.runtime.chain_run.run import Running, run_task
from pipeline.runtime.chain_run.task import Task
from pipeline.runtime.driver import LabelTask
from pipeline.runtime.labelling import Labelling
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker import Worker
from pipeline.runtime.worker_handle import WorkerHandle, WorkerLocation, WorkerPool
from pipeline.storage.storage import Storage
from tests.runtime.virtual_clock import on_a_virtual_clock


class _InProcess:
    """A worker whose methods are called directly. After `kill` they raise EngineDied."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._killed = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._worker, name)

        async def called(*arguments: object) -> object:
            self._check()
            return await method(*arguments)

        return called

    async def location(self) -> WorkerLocation:
        self._check()
        return WorkerLocation()

    def kill(self) -> None:
        self._killed = True

    def _check(self) -> None:
        if self._killed:
            raise EngineDied("a worker died: it was killed")


def worker_in_process(worker: Worker) -> WorkerHandle:
    return cast(WorkerHandle, _InProcess(worker))


def worker_with(config: LabelConfig, engine: Engine, storage: Storage) -> Worker:
    """A worker of `label` with this engine."""
    return Worker(Labelling(config, engine, storage), storage, config.run.flush_seconds)


@contextmanager
def stop_signal(stop: StopSignal | None = None) -> Iterator[StopSignal]:
    stop = stop or StopSignal()
    try:
        yield stop
    finally:
        stop.release()


@contextmanager
def in_process(task: Task[Any], engine: Engine | None = None) -> Iterator[WorkerPool]:
    """A pool of workers in the driver's event loop, like `runtime.actors.ray_workers`. Those of `label` use `engine`, if one is
    given."""
    config = task.spread(1)
    task = type(task)(config)

    def hire(attempt: int) -> WorkerHandle:
        work = task.work(Surroundings(attempt=attempt)) if engine is None else Labelling(config, engine, task.storage())
        return worker_in_process(Worker(work, task.storage(), config.run.flush_seconds))

    yield WorkerPool(hire=hire, workers=config.cluster.workers or 1)


def label_in_process(
    config: LabelConfig,
    stop: StopSignal | None = None,
    watch: Callable[[Status], None] = lambda _: None,
    *,
    engine: Engine | None = None,
    run: Running = asyncio.run,
) -> Summary:
    """The `label` command but for what it prints. Raises what `run_task` raises.

    An `engine` that has been started is used in its own event loop, by `run`.
    """
    with stop_signal(stop) as stop:
        return run_task(LabelTask(config), partial(in_process, engine=engine), watch, stop, run)


def done_here(
    task: Any, watch: Callable[[Status], None] = lambda _: None, run: Running = on_a_virtual_clock
) -> Summary:
    """The run of any command of chains but for what it prints."""
    with stop_signal() as stop:
        return run_task(task, in_process, watch, stop, run)
