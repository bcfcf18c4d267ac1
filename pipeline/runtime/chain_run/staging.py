"""The staged chains of a run over chains: units of chains on disk, before any engine starts.

A temporary SQLite file keeps which chains there are, so memory does not grow with their number. A chain that repeats another
one is used once. A later start may have more chains, as from a run that has gone on: they make new units, and nothing that is
done is done again.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from pipeline.core.errors import RunConflict
from pipeline.core.ids import content_id
from pipeline.core.records import Reject, RejectReason, RowLocation, Totals
from pipeline.runtime.chain_run.chains import ChainSource, LeftOutRows, values
from pipeline.runtime.intake import RejectFiles, batched, cut_units, temporary_tables
from pipeline.runtime.staged_input import refuse_other_units, staged_by
from pipeline.storage.commits import INPUT, Commit, CommitState, RecordSequence
from pipeline.storage.run_record import settings_copy, with_input
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import CHAINS, write_chains

UNITS_PER_FILE = 4
"""For each unit, a worker reads and verifies the whole file."""
MOST_CHAINS = 1024
"""Chains of a unit, also where its problems have more."""
_SCHEMA = "CREATE TABLE chains (chain_id TEXT PRIMARY KEY, seen INTEGER) WITHOUT ROWID;"


def staged_chains(
    storage: Storage,
    source: ChainSource,
    unit_problems: int,
    run_identity: Mapping[str, object],
    asked: Mapping[str, object],
    check: Callable[[], None],
) -> tuple[Commit, list[str]]:
    """The record of the staged chains, and the names of its damaged files. `unit_problems`: problems of a unit. `asked`: the
    identity of this start. `check` is called before each block of chains and may raise.

    Raises InputError, RunConflict and StoreError.
    """

    def made(found: RecordSequence, known: Commit | None) -> Commit:
        before = known.shards if known else ()
        shards, totals = _staged(storage, found.sequence_id, source, unit_problems, before, check)
        commit = Commit(
            kind=INPUT,
            sequence_id=found.sequence_id,
            number=found.length,
            state=CommitState.WHOLE,
            shards=(*before, *shards),
            tally=totals.tally,
            settings=settings_copy(with_input(run_identity, asked)),
        )
        fault = "chains is damaged, and the chains are not those from which it was made: give the input"
        refuse_other_units(storage, commit, fault)
        return commit

    return staged_by(made, storage, run_identity, asked)


def _staged(
    storage: Storage,
    staged_id: str,
    source: ChainSource,
    unit_problems: int,
    before: Iterable[ShardRecord],
    check: Callable[[], None],
) -> tuple[list[ShardRecord], Totals]:
    """Write the chains that are not in the files `before` yet: the new files, and the counts of the present input."""
    earlier = [shard for shard in before if shard.table == CHAINS]
    rejects = RejectFiles(storage, content_id(staged_id, str(len(earlier))))
    shards = []
    with temporary_tables(_SCHEMA) as database:
        for shard in earlier:
            ids = values(read_shard(storage, shard, ["chain_id"]), "chain_id")
            database.executemany("INSERT INTO chains VALUES (?, 0)", zip(ids, strict=True))
        row = sum(shard.rows for shard in earlier)
        units = cut_units(_new(database, source, rejects, check), unit_problems, MOST_CHAINS)
        for number, together in enumerate(batched(units, UNITS_PER_FILE), len(earlier)):
            tables = {}
            for chains in together:
                unit = pa.concat_tables(chains).combine_chunks()
                numbers = pa.array(range(row, row + unit.num_rows), pa.int64())
                row += unit.num_rows
                tables[content_id(source.done, *values(unit, "chain_id"))] = unit.set_column(
                    0, unit.schema.field(0), numbers
                )
            shards.append(write_chains(storage, content_id("chains", staged_id, str(number)), tables))
        vanished = database.execute("SELECT chain_id FROM chains WHERE seen = 0 LIMIT 1").fetchone()
    if vanished:
        raise RunConflict(
            f"{storage.run_dir} has {source.results} of other {source.noun}s: {source.noun} {vanished[0]} is not in the input "
            f"any more; choose {source.elsewhere}, or give the input of before with more {source.noun}s"
        )
    source.refuse_none(row, LeftOutRows(rejects.rows, next(iter(rejects.shown.values()), "")))
    rejects.flush()
    return [*shards, *rejects.shards], Totals(rows=row + rejects.rows, used=row, rejected=rejects.rows)


def _new(
    database: sqlite3.Connection, source: ChainSource, rejects: RejectFiles, check: Callable[[], None]
) -> Iterator[tuple[str, pa.Table]]:
    """The chains that are not staged yet, one by one, with their problems."""
    for block in source.tables(rejects):
        check()
        columns = (values(block, name) for name in ("chain_id", "problem_id", "row"))
        for at, (chain, problem, row) in enumerate(zip(*columns, strict=True)):
            if database.execute("INSERT OR IGNORE INTO chains VALUES (?, 1)", (chain,)).rowcount:
                yield problem, block.slice(at, 1)
            elif not database.execute("UPDATE chains SET seen = 1 WHERE chain_id = ? AND seen = 0", (chain,)).rowcount:
                rejects.add(
                    Reject(
                        location=RowLocation(file=source.place, line=row + 1),
                        reason=RejectReason.DUPLICATE,
                        detail=f"an earlier row has the same {source.noun} {chain}; that row is {source.done}",
                    )
                )
