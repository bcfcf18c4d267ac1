"""`label` with processes for workers instead of Ray's actors: the same driver, scheduler and worker, in a tenth of the time.

A driver is forked from a process that has everything imported (multiprocessing's fork server), a worker from its driver. A
worker talks to its driver over a pipe, and ends when the driver's end closes, as an actor does.
"""

import asyncio
import ctypes
import functools
import itertools
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from pipeline.config.fields import as_type
from pipeline.config.label import LabelConfig
from pipeline.core.errors import EngineDied, StepvalueError
from pipeline.core.failpoints import arm
from pipeline.core.progress import Status
from pipeline.core.records import Completion, Request
from pipeline.engines.oracle import OracleEngine
from pipeline.runtime import worker_handle
from pipeline.runtime.chain_run.run import run_task
from pipeline.runtime.chain_run.task import Task
from pipeline.runtime.driver import LabelTask
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import WorkerHandle, WorkerLocation, WorkerPool
from pipeline.storage.location import storage_at
from tests.oracles.lab import LabEngine, LabPolicyConfig
from tests.runtime.in_process import worker_with

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *(__name__, "pytest", "pyarrow.pandas_compat", "pyarrow.parquet", "tests.faults.runs", "tests.searches.runs"),
        *("pipeline.analysis.searches.read", "tests.faults.test_rows_once"),
    ]
)
_FORK = multiprocessing.get_context("fork")
_CAPABILITIES_VERSION = 0x20080522
DRAIN_SECONDS = 4.0
"""A worker that is stopped is waited for in vain; less than in a real run, so that tests of it are short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A start of `label`, and what is to go wrong in it.

    `scratch` gets the pids, what was printed, what engines answered, and the summary. The environments hold failpoints: that
    of workers counts for the first in each place. `outlive`: workers finish their units also when the driver is gone.
    `unreachable`: a worker that is given up does not hear of it, as behind a network that failed. `unprivileged`: permissions
    hold for root too.
    """

    config: LabelConfig
    scratch: Path
    workers: int = 1
    driver_environment: Mapping[str, str] = field(default_factory=dict)
    worker_environment: Mapping[str, str] = field(default_factory=dict)
    outlive: bool = False
    unreachable: bool = False
    unprivileged: bool = False


def drive(plan: Plan) -> None:
    """The main function of a driver process, which leads a process group of its own."""
    os.setpgid(0, 0)
    worker_handle.DRAIN_SECONDS = DRAIN_SECONDS
    with (plan.scratch / "output").open("a", buffering=1) as output:
        sys.stdout = sys.stderr = output
        note(plan.scratch, "driver", os.getpid())
        if plan.unprivileged:
            drop_privileges()
        code = _label(plan)
    os._exit(code)


def _label(plan: Plan) -> int:
    stop = StopSignal()
    stop.listen()
    try:
        if armed := arm(plan.driver_environment):
            print(armed)
        summary = run_task(LabelTask(plan.config), functools.partial(_processes, plan), _print_status, stop)
    except StepvalueError as error:
        print(f"stepvalue: {error}")
        return error.exit_code
    except Exception:  # noqa: BLE001  # as the interpreter would
        traceback.print_exc()
        return 1
    (plan.scratch / "summary.json").write_text(json.dumps(asdict(summary)))
    return 0


def _print_status(status: Status) -> None:
    for warning in status.warnings:
        print(f"warning: {warning}")
    print(f"{status.stage}: {status.units_done} of {status.units} units, {status.rollouts} rollouts")


@contextmanager
def _processes(plan: Plan, task: Task[LabelConfig]) -> Iterator[WorkerPool]:
    def hire(attempt: int) -> WorkerHandle:
        return cast(WorkerHandle, ProcessWorker(plan, task.config, attempt))

    yield WorkerPool(hire=hire, workers=plan.workers)


