"""What the audit of a run of a plug-in's task adds.

Each row is of a chain of the run, and has what the task itself knows of its rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, Words
from pipeline.analysis.audit.walk import Run, RunAudit, Tables, Unit
from pipeline.core.errors import PluginError
from pipeline.core.records import Tally
from pipeline.core.tables import CHAINS
from pipeline.storage.run_record import NAME
from pipeline.storage.tasks import TASKS, row_tally, task_runs


def task_audits() -> Mapping[str, type[RunAudit]]:
    """What audits the runs of installed tasks, by command. One that cannot be used is left out."""
    return {name: _audit_of(name, task) for name, task in TASKS.usable().items()}


def _audit_of(name: str, task: Any) -> type[RunAudit]:
    table = task.table.name

    class TaskAudit(RunAudit):
        words = Words(
            command=name,
            settings="task",
            rows=("chain", f" to {task.to_do}, or rejected"),
            results={table: ("row", ", each of a chain of the run")},
            totals="results",
            sound=f"all chains are {task.done}",
        )
        among = task_runs(name)
        check = table
        done = task.done
        elsewhere = "move the folder away and start again"
        source = "the rows have"

        @classmethod
        def begin(cls, run: Run) -> Self | None:
            recorded = (run.settings.get("task.plugin"), run.settings.get("task_version"))
            here = (str(TASKS.plugin(name)), task.version)
            if recorded == here:
                return cls(run)
            was, now = (f"version {version} of {plugin}" for plugin, version in (recorded, here))
            run.ledger.fault(Check.SETTINGS, NAME, f"names {was}, but here is {now}", "install the recorded version")
            return None

        table_tally = staticmethod(row_tally)

        def whole_tally(self, unit: Unit, tables: Tables) -> Tally:
            return Tally(self.tally(tables), chains=unit.rows.num_rows)

        def result_faults(self, chains: pa.Table, results: Sequence[pa.Table]) -> Iterator[str]:
            known = {chain.row: chain for chain in CHAINS.from_table(chains)}
            rows: dict[int, list[Any]] = {row: [] for row in known}
            for record in (record for each in results for record in task.table.from_table(each)):
                if record.row not in known or record.chain_id != known[record.row].chain_id:
                    yield f"a row of chain {record.chain_id} is none of the unit's"
                else:
                    rows[record.row].append(record)
            for row, chain in known.items():
                try:
                    with TASKS.blame(name, "faults"):
                        found = list(task.faults(chain, rows[row]))
                except PluginError as error:
                    found = [f"cannot be audited: {error}"]
                yield from (f"chain {chain.chain_id} {fault}" for fault in found)

    return TaskAudit
