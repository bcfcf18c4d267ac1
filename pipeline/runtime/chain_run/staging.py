"""The staged chains of a run over chains: units of chains on disk, before any engine starts.

A temporary SQLite file keeps which chains there are, so memory does not grow with their number. A chain that repeats another
one is used once. A later start may have more chains, as from a run that has gone on: they make new units, and nothing that is
done is done again.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count

import pyarrow as pa

from pipeline.core.errors import RunConflict, StoreError, other_job
from pipeline.core.ids import content_id
from pipeline.core.records import Reject, RejectReason, RowLocation, Totals
from pipeline.runtime.chain_run.chains import ChainSource, LeftOutRows, values
from pipeline.runtime.intake import RejectFiles
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    CommitState,
    publish,
    record_sequence,
    resolve,
    sequence_lengths,
)
from pipeline.storage.repair import repair
from pipeline.storage.run_record import STAGED_INPUT, has_input, settings_copy, with_input
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.temporary import temporary_folder
from pipeline.storage.units import CHAINS, units_of, write_chains

UNITS_PER_FILE = 4
"""For each unit, a worker reads and verifies the whole file."""
MOST_CHAINS = 1024
"""Chains of a unit, also where its problems have more."""
_SCHEMA = """
PRAGMA synchronous=OFF;
PRAGMA journal_mode=OFF;
CREATE TABLE chains (chain_id TEXT PRIMARY KEY, staged INTEGER, seen INTEGER) WITHOUT ROWID;
"""


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
    staged_id = str(run_identity[STAGED_INPUT])
    found, damaged = repair(storage, record_sequence(storage, INPUT, staged_id))
    known = resolve(found).whole
    if known is not None and has_input(known.settings, run_identity, asked):
        return known, damaged
    staging = _Staging(storage, staged_id, source, unit_problems, () if known is None else known.shards, check)
    shards, totals = staging.staged()
    commit = Commit(
        kind=INPUT,
        sequence_id=staged_id,
        number=found.length,
        state=CommitState.WHOLE,
        shards=(*(known.shards if known else ()), *shards),
        totals=totals,
        settings=settings_copy(run_identity if known is None else with_input(run_identity, asked)),
    )
    _refuse_other_units(storage, commit)
    if publish(storage, commit):
        return commit, damaged
    raced = resolve(record_sequence(storage, INPUT, staged_id)).whole
    if raced is None or raced.settings != commit.settings:
        raise other_job(storage.run_dir)
    return raced, damaged


class _Staging:
    """Writes the chains that are not in the files `staged` yet."""

    def __init__(
        self,
        storage: Storage,
        staged_id: str,
        source: ChainSource,
        unit_problems: int,
        staged: Iterable[ShardRecord],
        check: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._id = staged_id
        self._source = source
        self._unit_problems = unit_problems
        self._staged = [shard for shard in staged if shard.table == CHAINS]
        self._check = check

    def staged(self) -> tuple[list[ShardRecord], Totals]:
        """The new files, and the counts of all rows of the present input."""
        first = LeftOutRows()
        rejects = RejectFiles(self._storage, content_id(self._id, str(len(self._staged))))
        both = _Both(first, rejects)
        with _database() as database:
            known = self._known(database)
            shards = list(self._written(self._new(database, both), known))
            vanished = database.execute("SELECT chain_id FROM chains WHERE seen = 0 LIMIT 1").fetchone()
            if vanished:
                noun = self._source.noun
                raise RunConflict(
                    f"{self._storage.run_dir} has {self._source.results} of other {noun}s: {noun} {vanished[0]} is not in the "
                    f"input any more; choose {self._source.elsewhere}, or give the input of before with more {noun}s"
                )
            chains = int(database.execute("SELECT COUNT(*) FROM chains").fetchone()[0])
        self._source.refuse_none(chains, first)
        rejects.flush()
        return [*shards, *rejects.shards], Totals(rows=chains + rejects.count, used=chains, rejected=rejects.count)

    def _known(self, database: sqlite3.Connection) -> int:
        """Note the chains that are staged already. Returns the number of the next row."""
        for shard in self._staged:
            ids = read_shard(self._storage, shard, ["chain_id"])["chain_id"].to_pylist()
            database.executemany("INSERT INTO chains VALUES (?, 1, 0)", ((each,) for each in ids))
        return int(database.execute("SELECT COUNT(*) FROM chains").fetchone()[0])

    def _new(self, database: sqlite3.Connection, rejects: "_Both") -> Iterator[pa.Table]:
        for block in self._source.tables(rejects):
            self._check()
            fresh = []
            for chain, row in zip(values(block, "chain_id"), values(block, "row"), strict=True):
                added = database.execute("INSERT OR IGNORE INTO chains VALUES (?, 0, 1)", (chain,)).rowcount
                again = (
                    not added
                    and not database.execute(
                        "UPDATE chains SET seen = 1 WHERE chain_id = ? AND seen = 0", (chain,)
                    ).rowcount
                )
                if again:
                    rejects.add(_repeated(self._source, chain, row))
                fresh.append(bool(added))
            yield block.filter(pa.array(fresh, pa.bool_()))

    def _written(self, blocks: Iterable[pa.Table], first_row: int) -> Iterator[ShardRecord]:
        """Cut chains into units, number their rows, and write them."""
        rows = count(first_row)
        waiting: dict[str, pa.Table] = {}
        file = count(len(self._staged))
        for unit in _units(blocks, self._unit_problems):
            numbers = pa.array([next(rows) for _ in range(unit.num_rows)], pa.int64())
            unit = unit.set_column(0, unit.schema.field(0), numbers)
            waiting[content_id(self._source.done, *values(unit, "chain_id"))] = unit
            if len(waiting) == UNITS_PER_FILE:
                yield write_chains(self._storage, self._file_id(next(file)), waiting)
                waiting = {}
        if waiting:
            yield write_chains(self._storage, self._file_id(next(file)), waiting)

    def _file_id(self, number: int) -> str:
        return content_id("chains", self._id, str(number))


class _Both:
    """Takes rejects for the message of an empty input, and for their files."""

    def __init__(self, first: LeftOutRows, files: RejectFiles) -> None:
        self._first = first
        self._files = files

    def add(self, reject: Reject) -> None:
        self._first.add(reject)
        self._files.add(reject)


def _repeated(source: ChainSource, chain_id: str, row: int) -> Reject:
    return Reject(
        location=RowLocation(file=source.place, line=row + 1),
        reason=RejectReason.DUPLICATE,
        detail=f"an earlier row has the same {source.noun} {chain_id}; that row is {source.done}",
        source_id=None,
    )


def _units(blocks: Iterable[pa.Table], problems: int) -> Iterator[pa.Table]:
    """Chains cut into units, after `problems` problems or MOST_CHAINS chains."""
    waiting: list[pa.Table] = []
    held = rows = 0
    last: object = None
    for block in blocks:
        begin = 0
        for at, problem in enumerate(values(block, "problem_id")):
            if (problem != last and held == problems) or rows == MOST_CHAINS:
                yield pa.concat_tables([*waiting, block.slice(begin, at - begin)]).combine_chunks()
                waiting, begin, held, rows, last = [], at, 0, 0, None
            held += problem != last
            last = problem
            rows += 1
        waiting.append(block.slice(begin))
    if rows:
        yield pa.concat_tables(waiting).combine_chunks()


def _refuse_other_units(storage: Storage, staged: Commit) -> None:
    """Raise StoreError where units were begun that the staged chains do not have."""
    begun = sequence_lengths(storage, UNIT).keys()
    if begun and not begun <= {unit.unit_id for unit in units_of(storage, staged)}:
        raise StoreError(
            f"a file in {storage.run_dir}/chains is damaged, and the chains are not those from which it was made: give the "
            "input in the earlier order, or restore the file from a copy"
        )


@contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    with temporary_folder("stepvalue-chains-") as folder:
        database = sqlite3.connect(folder / "chains.sqlite", isolation_level=None)
        try:
            database.executescript(f"{_SCHEMA} BEGIN;")
            yield database
        finally:
            database.close()
