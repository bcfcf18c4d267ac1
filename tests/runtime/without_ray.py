"""Commands with workers in the driver's event loop, as `in_process` has them, for tests of what is around Ray."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, cast
from unittest.mock import patch

from pipeline.cli import chain_run, check, grow, label
from pipeline.config.label import LabelConfig
from pipeline.core.progress import Status, Summary
from pipeline.python import child
from pipeline.python.task import Task
from pipeline.runtime.worker_handle import WorkerPool
from pipeline.runtime.workload import Workload
from tests.runtime.in_process import hired_here, in_process


@contextmanager
def _workers(config: LabelConfig, check: Callable[[], None]) -> Iterator[WorkerPool]:
    check()
    with in_process(config) as pool:
        yield pool


@contextmanager
def _chain_workers(workload: Workload, check: Callable[[], None]) -> Iterator[WorkerPool]:
    check()
    with hired_here(workload) as pool:
        yield pool


def _pool(workload: Workload, _check: Callable[[], None]) -> WorkerPool:
    with hired_here(workload) as pool:
        return pool


@contextmanager
def without_ray(*, chains: bool = True) -> Iterator[None]:
    """A command that has workers starts no Ray within this block and joins none, in this process. It sets no variables for
    Ray either, which later commands of this process would inherit. `chains`: `search`, `score`, `judge` and `check` too, which
    import what Ray's workers are made of: that takes a second."""
    with ExitStack() as stack:
        for command in (label, grow):
            stack.enter_context(patch.object(command, "ray_label_workers", _workers))
        for command in (label, grow, chain_run, check):
            stack.enter_context(patch.object(command, "set_up_ray", lambda _: None))
        if chains:
            stack.enter_context(patch("pipeline.runtime.actors.ray_workers", _chain_workers))
            stack.enter_context(patch("pipeline.runtime.actors.worker_pool", _pool))
            stack.enter_context(patch("pipeline.runtime.connection.cluster", lambda *_: nullcontext()))
        yield


class _Sender:
    """What a run's child process has in place of a connection."""

    def __init__(self, watch: Callable[[Status], None]) -> None:
        self.send = watch


def _done_here(task: Task, watch: Callable[[Status], None]) -> Summary | Summary:
    sender = cast("Connection[Any, Any]", _Sender(watch))
    with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
        return thread.submit(child._outcome, task, sender).result().result()


@contextmanager
def python_without_ray() -> Iterator[None]:
    """As `without_ray`, and no call of Python starts a process either."""
    with without_ray(), ExitStack() as stack:
        # The modules, whose names their functions have too.
        for where, name in (("process", "done_elsewhere"), ("search", "done_elsewhere"), ("label", "label_elsewhere")):
            stack.enter_context(patch.object(import_module(f"pipeline.python.{where}"), name, _done_here))
        yield
