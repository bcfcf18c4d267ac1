"""Turns input rows into units on disk, before any engine starts.

Rows are streamed. A temporary SQLite file keeps what must be known about all rows (the ids and chains seen so far, the chains
of each problem), so memory does not grow with the input. The result is staged in the run directory: used rows in `inputs/` (one
row group per unit), rejects in `rejects/`. One commit record names both.
"""

import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from pipeline.config.fields import refuse_equal
from pipeline.config.label import DataConfig, RunConfig, SamplingConfig
from pipeline.core.errors import InputError, UsageError
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Problem, Reject, RejectReason, RowLocation, Solution, Totals
from pipeline.core.tables import REJECTS
from pipeline.data.layouts import Extract
from pipeline.data.problems import read_row
from pipeline.data.rows import is_given, read_rows
from pipeline.graders.base import Checker
from pipeline.storage.commits import INPUT, Commit, CommitState
from pipeline.storage.shards import ShardRecord, write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.temporary import temporary_folder
from pipeline.storage.units import content_of, write_units

UNITS_PER_FILE = 32  # for each unit, a worker reads and verifies the whole file
REJECTS_PER_FILE = 50_000
SHOWN_REJECTS = 3

Read = Callable[[Mapping[str, object], RowLocation, DataConfig, Extract], InputRow | Reject]
"""Reads a row of an input, as `read_row` does."""
_Item = TypeVar("_Item")

SCHEMA = """
CREATE TABLE problems (ordinal INTEGER PRIMARY KEY, problem_id TEXT UNIQUE, problem TEXT, golds TEXT, units INTEGER);
CREATE TABLE used (ordinal INTEGER PRIMARY KEY, number INTEGER, content TEXT UNIQUE, seen INTEGER, file TEXT, line INTEGER,
                   source_id TEXT UNIQUE, chain_id TEXT, solution TEXT, ends TEXT, outcome INTEGER);
CREATE INDEX used_number ON used (number);
"""
"""`units`: of the run, with chains of the problem. `seen`: of a row of the run, whether the present input has it."""
ROW = "file, line, source_id, chain_id, solution, ends, outcome, problem_id, problem, golds"
"""The columns of a row."""


def stage(
    storage: Storage,
    input_id: str,
    data: DataConfig,
    run: RunConfig,
    checker: Checker,
    check: Callable[[], None] = lambda: None,
) -> Commit:
    """Read the whole input and stage its units and rejects. `check` is called before each row and may raise. Returns the first
    record of the input, without settings and not published.

    Raises InputError if no row can be used.
    """
    with temporary_tables(SCHEMA) as database:
        staging = Staging(storage, input_id, database, checker)
        mended = 0
        for row in read_input(data, checker, check):
            mended += isinstance(row, InputRow) and row.mended
            if reject := row if isinstance(row, Reject) else staging.use(row):
                staging.rejects.add(reject)
        staging.rejects.flush()
        if not staging.used:
            raise InputError(_nothing_usable(data.path, staging.rejects))
        nothing = Commit(kind=INPUT, sequence_id=input_id, number=0, state=CommitState.WHOLE)
        return staging.staged(nothing, run.unit_problems, mended)


def refuse_equal_chains(rows: Iterable[InputRow], sampling: SamplingConfig) -> None:
    """Raise UsageError where a row without a chain would get the same chain several times."""
    try:
        refuse_equal("sampling.solutions", sampling.solutions, "chains", sampling.temperature)
    except ValueError as error:
        if bare := next((row for row in rows if row.solution is None), None):
            raise UsageError(f"{bare.location} has no chain: {error}") from error


def read_input(
    data: DataConfig, checker: Checker, check: Callable[[], None] = lambda: None, read: Read = read_row
) -> Iterator[InputRow | Reject]:
    """All rows of the input in order, without a comparison of rows. `check` is called before each and may raise.

    Raises InputError for a path or file that cannot be read.
    """
    for location, row in read_rows(data.path, data.limit):
        check()
        yield row if isinstance(row, Reject) else read(row, location, data, checker.stated_answer)


