"""The kinds of run of installed plug-ins, by the name of their command: see `rows.RowsTask`."""

from typing import Any

from pipeline.core.registry import Registry

TASKS: Registry[Any] = Registry(
    "tasks", noun="task", setting="command", ours={}, needs=("settings", "summary", "examples", "table", "rows")
)
