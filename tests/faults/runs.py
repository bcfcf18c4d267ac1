"""Starting, stopping and judging runs: what the tests of faults share.

The oracle engine is a pure function of the request, so what a run must come to is known from a run without any fault.
"""

import contextlib
import functools
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config.label import LabelConfig
from pipeline.storage.commits import UNIT, record_sequences, resolve
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import read_shard
from tests.audit.runs import files as files
from tests.conftest import write_rows
from tests.deadlines import until as until
from tests.faults.local_driver import CONTEXT, Plan, drive
from tests.runtime.growing import Row, chains
from tests.settings import compose_label

FINISH_SECONDS = 60.0
GONE_SECONDS = 10.0
SETTINGS = (
    "policy=lab",
    "estimator=fixed",
    "run.unit_problems=2",
    "run.units_in_flight=2",
    "run.progress_seconds=0.1",
    "run.flush_seconds=0.05",
    "sampling.rollouts=40",  # more per unit than the oracle answers at a time, so that units are flushed in parts
    "sampling.solutions=2",
    "policy.lab.tokens_per_second=80000",
)

MORE = "sampling.rollouts=50"

_COMPOSING = threading.Lock()  # Hydra is not made for threads


@functools.cache
def _composed(settings: tuple[str, ...]) -> LabelConfig:
    return compose_label(["data.path=rows.jsonl", *settings])


def rows(count: int) -> list[Row]:
    """Problems with a right and a wrong chain each, and one without a chain."""
    both = [row for n in range(count) for last in (1, 3) for row in chains(n, last=last)]
    return [*both, {"id": "drawn", "problem": "What is 3 * 7?", "answer": "21"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a run directory holds: the exported labels, the log by rollout id, and ids that the log holds twice."""

    labels: pa.Table
    log: Mapping[str, tuple[object, ...]]
    doubled: Sequence[str]


def found(run_dir: Path) -> Found:
    """Read the labels as people do, and the log through its commit records."""
    files = sorted((run_dir / "labels").glob("*.parquet"))
    labels = pa.concat_tables([pq.read_table(file).cast(_plain(pq.read_schema(file))) for file in files])
    log = logged(run_dir)
    counts = Counter(row[0] for row in log)
    return Found(
        labels=labels.sort_by("chain_id"),
        log={str(row[0]): row for row in log},
        doubled=[str(row_id) for row_id, times in counts.items() if times > 1],
    )


def assert_same(scene: "Scene", reference: Found) -> None:
    """Nothing is lost, doubled or changed."""
    there = found(scene.run_dir)
    assert there.doubled == []
    assert there.log == reference.log
    assert there.labels.equals(reference.labels)


def logged(run_dir: Path) -> list[tuple[object, ...]]:
    """All rows of the rollouts that stand, whole units and parts."""
    storage = LocalStorage(run_dir)
    shards = [
        shard for found in record_sequences(storage, UNIT) for shard in resolve(found).log if shard.table == "rollouts"
    ]
    return [tuple(row.values()) for shard in shards for row in read_shard(storage, shard).to_pylist()]


def committed(run_dir: Path, kind: str = UNIT) -> dict[str, bytes]:
    """The commit records of a kind, by name."""
    return {path.name: path.read_bytes() for path in (run_dir / "commits").glob(f"{kind}-*.json")}


@dataclass(slots=True, kw_only=True)
class Start:
    """A driver under way with its workers."""

    plan: Plan
    process: Any

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    @property
    def output(self) -> str:
        path = self.plan.scratch / "output"
        return path.read_text() if path.exists() else ""

    def wait(self, seconds: float = FINISH_SECONDS) -> int:
        """The exit code, negative for a signal. TimeoutError when it does not end; it is killed then."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.kill()
            raise TimeoutError(f"the driver did not end in {seconds} s:\n{self.output}")
        return int(self.process.exitcode)

    def pids(self, kind: str) -> list[int]:
        """Processes of a kind that the scenario has started so far, the oldest first."""
        path = self.plan.scratch / "pids"
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.split()[1]) for line in lines if line.startswith(kind)]

    def kill(self) -> None:
        """SIGKILL to the driver and its workers, at once; none of them is left, nor what they held."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.join(GONE_SECONDS)
        until(lambda: not alive(of_group(self.pid)), GONE_SECONDS)


@dataclass(slots=True, kw_only=True)
class Scene:
    """A run directory with an input, on which `label` is started again and again."""

    folder: Path
    data: Path
    settings: Sequence[str] = SETTINGS
    starts: list[Start] = field(default_factory=list)

    @property
    def run_dir(self) -> Path:
        return self.folder / "run"

    def committed(self) -> dict[str, bytes]:
        """What is committed of units: the parts, and the whole ones."""
        return committed(self.run_dir)

    def config(self, *overrides: str) -> LabelConfig:
        with _COMPOSING:
            config = _composed((*self.settings, *overrides))
        return replace(config, run_dir=str(self.run_dir), data=replace(config.data, path=str(self.data)))

    def start(self, *overrides: str, **faults: Any) -> Start:
        """Start `label`; `faults` are fields of `Plan`."""
        return self.start_plan(Plan(config=self.config(*overrides), scratch=self.folder, **faults))

    def start_plan(self, plan: Plan) -> Start:
        (self.folder / "summary.json").unlink(missing_ok=True)
        process = CONTEXT.Process(target=drive, args=(plan,))
        process.start()
        self.starts.append(Start(plan=plan, process=process))
        return self.starts[-1]

    def finish(self, *overrides: str, **faults: Any) -> dict[str, Any]:
        """Run to the end, which must be a good one; the summary."""
        start = self.start(*overrides, **faults)
        code = start.wait()
        assert code == 0, f"exit code {code}:\n{start.output}"
        return self.summary()

    def summary(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "summary.json").read_text()))

    def clear_away(self) -> None:
        """End what is left of all starts, stopped processes too."""
        for start in self.starts:
            start.kill()
            for pid in (*start.pids("driver"), *start.pids("worker")):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        assert survivors(self) == []


Scenes = Callable[..., Scene]


def scene(folder: Path, count: int = 5, settings: Sequence[str] = SETTINGS) -> Scene:
    folder.mkdir(parents=True, exist_ok=True)
    return Scene(folder=folder, data=write_rows(folder / "rows.jsonl", rows(count)), settings=settings)


def survivors(scene: Scene, seconds: float = GONE_SECONDS) -> list[int]:
    """Processes of the scene that still run after so long."""
    left: list[int] = []

    def gone() -> bool:
        left[:] = [
            pid for start in scene.starts[-1:] for kind in ("driver", "worker") for pid in alive(start.pids(kind))
        ]
        return not left

    with contextlib.suppress(TimeoutError):
        until(gone, seconds)
    return left


def alive(pids: Sequence[int]) -> list[int]:
    """Those that run; one that is dead and not yet waited for does not."""
    running = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                running.append(pid)
    return running


def of_group(group: int) -> list[int]:
    """Processes of a process group, dead ones too."""
    members = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if int((folder / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                    members.append(int(folder.name))
    return members


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema without dictionaries, whose order depends on a file."""
    return pa.schema(
        [pa.field(each.name, each.type.value_type) if pa.types.is_dictionary(each.type) else each for each in schema]
    )
