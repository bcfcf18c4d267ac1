"""The kinds of run of installed plug-ins, by the name of their command, and the counts of their rows."""

from typing import Any

import pyarrow as pa

from pipeline.core.records import Totals
from pipeline.core.registry import Registry

TASKS: Registry[Any] = Registry(
    "tasks", noun="task", setting="command", ours={}, needs=("settings", "summary", "examples", "table", "rows")
)
"""See `runtime.chain_run.rows`."""


def row_totals(rows: pa.Table) -> Totals:
    """The counts of a task's rows: `rollouts` are rows, `chains` those with a row."""
    return Totals(chains=len(set(rows["row"].to_pylist())), rollouts=rows.num_rows)
