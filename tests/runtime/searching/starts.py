"""Starts of `search` in the process of the test, on the virtual clock, with engines, disks and drivers that misbehave."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.config.search import SearchRunConfig
from pipeline.core.progress import Summary
from pipeline.engines.base import Engine, Surroundings
from pipeline.runtime.chain_run.run import Running, run_task
from pipeline.runtime.chain_run.task import Task
from pipeline.runtime.searching.task import SearchTask
from pipeline.runtime.searching.worker import Searching, searching_work
from pipeline.runtime.worker import Worker
from pipeline.runtime.worker_handle import WorkerHandle, WorkerPool
from pipeline.scorers.base import ScoringEngine
from pipeline.searches.registry import search_for
from pipeline.storage.local import LocalStorage
from tests.runtime.in_process import stop_signal, worker_in_process
from tests.runtime.virtual_clock import QuickDisk, on_a_virtual_clock

Work = Callable[[SearchRunConfig, Surroundings], Searching]


class MortalDisk(QuickDisk):
    """It is gone after the next `commits` commit records, or with `before` just before the last of them gets its name."""

    def __init__(self, commits: int, *, before: bool) -> None:
        self._left = commits
        self._before = before

    def write(self, path: str, data: bytes, mode: int = 0o666) -> None:
        if self._left <= 0:
            raise OSError(5, "the disk is gone", path)
        super().write(path, data, mode)

    def link(self, path: str, new_path: str) -> None:
        self._left -= "/commits/" in new_path
        if self._left < 0 or (self._before and not self._left):
            raise OSError(5, "the disk is gone", new_path)
        super().link(path, new_path)


def hired(task: Task[Any], disk: QuickDisk | None = None, work: Work = searching_work) -> Iterator[WorkerPool]:
    """Workers that write to a disk of their own and do `work`."""
    config = task.spread(1)
    storage = LocalStorage(Path(config.run_dir), disk or QuickDisk())

    def hire(attempt: int) -> WorkerHandle:
        made = work(config, Surroundings(attempt=attempt))
        return worker_in_process(Worker(made, storage, config.run.flush_seconds))

    yield WorkerPool(hire=hire, workers=config.cluster.workers or 1)


def started(
    config: SearchRunConfig,
    disk: QuickDisk | None = None,
    work: Work = searching_work,
    run: Running = on_a_virtual_clock,
) -> Summary:
    """A start of `search`. Raises what `run_task` raises."""
    with stop_signal() as stop:
        return run_task(
            SearchTask(config), contextmanager(lambda task: hired(task, disk, work)), lambda _: None, stop, run
        )


def with_engines(engine: Engine | None = None, scoring: ScoringEngine | None = None) -> Work:
    """Work with engines of one's own."""

    def work(config: SearchRunConfig, around: Surroundings) -> Searching:
        usual = searching_work(config, around)
        return Searching(config, search_for(config.search), engine or usual.engine, scoring or usual.scoring)

    return work


def at_once(*starts: Callable[[], object]) -> list[BaseException]:
    """Run starts in threads of their own. Returns what they raise."""
    raised: list[BaseException] = []

    def run(start: Callable[[], object]) -> None:
        try:
            start()
        except BaseException as error:  # noqa: BLE001  # what a thread raises is lost
            raised.append(error)

    threads = [threading.Thread(target=run, args=(start,)) for start in starts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised
