"""A run as its driver lives through it: the real driver, scheduler and records, and many workers that answer a unit when
an engine would be done with it. Nothing of this grows with rollouts: the driver knows units only.

The records of whole units are those of a real run, the files that they name are not there. What workers do is not counted.
Not covered: what Ray takes to carry a message, which `make bench` counts.
"""

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from pipeline.__main__ import compose_label
from pipeline.config.label import LabelConfig
from pipeline.core.ids import content_id, shard_name
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import InputRow, Problem, RowLocation, Totals
from pipeline.estimators.pooled.learning import TABLE as KERNELS
from pipeline.runtime.driver import label_held
from pipeline.runtime.sampling import LOW
from pipeline.runtime.state import identity
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker import LearnedState, Receipt, Snapshot, UnitTask
from pipeline.runtime.worker_handle import WorkerLocation, WorkerPool
from pipeline.storage.commits import INPUT, UNIT, Commit, CommitState, publish
from pipeline.storage.editions import LABELS
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import STAGED_INPUT, claim
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage, sha256_of
from pipeline.storage.units import write_units
from tests.bench.scale.run import CALL_SECONDS, CAPACITY, QuickDisk, on_a_virtual_clock

ROLLOUTS_PER_UNIT = 1_700
"""Of 32 problems with a chain of ten steps each: `fixed` takes 2,500, `pooled` a thousand."""
UNIT_SECONDS = 5.0
"""What a virtual H100 with a policy of 7B takes for as many, at 2.9 ms each."""
UNITS_PER_FILE = 32
START_SECONDS = 60.0
VARIATION = 0.2
"""Standard deviation of the logarithm of what units take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """Seconds of the driver before it has workers, while they label, and behind that, where it reads all records."""

    before: float
    labelling: float
    behind: float

    @property
    def all(self) -> float:
        return self.before + self.labelling + self.behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """A run of `units` units on `replicas` workers, labelled in `seconds` of the virtual clock, where the engines had
    `busy_seconds` of work each. `messages` are calls of workers. `grown_mib`: how much more memory the
    driver took at its most than before it began."""

    units: int
    replicas: int
    seconds: float
    busy_seconds: float
    cpu: Cpu
    messages: int
    grown_mib: float

    @property
    def rollouts(self) -> int:
        return self.units * ROLLOUTS_PER_UNIT

    @property
    def idle(self) -> float:
        """Share of the labelling time that engines had nothing to do."""
        return 1 - self.busy_seconds / self.seconds


@dataclass(slots=True)
class _Outside:
    """What the workers live through: the calls they got, the work of their engines, and the units they are done with."""

    messages: int = 0
    busy_seconds: float = 0.0
    done: list[UnitTask] = field(default_factory=list)


def live(units: int, replicas: int, unit_seconds: float = UNIT_SECONDS) -> Lived:
    """A run in which an engine takes `unit_seconds` for a unit, on average. For a process of its own, because of its memory."""
    before = _peak_mib()
    with tempfile.TemporaryDirectory(prefix="stepvalue-scale-") as folder:
        storage = LocalStorage(Path(folder) / "run", QuickDisk())
        config = compose_label(["data.path=none", f"run_dir={storage.run_dir}", "policy=oracle"])
        run_identity = identity(config, "no input")
        claim(storage, run_identity)
        _stage(storage, str(run_identity[STAGED_INPUT]), units)
        outside = _Outside()
        clock = [time.process_time()]

        @contextmanager
        def hiring(_config: LabelConfig) -> Iterator[WorkerPool]:
            numbers = iter(range(sys.maxsize))
            yield WorkerPool(
                hire=lambda _attempt: _SimulatedWorker(outside, unit_seconds, Random(next(numbers))), workers=replicas
            )

        def run(work: Coroutine[Any, Any, None]) -> None:
            clock.append(time.process_time())
            on_a_virtual_clock(work)
            clock.append(time.process_time())
            for task in outside.done:
                publish(storage, _whole(task))
            clock.append(time.process_time())

        summary = label_held(config, storage, run_identity, hiring, lambda _: None, StopSignal(), run=run)
        clock.append(time.process_time())
    began, first, last, recorded, ended = clock
    return Lived(
        units=units,
        replicas=replicas,
        seconds=summary.seconds_labelling,
        busy_seconds=outside.busy_seconds / replicas,
        cpu=Cpu(before=first - began, labelling=last - first, behind=ended - recorded),
        messages=outside.messages,
        grown_mib=_peak_mib() - before,
    )


class _SimulatedWorker:
    """A worker whose engine does units one after the other; implements `worker_handle.Hand`."""

    def __init__(self, outside: _Outside, unit_seconds: float, random: Random) -> None:
        self._outside = outside
        self._unit_seconds = unit_seconds
        self._random = random
        self._free_at = 0.0
        self._begun = 0
        self._done = 0

    async def location(self) -> WorkerLocation:
        return WorkerLocation()

    async def fetch(self) -> None:
        return

    async def start(self) -> str:
        self._outside.messages += 1
        await asyncio.sleep(START_SECONDS)
        return "simulated"

    async def wait_for_capacity(self, begun: int) -> None:
        self._outside.messages += 1
        enough = CALL_SECONDS + self._unit_seconds * (1 + LOW) * CAPACITY / ROLLOUTS_PER_UNIT
        await asyncio.sleep(max(CALL_SECONDS, self._free_at - asyncio.get_running_loop().time() - enough))

    async def finish_unit(self, task: UnitTask) -> Receipt:
        self._outside.messages += 1
        self._begun += 1
        now = asyncio.get_running_loop().time()
        seconds = self._unit_seconds * self._random.lognormvariate(-VARIATION * VARIATION / 2, VARIATION)
        self._outside.busy_seconds += seconds
        self._free_at = max(now + CALL_SECONDS, self._free_at) + seconds
        await asyncio.sleep(self._free_at - now + CALL_SECONDS)
        self._done += 1
        self._outside.done.append(task)
        learned = LearnedState(shard=_shard(KERNELS, task.unit.unit_id), chains=_learned_from(task))
        return Receipt(unit_id=task.unit.unit_id, whole=True, learned=learned)

    async def missing_requests(self, task: UnitTask) -> list[str]:
        return []

    async def snapshot(self) -> Snapshot:
        self._outside.messages += 1
        rollouts = ROLLOUTS_PER_UNIT * self._done
        return Snapshot(
            begun=self._begun,
            planned=ROLLOUTS_PER_UNIT * self._begun,
            rollouts=rollouts,
            tokens=rollouts,
            work=EngineWork(generated=rollouts),
            load=Load(running=1024, waiting=ROLLOUTS_PER_UNIT * (self._begun - self._done)),
        )

    async def drain(self) -> None:
        self._outside.messages += 1

    async def stop(self) -> None:
        self._outside.messages += 1

    def kill(self) -> None:
        return


def _whole(task: UnitTask) -> Commit:
    """The record that a worker would have published before its receipt."""
    unit_id = task.unit.unit_id
    return Commit(
        kind=UNIT,
        sequence_id=unit_id,
        number=0,
        state=CommitState.WHOLE,
        shards=tuple(_shard(table, unit_id) for table in ("rollouts", LABELS, KERNELS)),
        totals=Totals(problems=32, chains=32, prefixes=320, rollouts=ROLLOUTS_PER_UNIT, tokens=ROLLOUTS_PER_UNIT),
        unit_target=task.unit_target,
        base=(task.learned.shard,) if task.learned else (),
        learned_from=_learned_from(task),
    )


def _learned_from(task: UnitTask) -> int:
    return 32 + (task.learned.chains if task.learned else 0)


def _shard(table: str, unit_id: str) -> ShardRecord:
    part, digest = content_id(table, unit_id), sha256_of(unit_id.encode())
    return ShardRecord(table=table, file=f"{table}/{shard_name(table, part, digest)}", sha256=digest, rows=1)


def _stage(storage: Storage, input_id: str, units: int) -> None:
    """As many units as asked for, of a row each: the driver never sees more of them than their ids."""
    rows = [[_row(number)] for number in range(units)]
    files = [rows[start : start + UNITS_PER_FILE] for start in range(0, units, UNITS_PER_FILE)]
    shards = [write_units(storage, content_id("inputs", str(number)), file) for number, file in enumerate(files)]
    publish(storage, Commit(kind=INPUT, sequence_id=input_id, number=0, state=CommitState.WHOLE, shards=tuple(shards)))


def _row(number: int) -> InputRow:
    problem = Problem(problem_id=content_id("problem", str(number)), text=f"Sum {number}.", golds=("1",))
    return InputRow(location=RowLocation(file="none", line=number), source_id=None, problem=problem, solution=None)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
