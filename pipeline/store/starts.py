"""What each start of `label` tells of itself in the run directory: what it does, and how that went so far.

Told, and never read back by `label`: a run is the same without it. A file per start, replaced as it goes on, so that readers on
any machine see how old the last sign of life is.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import Absent
from pipeline.ids import record_name, record_parts
from pipeline.progress import Load, Status, Verdicts
from pipeline.store.storage import Storage

FOLDER = "starts"
REPORT = "report.html"
PLAN = "plan.json"
TRACKED = "tracked"
TOLD = (FOLDER, REPORT, PLAN, TRACKED)
"""What lies in a run directory for people: the starts, the last report, the plan that limits the run, and what
`run.track` draws from."""
_KIND = "start"


class Sample(NamedTuple):
    """What a start had come to after so many seconds of the wall clock, and its load then."""

    seconds: float
    units_done: int
    prefixes_decided: int
    rollouts: int
    tokens: int
    running: int
    waiting: int
    grading: int
    workers: int
    device_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of `label`. Times are seconds since 1970, UTC, by its machine's clock.

    `process` tells the process among all of this boot of its machine (see `this_process`); `at` is its last sign of life.
    `ended` is empty while it works, else `done`, `interrupted` or `failed`, for the reason in `message`. `price`: of a device
    for an hour. `policy`, `estimator`: for people. `units_before`, `rollouts_before` and `tokens_before` are what earlier
    starts had committed.
    """

    start_id: str
    host: str
    pid: int
    process: str
    began_at: float
    at: float
    ended: str = ""
    message: str = ""
    price: float | None = None
    rollouts_before: int = 0
    tokens_before: int = 0
    status: Status
    samples: tuple[Sample, ...] = field(default=())


def write_start(storage: Storage, start: Start) -> None:
    """Put it in the place of what it told before. Raises StoreError."""
    data = json.dumps(asdict(start), ensure_ascii=False).encode("utf-8", "replace")
    storage.replace(f"{FOLDER}/{record_name(_KIND, start.start_id, 0)}", data)


def read_starts(storage: Storage) -> list[Start]:
    """All starts that can be read, the earliest first; a file that is damaged tells nothing."""
    return sorted(_readable(storage), key=lambda start: (start.began_at, start.start_id))


def _readable(storage: Storage) -> Iterator[Start]:
    for name in storage.names(FOLDER):
        parts = record_parts(name.removeprefix(f"{FOLDER}/"))
        if parts and parts[0] == _KIND:
            with suppress(Absent, ValueError, KeyError, TypeError):
                yield _decoded(storage.read(name))


def _decoded(data: bytes) -> Start:
    values: dict[str, Any] = json.loads(data)
    status = values.pop("status")
    load, verdicts = Load(**status.pop("load")), Verdicts(**status.pop("verdicts"))
    samples = tuple(Sample(*sample) for sample in values.pop("samples"))
    return Start(**values, status=Status(**status, load=load, verdicts=verdicts), samples=samples)


def this_process() -> str:
    """Tells this process from every other that runs or ran on this machine; empty where the system does not say."""
    return process_with(os.getpid())


def process_with(pid: int) -> str:
    """The same of the process that has a number now; empty where there is none."""
    with suppress(OSError, IndexError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        names = Path("/proc/self/ns/pid").readlink()
        # Its name may hold blanks and brackets: fields are counted behind it.
        began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return f"{boot} {names} {pid} {began}"
    return ""
