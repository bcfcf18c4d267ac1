"""The kinds of run of installed plug-ins, by the name of their command, and the counts of their rows."""

from typing import TYPE_CHECKING, Any

from pipeline.core.records import Tally
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa  # slow to load, and `-h` lists the tasks

TASKS: Registry[Any] = Registry(
    "tasks", noun="task", setting="command", ours={}, needs=("settings", "summary", "examples", "table", "rows")
)
"""See `runtime.chain_run.rows`."""


def row_tally(rows: "pa.Table") -> Tally:
    """The counts of a task's rows, its `results`, and of the `chains` that have some."""
    return Tally(chains=len(set(rows["row"].to_pylist())), results=rows.num_rows)
