"""Commands with workers in the driver's event loop, as `in_process` has them, for tests of what is around Ray."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection
from typing import Any, cast
from unittest.mock import patch

from pipeline.cli.workers import Workers
from pipeline.config.label import ClusterConfig
from pipeline.core.progress import Status
from pipeline.python import child
from pipeline.python.process import Task
from pipeline.runtime.chain_run.run import Hiring
from pipeline.runtime.worker_handle import WorkerPool
from tests.runtime.in_process import in_process


@contextmanager
def _hiring(_config: ClusterConfig, _workers: Workers, check: Callable[[], None]) -> Iterator[Hiring]:
    def hire(asked: Any) -> AbstractContextManager[WorkerPool]:
        check()
        return in_process(asked)

    yield hire


@contextmanager
def without_ray() -> Iterator[None]:
    """A command that has workers starts no Ray within this block and joins none, in this process. It sets no variables for
    Ray either, which later commands of this process would inherit."""
    with patch("pipeline.cli.workers.ray_hiring", _hiring):
        yield


class _Sender:
    """What a run's child process has in place of a connection."""

    def __init__(self, watch: Callable[[Status], None]) -> None:
        self.send = watch


def _done_here(task: Task, watch: Callable[[Status], None]) -> Any:
    sender = cast("Connection[Any, Any]", _Sender(watch))
    with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
        return thread.submit(child._outcome, task, sender).result().result()


@contextmanager
def python_without_ray() -> Iterator[None]:
    """As `without_ray`, and no call of Python starts a process either."""
    with without_ray(), patch("pipeline.python.process.done_elsewhere", _done_here):
        yield
