"""A run over chains. Its staged input is units of chains on disk, before any engine starts.

A temporary SQLite file keeps which chains there are, so memory does not grow with their number. A chain that repeats another
one is used once. A later start may have more chains, as from a run that has gone on: they make new units, and nothing that is
done is done again.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from pipeline.core.errors import InputError, RunConflict
from pipeline.core.ids import content_id
from pipeline.core.records import ChainText, Reject, RejectReason, RowLocation, Totals
from pipeline.core.table import Table
from pipeline.core.tables import CHAINS, GOLD_ANSWERS, LABELS, TASK_SCHEMA_VERSION
from pipeline.engines.base import OnDevices
from pipeline.runtime.chain_run.task import Config, HeldRun, Task
from pipeline.runtime.intake import LeftOutRows, RejectFiles, batched, cut_units, temporary_tables
from pipeline.runtime.staged_input import refuse_other_units, staged_by
from pipeline.storage.commits import INPUT, Commit, CommitState, RecordSequence
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import COMMAND, STAGED_INPUT, settings_copy, with_input
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_labels import label_shards
from pipeline.storage.stored_run import StoredRun, readable_run
from pipeline.storage.units import write_chains

UNITS_PER_FILE = 4
"""For each unit, a worker reads and verifies the whole file."""
MOST_CHAINS = 1024
"""Chains of a unit, also where its problems have more."""
BLOCK = 1024
"""Rows of files that are read together."""
_SHOWN = ("chain_id", "problem_id", "problem", "steps", "prefix_ids")
"""The columns of chains that everybody may see."""
_SCHEMA = "CREATE TABLE chains (chain_id TEXT PRIMARY KEY, seen INTEGER) WITHOUT ROWID;"


class ChainTask(Task[Config], Protocol[Config]):
    """A run over chains: those of the run of `label` in `run_dir`, unless a task says otherwise.

    `name`: of the command. `to_do` ("score"), `done` ("scored") and `results` ("scores") are words of messages, and `elsewhere`
    says what to choose for other chains ("another out"). `noun`: what a row of the input is. `sample`: chains that an estimate
    tries.
    """

    name: ClassVar[str]
    to_do: ClassVar[str]
    done: ClassVar[str]
    results: ClassVar[str]
    elsewhere: ClassVar[str] = "another run_dir"
    noun: ClassVar[str] = "chain"
    sample: ClassVar[int] = 32

    @property
    def place(self) -> str:
        """Where the chains are, for messages."""
        config: Any = self.config
        return str(config.run_dir)

    @property
    def schema(self) -> pa.Schema:
        """That of the chains of a run of `label`."""
        return CHAINS.schema

    def chains(self, left_out: LeftOutRows) -> Iterator[pa.Table]:
        """The chains in order, in blocks of `tables.CHAINS` or `CHAINS_WITH_ANSWERS`. `left_out` gets the rows that cannot be
        used. Raises UsageError, StoreError and InputError for what cannot be read, and for an unfinished run of `label`, unless
        the settings want a part."""
        schema, number = self.schema, 0
        for frame in self._labelled().frames(LABELS, [name for name in schema.names if name != "row"]):
            rows = pa.array(range(number, number + frame.height), pa.int64())
            number += frame.height
            yield frame.to_arrow().add_column(0, "row", rows).select(schema.names).cast(schema)

    def chains_identity(self) -> dict[str, object]:
        """What the chains add to the identity of the run. Raises as `chains` does."""
        run = self._labelled()
        labels = [shard.sha256 for shard in label_shards(run)]
        return {"source": run.identity[STAGED_INPUT], "input": content_id("labels", *labels)}

    def _labelled(self) -> StoredRun:
        config: Any = self.config
        return readable_run(storage_at(self.place), partial=config.partial)

    def determines(self) -> dict[str, object]:
        """What else determines the result, as dotted key -> plain value. Raises UsageError for a missing model folder."""
        ...

    def identity(self) -> dict[str, object]:
        fields: dict[str, object] = {
            COMMAND: self.name,
            "schema": TASK_SCHEMA_VERSION,
            **self.determines(),
            **self.chains_identity(),
        }
        return {**fields, STAGED_INPUT: content_id(f"{self.noun}s", json.dumps(fields, sort_keys=True))}

    def refuse_none(self, chains: int, left_out: LeftOutRows) -> None:
        """Raise InputError if there is no chain."""
        if not chains:
            first = f"; the first of {left_out.rows:,} rows: {left_out.first}" if left_out.rows else ""
            raise InputError(f"{self.place} holds no {self.noun} to {self.to_do}{first}")

    def model(self) -> OnDevices:
        return NoDevice()

    def staged(self, held: HeldRun) -> Commit:
        storage = held.storage

        def made(found: RecordSequence, known: Commit | None) -> Commit:
            before = known.shards if known else ()
            shards, totals = _staged(storage, self, found.sequence_id, before, held.stop.check)
            commit = Commit(
                kind=INPUT,
                sequence_id=found.sequence_id,
                number=found.length,
                state=CommitState.WHOLE,
                shards=(*before, *shards),
                tally=totals.tally,
                settings=settings_copy(with_input(held.identity, held.asked)),
            )
            fault = "chains is damaged, and the chains are not those from which it was made: give the input"
            refuse_other_units(storage, commit, fault)
            return commit

        return staged_by(made, held)


class NoDevice(OnDevices):
    """What workers need that compute without a GPU: all processors of their part of a machine, as a model on them does."""

    loads_model = True

    def uses_gpus(self) -> bool:
        return False

    async def fetch(self) -> None:
        return


def _staged(
    storage: Storage,
    task: ChainTask[Any],
    staged_id: str,
    before: Iterable[ShardRecord],
    check: Callable[[], None],
) -> tuple[list[ShardRecord], Totals]:
    """Write the chains that are not in the files `before` yet: the new files, and the counts of the present input."""
    earlier = [shard for shard in before if shard.table == CHAINS.name]
    rejects = RejectFiles(storage, content_id(staged_id, str(len(earlier))))
    shards = []
    with temporary_tables(_SCHEMA) as database:
        for shard in earlier:
            ids = values(read_shard(storage, shard, ["chain_id"]), "chain_id")
            database.executemany("INSERT INTO chains VALUES (?, 0)", zip(ids, strict=True))
        row = sum(shard.rows for shard in earlier)
        units = cut_units(_new(database, task, rejects, check), task.config.run.unit_problems, MOST_CHAINS)
        for number, together in enumerate(batched(units, UNITS_PER_FILE), len(earlier)):
            tables = {}
            for chains in together:
                unit = pa.concat_tables(chains).combine_chunks()
                numbers = pa.array(range(row, row + unit.num_rows), pa.int64())
                row += unit.num_rows
                tables[content_id(task.done, *values(unit, "chain_id"))] = unit.set_column(
                    0, unit.schema.field(0), numbers
                )
            shards.append(write_chains(storage, content_id("chains", staged_id, str(number)), tables))
        vanished = database.execute("SELECT chain_id FROM chains WHERE seen = 0 LIMIT 1").fetchone()
    if vanished:
        raise RunConflict(
            f"{storage.run_dir} has {task.results} of other {task.noun}s: {task.noun} {vanished[0]} is not in the input "
            f"any more; choose {task.elsewhere}, or give the input of before with more {task.noun}s"
        )
    task.refuse_none(row, rejects)
    rejects.flush()
    return [*shards, *rejects.shards], Totals(rows=row + rejects.rows, used=row, rejected=rejects.rows)


def _new(
    database: sqlite3.Connection, task: ChainTask[Any], rejects: RejectFiles, check: Callable[[], None]
) -> Iterator[tuple[str, pa.Table]]:
    """The chains that are not staged yet, one by one, with their problems."""
    for block in task.chains(rejects):
        check()
        columns = (values(block, name) for name in ("chain_id", "problem_id", "row"))
        for at, (chain, problem, row) in enumerate(zip(*columns, strict=True)):
            if database.execute("INSERT OR IGNORE INTO chains VALUES (?, 1)", (chain,)).rowcount:
                yield problem, block.slice(at, 1)
            elif not database.execute("UPDATE chains SET seen = 1 WHERE chain_id = ? AND seen = 0", (chain,)).rowcount:
                rejects.add(
                    Reject(
                        location=RowLocation(file=task.place, line=row + 1),
                        reason=RejectReason.DUPLICATE,
                        detail=f"an earlier row has the same {task.noun} {chain}; that row is {task.done}",
                    )
                )


def numbered_rows(chains: Iterator[ChainText], table: Table[ChainText]) -> Iterator[pa.Table]:
    """The chains of files in blocks of a table, with their numbers in the input as `row`."""
    numbered = (replace(chain, row=number) for number, chain in enumerate(chains))
    return map(table.to_table, batched(numbered, BLOCK))


def chain_texts(chains: pa.Table) -> list[ChainText]:
    """What a scorer or a judge gets of chains, with known answers where the table has the column `gold_answers`."""
    shown = [name for name in (*_SHOWN, GOLD_ANSWERS) if name in chains.column_names]
    return CHAINS.from_table(chains.select(shown))


def values(table: pa.Table, name: str) -> list[Any]:
    return table[name].to_pylist()