@contextmanager
def temporary_tables(schema: str) -> Iterator[sqlite3.Connection]:
    """A database of its own for what one staging must remember."""
    with (
        temporary_folder("stepvalue-staging-") as folder,
        closing(sqlite3.connect(folder / "rows.sqlite", isolation_level=None)) as database,
    ):
        database.executescript(f"PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF; {schema} BEGIN;")
        yield database


class Staging:
    """The temporary tables of `SCHEMA`: every used row once, in the order of the input, with the chains of a problem together.

    A row that repeats one of the tables, or has the id of one with other content, is rejected.
    """

    def __init__(self, storage: Storage, input_id: str, database: sqlite3.Connection, checker: Checker) -> None:
        self._storage = storage
        self._input_id = input_id
        self._database = database
        self._checker = checker
        self.rejects = RejectFiles(storage, input_id)
        self.used = 0
        """Number of used rows."""

    def use(self, row: InputRow) -> Reject | None:
        """Add a row, or return why it cannot be used."""
        content = content_of(row)
        if why := self._why_not(row, content):
            return Reject(location=row.location, reason=why[0], detail=why[1], source_id=row.source_id)
        self._add(row, content)
        self.used += 1
        return None

    def staged(self, before: Commit, unit_problems: int, mended: int) -> Commit:
        """The record `before` with the files of the used rows, cut into units, and of the rejects, which it writes, and with
        their counts."""
        self.rejects.flush()
        units = [
            write_units(self._storage, content_id("inputs", self._input_id, str(number)), together)
            for number, together in enumerate(batched(cut_units(self._rows(), unit_problems), UNITS_PER_FILE))
        ]
        rejected = self.rejects.rows
        new = Totals(rows=self.used + rejected, used=self.used, rejected=rejected, mended=mended)
        return replace(before, shards=(*before.shards, *units, *self.rejects.shards), tally=before.tally + new.tally)

    def _rows(self) -> Iterator[tuple[int, InputRow]]:
        """Pairs (number of the problem, row) of the rows that were used, with the problems in the order of their first row."""
        query = f"""SELECT number, units, {ROW} FROM used JOIN problems ON problems.ordinal = number WHERE seen IS NULL
                    ORDER BY number, used.ordinal"""
        for number, units, *columns in self._database.execute(query):
            yield number, stored_row(*columns, again=units)

    def _why_not(self, row: InputRow, content: str) -> tuple[RejectReason, str] | None:
        source, problem = row.source_id, row.problem
        if source is not None:
            known = self._one("SELECT content, file, line FROM used WHERE source_id = ?", source)
            if known and known[0] != content:
                detail = f"the id {source[:80]!r} has other content at {_place(known)}: make ids unique"
                return RejectReason.ID_CONFLICT, detail
        known = self._one("SELECT outcome, file, line FROM used WHERE content = ?", content)
        if known:
            other = ", with another outcome," if known[0] != row.given_outcome else ""
            detail = f"the same problem and solution{other} are at {_place(known)}; that row is labelled"
            return RejectReason.DUPLICATE, detail
        known = self._one("SELECT ordinal FROM problems WHERE problem_id = ?", problem.problem_id)
        if not known and not all(self._checker.parses(gold) for gold in problem.golds):
            detail = (
                f"the known answer {problem.golds[0][:80]!r} cannot be parsed: "
                "give a number, LaTeX or words, or with grader=code a test suite"
            )
            return RejectReason.UNPARSEABLE_ANSWER, detail
        return None

    def _add(self, row: InputRow, content: str, seen: bool | None = None) -> None:
        problem = problem_columns(row.problem)
        self._database.execute(
            "INSERT OR IGNORE INTO problems (problem_id, problem, golds, units) VALUES (?,?,?,0)", problem
        )
        self._database.execute(
            "INSERT INTO used SELECT NULL, ordinal, ?,?,?,?,?,?,?,?,? FROM problems WHERE problem_id = ?",
            (content, seen, *chain_columns(row), problem[0]),
        )

    def _one(self, query: str, key: str) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._database.execute(query, (key,)).fetchone()
        return row


