"""A run on the virtual clock: the real driver, scheduler, workers and storage, virtual engines, and the delays of a cluster."""

import asyncio
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.__main__ import compose_label
from pipeline.config.label import LabelConfig
from pipeline.core.progress import EngineWork, Summary
from pipeline.core.records import Request
from pipeline.data.rows import input_digest
from pipeline.runtime.driver import label_held
from pipeline.runtime.state import identity
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker import Receipt, UnitTask, Worker
from pipeline.runtime.worker_handle import WorkerHandle, WorkerPool
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import claim
from tests.bench.scale.cache import BLOCK, PrefixCache
from tests.bench.scale.chains import MAX_TOKENS, reply_to, steps_in
from tests.bench.scale.engine import Reply, VirtualEngine
from tests.bench.scale.pace import Pace
from tests.faults.loop import pause
from tests.runtime.in_process import InProcessWorker
from tests.runtime.virtual_clock import QuickDisk, on_a_virtual_clock

CAPACITY = 1024
"""Sequences at once: vLLM's default on an H100."""
GENERATED_TOKENS = 150
"""Tokens of a running sequence that the prefix cache cannot keep."""
CALL_SECONDS = 0.002
"""Until a call reaches a worker, and until its answer is back."""
DISK_SECONDS = 0.005
"""Of every file written or read."""
SETTINGS = ("policy=oracle", "policy.prompt.style=plain", f"sampling.max_tokens={MAX_TOKENS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of a run with `workers` workers that labelled for `seconds` of the virtual clock.

    `work` is that of all engines meanwhile; `tail_seconds` the part of its `unfilled_seconds` behind the last moment at which
    an engine was full; `units_in_flight` the most that a worker had; `unique_tokens` those of all prompts, each prefix of
    another counted once, and `least_prefilled` what had to be computed of prompts with shared blocks of a given size. The
    chains have `steps` labelled steps; `cpu_seconds` are real ones, of everything, virtual engines too.
    """

    summary: Summary
    workers: int
    seconds: float
    work: EngineWork
    tail_seconds: float
    units_in_flight: int
    unique_tokens: int
    least_prefilled: int
    steps: int
    cpu_seconds: float

    @property
    def idle(self) -> float:
        """Share of all places that stood empty while nothing waited for one."""
        return self.work.unfilled_seconds / (self.seconds * self.workers)

    @property
    def tail(self) -> float:
        return self.tail_seconds / (self.seconds * self.workers)


def play(data: Path, pace: Pace, *, workers: int, settings: Sequence[str] = ()) -> Played:
    """Label the chains of `data`, one of each problem, on `workers` engines of this pace."""
    with tempfile.TemporaryDirectory(prefix="stepvalue-scale-") as folder:
        config = compose_label([f"data.path={data}", f"run_dir={folder}/run", *SETTINGS, *settings])
        storage = LocalStorage(Path(folder) / "run", _FarDisk())
        run_identity = identity(config, input_digest(config.data.path))
        claim(storage, run_identity)
        handles: list[_FarWorker] = []
        longest: dict[str, int] = {}
        endless, least = PrefixCache(sys.maxsize), array("q")
        blocks = (pace.kv_tokens - CAPACITY * GENERATED_TOKENS) // BLOCK

        def reply(request: Request) -> Reply:
            problem_id, tokens = request.problem.problem_id, len(request.prefix.prompt_ids)
            longest[problem_id] = max(tokens, longest.get(problem_id, 0))
            least.append(endless.computed(request.prefix.prefix_id, request.prefix.prompt_ids))
            return reply_to(request)

        @contextmanager
        def hiring(config: LabelConfig) -> Iterator[WorkerPool]:
            def hire(_attempt: int) -> WorkerHandle:
                engine = VirtualEngine(pace, reply, capacity=CAPACITY, cache_blocks=blocks)
                handles.append(_FarWorker(Worker(config, storage, engine), engine))
                return handles[-1]

            yield WorkerPool(hire=hire, workers=workers)

        began = time.process_time()
        summary = label_held(
            config, storage, run_identity, hiring, lambda _: None, StopSignal(), run=on_a_virtual_clock
        )
        cpu_seconds = time.process_time() - began
    return Played(
        summary=summary,
        workers=workers,
        seconds=summary.seconds_labelling,
        work=sum((handle.work for handle in handles), EngineWork()),
        tail_seconds=sum(handle.tail_seconds for handle in handles),
        units_in_flight=max(handle.most_in_flight for handle in handles),
        unique_tokens=sum(longest.values()),
        least_prefilled=sum(least),
        steps=steps_in(data),
        cpu_seconds=cpu_seconds,
    )


class _FarDisk(QuickDisk):
    """Takes its time on the virtual clock."""

    def write(self, path: str, data: bytes, mode: int = 0o666) -> None:
        pause(DISK_SECONDS)
        super().write(path, data, mode)

    def read(self, path: str) -> bytes:
        pause(DISK_SECONDS)
        return super().read(path)


class _FarWorker(InProcessWorker):
    """A worker that calls take some time to reach. `work` and `tail_seconds` are its engine's when labelling ended."""

    def __init__(self, worker: Worker, engine: VirtualEngine) -> None:
        super().__init__(worker)
        self._engine = engine
        self.work = EngineWork()
        self.tail_seconds = 0.0
        self.most_in_flight = 0
        self._in_flight = 0

    async def wait_for_capacity(self, begun: int) -> None:
        await asyncio.sleep(CALL_SECONDS)
        await super().wait_for_capacity(begun)
        await asyncio.sleep(CALL_SECONDS)

    async def finish_unit(self, task: UnitTask) -> Receipt:
        await asyncio.sleep(CALL_SECONDS)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        receipt = await super().finish_unit(task)
        self._in_flight -= 1
        await asyncio.sleep(CALL_SECONDS)
        return receipt

    async def drain(self) -> None:
        self.work, self.tail_seconds = self._engine.work, self._engine.tail_seconds
        await super().drain()
