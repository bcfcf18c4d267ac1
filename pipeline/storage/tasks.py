"""The kinds of run of installed plug-ins, by the name of their command, their folders, and the counts of their rows."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipeline.core.errors import UsageError
from pipeline.core.records import Tally
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.core.table import Table
    from pipeline.storage.stored_run import RunFolder, StoredTask

_NAME = re.compile(r"[a-z][a-z0-9_]*")
OURS = frozenset({
    "agree", "audit", "calibrate", "chains", "check", "doctor", "export", "grade", "grow", "judge", "label", "plan", "regrade",
    "relabel", "report", "score", "search", "select", "status", "train",
})  # fmt: skip
"""The names of commands, which no task may take."""


class _Tasks(Registry[Any]):
    def usable(self) -> dict[str, Any]:
        """The classes by name, without those that cannot be used."""
        found = {}
        for name in self.names():
            with suppress(UsageError):
                found[name] = self.load(name)
        return found

    def settings(self, name: str) -> Any:
        return self.load(name).settings

    def _load(self, name: str) -> Any:
        task = super()._load(name)
        for fault in _faults(name, task):
            raise UsageError(f"{self.noun} {name} of {self.plugin(name)} cannot be used: {fault}")
        return task


TASKS = _Tasks(
    "tasks", noun="task", setting="command", ours={}, needs=("name", "settings", "summary", "examples", "table", "rows")
)
"""See `runtime.chain_run.rows`."""


def task_runs(name: str) -> "RunFolder[StoredTask]":
    """Where the rows of a task are in a run directory."""
    from pipeline.storage.stored_run import RunFolder, StoredTask

    return RunFolder(noun="task", folder=name, command=name, kind=StoredTask)


def row_tally(rows: "pa.Table", chains: int | None = None) -> Tally:
    """The counts of a task's `results`, which are its rows, and of its `chains`; None: those that have rows. (An input counts
    `rows`.)"""
    return Tally(chains=len(set(rows["row"].to_pylist())) if chains is None else chains, results=rows.num_rows)


def _faults(name: str, task: Any) -> Iterator[str]:
    """What is wrong with a class that an entry point names."""
    from pipeline.config.task import TaskConfig
    from pipeline.core.table import FOLDERS, TABLES, Table

    table, settings = task.table, task.settings
    if not isinstance(task, type) or getattr(task, "name", "") != name:
        yield f"it is no class with the name {name}"
    if _NAME.fullmatch(name) is None or name in TABLES.keys() | FOLDERS | OURS:
        yield "its name is not one of letters a to z, digits and _, or is that of another folder of a run or of a command"
    if not (isinstance(settings, type) and issubclass(settings, TaskConfig)):
        yield "its settings are no class derived from TaskConfig"
    else:
        try:
            settings(run_dir="out")
        except Exception as error:  # noqa: BLE001  a class of somebody else may raise anything
            yield f"its settings cannot be made: {type(error).__name__}: {error}"
    if not isinstance(task.summary, str) or not task.summary.isprintable() or isinstance(task.examples, str):
        yield "its summary is no line of text, or its examples are no sequence of texts"
    if not isinstance(table, Table):
        yield "its table is no Table"
    elif table.key[:1] != ("row",) or not _says_whose(table):
        yield "its table has no key that begins with `row`, or lacks the integers `row` or the texts `chain_id`"


def _says_whose(table: "Table[Any]") -> bool:
    import pyarrow.types as pt

    types = {field.name: field.type for field in table.schema}
    return {"row", "chain_id"} <= types.keys() and pt.is_integer(types["row"]) and pt.is_string(types["chain_id"])