class LeftOutRows:
    """The number of unusable `rows` so far. `shown`: location and reason of the first row of each of the first reasons."""

    def __init__(self) -> None:
        self.rows = 0
        self.shown: dict[RejectReason, str] = {}

    @property
    def first(self) -> str:
        """Location and reason of the first one; empty if there is none."""
        return next(iter(self.shown.values()), "")

    def add(self, reject: Reject) -> None:
        self.rows += 1
        if len(self.shown) < SHOWN_REJECTS:
            self.shown.setdefault(reject.reason, f"{reject.location}: {reject.detail}")


class RejectFiles(LeftOutRows):
    """Collects rejects and writes a file for every REJECTS_PER_FILE of them."""

    def __init__(self, storage: Storage, input_id: str) -> None:
        super().__init__()
        self._storage = storage
        self._input_id = input_id
        self._pending: list[Reject] = []
        self.shards: list[ShardRecord] = []

    def add(self, reject: Reject) -> None:
        super().add(reject)
        self._pending.append(reject)
        if len(self._pending) == REJECTS_PER_FILE:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            part = content_id("rejects", self._input_id, str(len(self.shards)))
            self.shards.append(write_shard(self._storage, REJECTS.name, part, [REJECTS.to_table(self._pending)]))
            self._pending = []


def cut_units(items: Iterable[tuple[object, _Item]], problems: int, most: float = math.inf) -> Iterator[list[_Item]]:
    """Cut items into units, after `problems` problems or `most` items. `items`: pairs (problem, item)."""
    unit: list[_Item] = []
    held, last = 0, None
    for problem, item in items:
        if unit and (len(unit) == most or (problem != last and held == problems)):
            yield unit
            unit, held = [], 0
        held += not unit or problem != last
        unit.append(item)
        last = problem
    if unit:
        yield unit


def batched(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in lists of `size`, but for the last."""
    rest = iter(items)
    return iter(lambda: list(islice(rest, size)), [])


def _nothing_usable(path: str, rejects: RejectFiles) -> str:
    if not rejects.rows:
        return f"{path} holds no rows"
    of = "" if is_given(path) else f" of {path}"
    return f"none of the {rejects.rows} rows{of} can be used: {'; '.join(rejects.shown.values())}"


def chain_columns(row: InputRow) -> tuple[object, ...]:
    """The columns of ROW that are not those of the problem. `ends` is JSON."""
    chain = row.solution
    texts = (chain.chain_id, chain.text, json.dumps(chain.ends)) if chain else (None, None, None)
    return (row.location.file, row.location.line, row.source_id, *texts, row.given_outcome)


def problem_columns(problem: Problem) -> tuple[str, str, str]:
    """The last columns of ROW. `golds` is JSON."""
    return problem.problem_id, problem.text, json.dumps(problem.golds)


def stored_row(
    file: str,
    line: int,
    source_id: str | None,
    chain_id: str | None,
    solution: str,
    ends: str,
    outcome: int | None,
    problem_id: str,
    text: str,
    golds: str,
    *,
    again: int = 0,
) -> InputRow:
    """A row from the columns of ROW."""
    chain = chain_id and Solution(
        chain_id=chain_id, problem_id=problem_id, source_id=source_id, text=solution, ends=tuple(json.loads(ends))
    )
    return InputRow(
        location=RowLocation(file=file, line=line),
        source_id=source_id,
        problem=Problem(problem_id=problem_id, text=text, golds=tuple(json.loads(golds))),
        solution=chain or None,
        given_outcome=None if outcome is None else bool(outcome),
        again=again,
    )


def _place(found: tuple[Any, ...]) -> RowLocation:
    _, file, line = found
    return RowLocation(file=file, line=line)
