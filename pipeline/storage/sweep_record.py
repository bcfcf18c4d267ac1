"""`sweep.json`: the record of a sweep, in the folder that holds the directories of its runs.

The command that sweeps replaces it as it proceeds; `status` reads it. It holds what people look at. The runs themselves lie in
their directories, which nothing here describes.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from pipeline.core.errors import Absent, Damaged, UsageError
from pipeline.storage.storage import Storage

SWEEP_RECORD = "sweep.json"
SWEEP_PAGE = "sweep.html"
_VERSION = 1


class SweepState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What a finished run holds. Steps are those before the end of a chain, by label. `mean_value`: of those that have a value;
    None if none has."""

    chains: int
    rollouts: int
    tokens: int
    good: int
    bad: int
    neutral: int
    uncertain: int
    mean_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptRun:
    """A run of a sweep. `name`: of its directory in the folder of the sweep. `values`: swept setting -> its value.

    `message`: why it failed. `rollouts_of`: the name of the run whose rollouts it uses; empty if it sampled its own.
    `seconds`: how long it took, its engines and its page included, but not the start of Ray, which all runs share; None before
    its end.
    """

    name: str
    values: Mapping[str, str]
    state: SweepState = SweepState.WAITING
    message: str = ""
    rollouts_of: str = ""
    seconds: float | None = None
    figures: RunFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The runs of a sweep in their order. `began_at`: seconds since 1970."""

    runs: tuple[SweptRun, ...]
    began_at: float


def run_path(folder: str, name: str) -> str:
    """The directory of a run in the folder of a sweep."""
    return f"{folder.rstrip('/')}/{name}"


def write_sweep(storage: Storage, sweep: Sweep) -> None:
    """Replace the record. Raises StoreError."""
    storage.replace(
        SWEEP_RECORD, json.dumps(sweep_fields(sweep), indent=1, ensure_ascii=False).encode("utf-8", "replace")
    )


def sweep_fields(sweep: Sweep) -> dict[str, object]:
    """A sweep as a JSON object."""
    return {"version": _VERSION, **asdict(sweep)}


def read_sweep(storage: Storage) -> Sweep | None:
    """The sweep in a folder; None where there is none. Raises Damaged, and StoreError for an unreachable store."""
    try:
        data = storage.read(SWEEP_RECORD)
    except Absent:
        return None
    try:
        return _decoded(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(
            f"{storage.run_dir}/{SWEEP_RECORD} is damaged ({error}): the runs are not affected; start the sweep again, which "
            "writes another one"
        ) from error


def refuse_sweep(storage: Storage, names: list[str]) -> None:
    """Raise UsageError if the folder with these entries is that of a sweep, where a command wants that of a run."""
    if SWEEP_RECORD not in names:
        return
    inside = next((run.name for run in (read_sweep(storage) or Sweep(runs=(), began_at=0)).runs), "NAME")
    raise UsageError(
        f"run_dir={storage.run_dir} is the folder of a sweep, which holds a directory for each of its runs: give one of these, "
        f"such as run_dir={run_path(storage.run_dir, inside)}; `status` shows all of them"
    )


def _decoded(fields: dict[str, Any]) -> Sweep:
    if fields["version"] != _VERSION:
        raise ValueError(f"its version is {fields['version']!r}, and not {_VERSION}")
    return Sweep(runs=tuple(map(_run, fields["runs"])), began_at=float(fields["began_at"]))


def _run(fields: dict[str, Any]) -> SweptRun:
    figures, seconds = fields["figures"], fields["seconds"]
    name = str(fields["name"])
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"{name!r} is no name of a directory")
    return SweptRun(
        name=name,
        values={str(key): str(value) for key, value in fields["values"].items()},
        state=SweepState(fields["state"]),
        message=str(fields["message"]),
        rollouts_of=str(fields["rollouts_of"]),
        seconds=None if seconds is None else float(seconds),
        figures=None if figures is None else _figures(figures),
    )


def _figures(fields: dict[str, Any]) -> RunFigures:
    mean = fields["mean_value"]
    counts = {name: int(value) for name, value in fields.items() if name != "mean_value"}
    return RunFigures(**counts, mean_value=None if mean is None else float(mean))
