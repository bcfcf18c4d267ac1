"""A kind of run in one class: a function of a chain gives rows of one table. All else follows.

A distribution offers it as an entry point of `stepvalue.tasks`. Its command, with resume, progress and `--estimate`, its call
from Python, and its audit are there then. `tests/plugin/count_tokens.py` is one.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from threading import Thread
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa

from pipeline.config.fields import identity_settings
from pipeline.config.recorded_settings import flatten_settings
from pipeline.config.task import TaskConfig
from pipeline.core.errors import PluginError
from pipeline.core.progress import Summary
from pipeline.core.records import ChainText, Tally
from pipeline.core.table import Table
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.chain_task import ChainTask, values
from pipeline.runtime.chain_run.worker import ChainLog, ChainWork, side_by_side
from pipeline.runtime.unit_log import Finished
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import OTHER_RUN
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
        """The rows of a chain, whose number in the run is `row`. Called from several threads. Rows of another chain or of one
        key, and what it raises, end the run with a message that names the plug-in and the chain. After a crash, a chain without
        rows is done again if its unit was not finished: give it a row where that is dear."""
        ...

    @classmethod
    def faults(cls, chain: ChainText, rows: Sequence[Any]) -> Iterator[str]:
        """What is wrong with the rows that are stored for a chain, for `audit`."""
        return iter(())

    def lines(self, found: Summary) -> Iterator[str]:
        """What is printed at the end."""
        yield f"{self.name}: {found.tally['results']:,} rows of {found.tally['chains']:,} chains: {found.run_dir}"

    @property
    def names(self) -> Mapping[str, str]:
        return {OTHER_RUN: f"has {self.results} that were made otherwise: move that folder away to do it again"}

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

    def work(self, around: Surroundings) -> ChainWork[pa.Table]:
        return _Rows(self, around.cpus)


class _Rows(ChainWork[pa.Table]):
    """Calls a task's function for many chains, in as many threads as there are processors. A result is a table."""

    def __init__(self, task: RowsTask[Any], cpus: int) -> None:
        self._task = task
        self.table = task.table
        self._cpus = cpus
        self._free = asyncio.Semaphore(cpus)

    async def fetch(self) -> None:
        return

    async def load(self) -> tuple[str, int]:
        return self._task.name, self._cpus * CHAINS_PER_CORE

    def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, pa.Table], None]:
        return side_by_side(chains, self._of_chain)

    def failed(self, chain: ChainText) -> pa.Table:
        raise PluginError(
            f"task {self._task.name} of {TASKS.plugin(self._task.name)} kills workers at chain {chain.chain_id}: mend it"
        )

    def rows(self, chains: pa.Table, results: Sequence[pa.Table]) -> pa.Table:
        return pa.concat_tables([self.table.to_table([]), *results])

    def tally(self, rows: pa.Table) -> Tally:
        return row_tally(rows)

    def finished(self, log: ChainLog[pa.Table]) -> Finished:
        results = [*log.files.rows(self.table.name), *(rows for _, rows in log.results.new.values())]
        return replace(super().finished(log), tally=row_tally(self.rows(log.chains, results), log.chains.num_rows))

    async def close(self) -> None:
        return

    async def _of_chain(self, row: int, chain: ChainText) -> pa.Table:
        rows: Future[pa.Table] = Future()

        def work() -> None:
            with suppress(InvalidStateError):  # nobody waits any more
                try:
                    rows.set_result(self._rows(row, chain))
                except BaseException as error:  # noqa: BLE001  whoever waits gets it
                    rows.set_exception(error)

        async with self._free:
            # The end of a process waits for the threads of an executor, however long they work.
            Thread(target=work, name=self._task.name, daemon=True).start()
            return await asyncio.wrap_future(rows)

    def _rows(self, row: int, chain: ChainText) -> pa.Table:
        with TASKS.blame(self._task.name, f"rows of chain {chain.chain_id}"):
            records = [*self._task.rows(row, chain)]
            rows = self.table.to_table(records)
            for fault in _faults(self.table, records, rows, (row, chain.chain_id)):
                raise ValueError(fault)
        return rows


def _faults(table: Table[Any], records: Sequence[Any], rows: pa.Table, own: tuple[int, str]) -> Iterator[str]:
    """What is wrong with the rows of a chain. `own`: its row and its id."""
    for field in rows.schema:
        if rows[field.name].null_count and not field.nullable:
            yield f"{field.name} is None"
        if not all(_whole(field.type, getattr(each, field.name, None)) for each in records):
            yield f"{field.name} is no whole number"
    for whose in zip(values(rows, "row"), values(rows, "chain_id"), strict=True):
        if whose != own:
            yield f"a row has row={whose[0]} and chain_id={whose[1]!r}, but the chain is row {own[0]}"
    keys = table.keys(rows)
    if len(set(keys)) < len(keys):
        yield f"two rows have the same {', '.join(table.key)}"


def _whole(kind: pa.DataType, value: Any) -> bool:
    """Whether a value has whole numbers where its column has. Arrow makes 1 of 1.5."""
    if pa.types.is_list(kind):
        return all(_whole(kind.value_type, each) for each in value or ())
    return not (pa.types.is_integer(kind) and isinstance(value, float))
