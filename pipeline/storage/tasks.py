"""The kinds of run of installed plug-ins, by the name of their command, their folders, and the counts of their rows."""

from typing import TYPE_CHECKING, Any

from pipeline.core.records import Tally
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.storage.stored_run import RunFolder, StoredTask

TASKS: Registry[Any] = Registry(
    "tasks", noun="task", setting="command", ours={}, needs=("settings", "summary", "examples", "table", "rows")
)
"""See `runtime.chain_run.rows`."""


def task_runs(name: str) -> "RunFolder[StoredTask]":
    """Where the rows of a task are in a run directory."""
    from pipeline.storage.stored_run import RunFolder, StoredTask

    return RunFolder(noun="task", folder=name, command=name, kind=StoredTask)


def row_tally(rows: "pa.Table") -> Tally:
    """The counts of a task's `results`, which are its rows, and of the `chains` that have some. An input counts `rows`."""
    return Tally(chains=len(set(rows["row"].to_pylist())), results=rows.num_rows)
