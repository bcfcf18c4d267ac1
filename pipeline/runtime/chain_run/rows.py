"""A kind of run in one class: a function of a chain gives rows of one table. All else follows.

A distribution offers it as an entry point of `stepvalue.tasks`. Its command, with resume, progress and `--estimate`, its call
from Python, and its audit are there then. `tests/plugin/count_tokens.py` is one.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa

from pipeline.config.fields import identity_settings
from pipeline.config.recorded_settings import flatten_settings
from pipeline.config.task import TaskConfig
from pipeline.core.progress import Summary
from pipeline.core.records import ChainText, Tally
from pipeline.core.table import Table
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.chain_task import ChainTask
from pipeline.runtime.chain_run.worker import ChainWork, side_by_side
from pipeline.storage.location import storage_at
from pipeline.storage.storage import Storage
from pipeline.storage.tasks import TASKS, row_tally, task_runs

CHAINS_PER_CORE = 16
"""Chains that wait for each core: many, because most take milliseconds."""
Config = TypeVar("Config", bound=TaskConfig)


class RowsTask(ChainTask[Config], Protocol[Config]):
    """See the module. The rows go to the folder `NAME` of the run, a run directory of its own.

    `settings`: the class of its settings; all that `TaskConfig` does not have determine the result. `summary` and `examples`:
    for the help of its command. `table`: its key begins with `row`, and its columns `row` and `chain_id` say whose rows they
    are. `version`: another one is another run.
    """

    settings: ClassVar[type[TaskConfig]]
    summary: ClassVar[str]
    examples: ClassVar[Sequence[str]]
    table: ClassVar[Table[Any]]
    version: ClassVar[int] = 1
    to_do: ClassVar[str] = "use"
    done: ClassVar[str] = "used"
    results: ClassVar[str] = "rows"

    def rows(self, row: int, chain: ChainText) -> Sequence[Any]:
        """The rows of a chain, whose number in the run is `row`. Called from several threads. What it raises ends the run, with
        a message that names the plug-in."""
        ...

    @classmethod
    def faults(cls, chain: ChainText, rows: Sequence[Any]) -> Iterator[str]:
        """What is wrong with the rows that are stored for a chain, for `audit`."""
        return iter(())

    def lines(self, found: Summary) -> Iterator[str]:
        """What is printed at the end."""
        yield f"{self.name}: {found.tally['results']:,} rows of {found.tally['chains']:,} chains: {found.run_dir}"

    @property
    def doing(self) -> str:  # type: ignore[override]
        return self.name

    def storage(self) -> Storage:
        return task_runs(self.name).at(storage_at(self.config.run_dir), self.name)

    def determines(self) -> dict[str, object]:
        common = TaskConfig.__dataclass_fields__.keys()
        own = {key: value for key, value in identity_settings(self.config).items() if key not in common}
        plugin = TASKS.plugin(self.name)
        return {
            "task_version": self.version,
            **({} if plugin is None else {"task.plugin": str(plugin)}),
            **flatten_settings(self.name, own),
        }

    def work(self, around: Surroundings) -> "ChainWork[Sequence[Any]]":
        return _Rows(self, around.cpus)


class _Rows(ChainWork[Sequence[Any]]):
    """Calls a task's function for many chains, on all cores."""

    def __init__(self, task: RowsTask[Any], cpus: int) -> None:
        self._task = task
        self.table = task.table
        self._cpus = cpus
        self._threads = ThreadPoolExecutor(cpus, thread_name_prefix=task.name)

    async def fetch(self) -> None:
        return

    async def load(self) -> tuple[str, int]:
        return self._task.name, self._cpus * CHAINS_PER_CORE

    def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, Sequence[Any]], None]:
        return side_by_side(chains, self._of_chain)

    def failed(self, chain: ChainText) -> Sequence[Any]:
        return ()

    def rows(self, chains: pa.Table, results: Sequence[Sequence[Any]]) -> pa.Table:
        return self.table.to_table([row for rows in results for row in rows])

    def tally(self, rows: pa.Table) -> Tally:
        return row_tally(rows)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _of_chain(self, row: int, chain: ChainText) -> Sequence[Any]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._rows, row, chain)

    def _rows(self, row: int, chain: ChainText) -> Sequence[Any]:
        with TASKS.blame(self._task.name, "rows"):
            return self._task.rows(row, chain)