class ProcessWorker:
    """See `worker_handle.WorkerHandle`."""

    def __init__(self, plan: Plan, config: LabelConfig, attempt: int) -> None:
        self._plan = plan
        self._connection, far = _FORK.Pipe()
        self._process = _FORK.Process(target=work, args=(far, plan, config, attempt))
        self._process.start()
        far.close()
        self._numbers = itertools.count()
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._open = True
        asyncio.get_running_loop().add_reader(self._connection.fileno(), self._take)

    async def location(self) -> WorkerLocation:
        return WorkerLocation()

    def __getattr__(self, name: str) -> Any:
        """All else happens in the process."""
        return functools.partial(self._call, name)

    def kill(self) -> None:
        self._close()
        if not self._plan.unreachable and self._process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    async def _call(self, name: str, *arguments: Any) -> Any:
        if not self._open:
            raise EngineDied("a worker died")
        number = next(self._numbers)
        answer = self._calls[number] = asyncio.get_running_loop().create_future()
        try:
            self._connection.send((number, name, arguments))
        except OSError:
            self._close()
        return await answer

    def _take(self) -> None:
        try:
            number, result = self._connection.recv()
        except (EOFError, OSError):
            self._close()
            return
        answer = self._calls.pop(number)
        if answer.done():
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    def _close(self) -> None:
        if not self._open:
            return
        self._open = False
        asyncio.get_running_loop().remove_reader(self._connection.fileno())
        self._connection.close()
        for answer in self._calls.values():
            if not answer.done():
                answer.set_exception(EngineDied("a worker died"))


def work(connection: Connection, plan: Plan, config: LabelConfig, attempt: int) -> None:
    """The main function of a worker process, in its driver's process group."""
    # What the driver holds must end with the driver: its lock, and its ends of the pipes to other workers.
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in (0, 1, 2, connection.fileno(), sys.stdout.fileno()):
            with suppress(OSError):
                os.close(descriptor)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the driver's handler is inherited, and would ignore the signal here
    note(plan.scratch, "worker", os.getpid())
    if plan.unprivileged:
        drop_privileges()
    if attempt == 1:
        arm(plan.worker_environment)
    asyncio.run(_serve(connection, plan, config, attempt))
    os._exit(0)


class LoggingEngine(LabEngine):
    """Records when it has answered what: a line per batch, the time and the ids."""

    def __init__(self, plan: Plan, config: LabelConfig, attempt: int) -> None:
        policy = as_type(config.policy, LabPolicyConfig)
        super().__init__(OracleEngine(policy), policy.lab, attempt)
        self._log = plan.scratch / "answered"

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        async for batch in super().generate(requests, keep_tokens=keep_tokens):
            with self._log.open("a") as log:
                log.write(f"{time.monotonic()} {' '.join(each.request.request_id for each in batch)}\n")
            yield batch


async def _serve(connection: Connection, plan: Plan, config: LabelConfig, attempt: int) -> None:
    assert config.run_dir is not None
    worker = worker_with(config, LoggingEngine(plan, config, attempt), storage_at(config.run_dir))
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    at_work: set[asyncio.Task[None]] = set()

    async def answer(number: int, name: str, arguments: tuple[Any, ...]) -> None:
        try:
            result = await getattr(worker, name)(*arguments)
        except Exception as error:  # noqa: BLE001  # whatever it is, the driver is to hear of it
            result = error
        with suppress(OSError):
            connection.send((number, result))

    def take() -> None:
        try:
            call = connection.recv()
        except (EOFError, OSError):
            loop.remove_reader(connection.fileno())
            gone.set()
            return
        at_work.add(asyncio.create_task(answer(*call)))

    loop.add_reader(connection.fileno(), take)
    await gone.wait()
    if plan.outlive or plan.unreachable:
        await asyncio.gather(*at_work)


def note(scratch: Path, kind: str, pid: int) -> None:
    """Add a line to the list of a test's processes."""
    with (scratch / "pids").open("a") as pids:
        pids.write(f"{kind} {pid}\n")


def drop_privileges() -> None:
    """Give up root's right to write where permissions say no; nothing for others. Raises OSError."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")
