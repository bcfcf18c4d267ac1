"""A status file per start in the run directory: what the start does now, and a bounded number of samples over time.

A run only writes these files, but for the limit of a plan, which counts the hours of earlier starts. Each file is replaced as
the start proceeds, so that a reader on any machine sees the age of the last update.
"""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from pipeline.core.errors import Absent, StoreError
from pipeline.core.ids import ID_DIGITS, record_name, record_parts
from pipeline.core.json_records import record_of
from pipeline.core.progress import SpeedSample, Status
from pipeline.storage.objects import each
from pipeline.storage.storage import Storage

FOLDER = "starts"
REPORT = "report.html"
PLAN = "plan.json"
TRACKED = "tracked"
ADVISORY = (FOLDER, REPORT, PLAN, TRACKED)
"""Entries of a run directory for people: the starts, the last report, the plan that limits the run, and the data of
`run.track`."""
_TREE, _HTML = "tree-", ".html"
READ = 1000
"""Largest number of starts that are read. Of more starts, the last ones are read."""
DONE = "done"
INTERRUPTED = "interrupted"
FAILED = "failed"
LIMITED = "stopped at its limit"
_KIND = "start"
_RANDOM_BYTES = 4
_ENDED = "ZX"
"""States of processes that have ended (zombie, dead)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of `label`. Times are seconds since 1970, UTC, by its machine's clock.

    `settings`: those that the record of the run lacks, by dotted key, so that the run can be repeated.
    `process` identifies the process on its machine (see `this_process`). `at` is the time of the last update.
    `ended` is empty while the start runs, else DONE, INTERRUPTED, LIMITED or FAILED, with the reason in `message`. `price`: of
    one device per hour.
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
    status: Status
    samples: tuple[SpeedSample, ...] = field(default=())
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """The last `READ` starts of a run, the earliest first. `damaged`: names of unreadable files."""

    starts: tuple[Start, ...]
    damaged: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """The cost of all `starts` of a run. `money` leaves out the `unpriced` starts; it is None if none had a price."""

    starts: int
    unpriced: int
    device_hours: float
    money: float | None


def cost_of(starts: Sequence[Start], otherwise: float | None = None) -> RunCost:
    """The cost of the starts of a run, each at its own price. `otherwise`: the price of starts without one."""
    prices = [otherwise if start.price is None else start.price for start in starts]
    costs = [
        start.status.device_hours * price for start, price in zip(starts, prices, strict=True) if price is not None
    ]
    return RunCost(
        starts=len(starts),
        unpriced=sum(start.price is None for start in starts),
        device_hours=sum(start.status.device_hours for start in starts),
        money=sum(costs) if costs else None,
    )


def tree_page(problem_id: str) -> str:
    """The name of the page of a problem's tree in the run directory. A problem_id is a hash, so no text of a data set is in a
    name."""
    return f"{_TREE}{problem_id}{_HTML}"


def is_tree_page(name: str) -> bool:
    """Whether an entry of a run directory is such a page."""
    return name.startswith(_TREE) and name.endswith(_HTML) and name[len(_TREE) : -len(_HTML)].isalnum()


def new_start_id(began_at: float) -> str:
    """A new id. Later starts have greater ids."""
    digits = ID_DIGITS - 2 * _RANDOM_BYTES
    return f"{int(began_at * 1000) % 16**digits:0{digits}x}{secrets.token_hex(_RANDOM_BYTES)}"


def write_start(storage: Storage, start: Start) -> None:
    """Write the file of a start, replacing its earlier content. It states why a start failed, so only its owner may read it.

    Raises StoreError.
    """
    data = json.dumps(asdict(start), ensure_ascii=False).encode("utf-8", "replace")
    storage.replace(f"{FOLDER}/{record_name(_KIND, start.start_id, 0)}", data, private=True)


def read_starts(storage: Storage) -> Starts:
    """Raises StoreError when the directory cannot be read."""
    names = [name for name in storage.names(FOLDER) if _is_start(name.removeprefix(f"{FOLDER}/"))]
    found = list(each(storage, partial(_start, storage), names[-READ:]))
    starts = (start for start in found if isinstance(start, Start))
    return Starts(
        starts=tuple(sorted(starts, key=lambda start: (start.began_at, start.start_id))),
        damaged=tuple(name for name in found if isinstance(name, str)),
    )


def _is_start(name: str) -> bool:
    parts = record_parts(name)
    return parts is not None and parts[0] == _KIND


def _start(storage: Storage, name: str) -> Start | str | None:
    """A start, or the name of a file that is not a valid start or belongs to somebody else. None where the file was removed
    meanwhile."""
    try:
        start: Start = record_of(Start, json.loads(storage.read(name)), name)
        return start
    except Absent:
        return None
    except StoreError as error:
        if isinstance(error.__cause__, PermissionError):
            return name
        raise
    except (ValueError, RecursionError):
        return name


def same_machine(process: str) -> bool:
    """Whether `process` ran in this boot of this machine and in this pid namespace."""
    return bool(process) and process.split()[:2] == this_process().split()[:2]


def this_process() -> str:
    """A unique identity of this process on this machine. Empty where the system does not provide it."""
    return process_with(os.getpid())


def process_with(pid: int) -> str:
    """The identity of the process with this pid now (see `this_process`). Empty where it does not exist or has ended."""
    with suppress(OSError, IndexError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        names = Path("/proc/self/ns/pid").readlink()
        # The name may contain spaces and brackets, so fields are counted after it.
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in _ENDED else f"{boot} {names} {pid} {fields[18]}"
    return ""
