"""`label` and `search` with workers in the driver's event loop, as `in_process` has them, for tests of what is around Ray."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, cast
from unittest.mock import patch

from pipeline.cli import chain_run, grow, label
from pipeline.config.label import LabelConfig
from pipeline.core.progress import ChainRun, Status, Summary
from pipeline.python import child
from pipeline.python.task import Task
from pipeline.runtime.worker_handle import WorkerPool
from pipeline.runtime.workload import Workload
from tests.runtime.in_process import hired_here, in_process

python_label, python_search = (import_module(f"pipeline.python.{name}") for name in ("label", "search"))
"""The modules, whose names their functions have too."""


@contextmanager
def _workers(config: LabelConfig, check: Callable[[], None]) -> Iterator[WorkerPool]:
    check()
    with in_process(config) as pool:
        yield pool


@contextmanager
def without_ray() -> Iterator[None]:
    """`label`, of the command line and of a run's child process, starts no Ray within this block and joins none. It sets no
    variables for Ray either, which later commands of this process would inherit."""
    with ExitStack() as stack:
        for command in (label, grow):
            stack.enter_context(patch.object(command, "ray_label_workers", _workers))
            stack.enter_context(patch.object(command, "set_up_ray", lambda _: None))
        yield


class _Sender:
    """What a run's child process has in place of a connection."""

    def __init__(self, watch: Callable[[Status], None]) -> None:
        self.send = watch


def _label_here(task: Task, watch: Callable[[Status], None]) -> Summary:
    sender = cast("Connection[Any, Any]", _Sender(watch))
    return cast("Summary", child._outcome(task, sender).result())


@contextmanager
def python_without_ray() -> Iterator[None]:
    """As `without_ray`, and `label` of Python and `Run.grow` start no process either."""
    with (
        without_ray(),
        patch.object(python_label, "label_elsewhere", _label_here),
        patch("pipeline.python.process.done_elsewhere", _label_here),
    ):
        yield


@contextmanager
def search_without_ray() -> Iterator[None]:
    """`search`, of the command line and of a run's child process, starts no Ray within this block and joins none. `search` and
    `solve` of Python start no process either."""

    def workers(workload: Workload, check: Callable[[], None]) -> AbstractContextManager[WorkerPool]:
        check()
        return hired_here(workload)

    with (
        patch("pipeline.runtime.actors.ray_workers", workers),
        patch.object(chain_run, "set_up_ray", lambda _: None),
        patch.object(python_search, "done_elsewhere", _search_here),
    ):
        yield


def _search_here(task: Task, watch: Callable[[Status], None]) -> ChainRun:
    sender = cast("Connection[Any, Any]", _Sender(watch))
    return cast("ChainRun", child._outcome(task, sender).result())
