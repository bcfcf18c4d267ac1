"""Turns input rows into units on disk, before any engine starts.

Rows are streamed. A temporary SQLite file keeps what must be known about all rows (the ids and chains seen so far, the chains
of each problem), so memory does not grow with the input. The result is staged in the run directory: used rows in `inputs/` (one
row group per unit), rejects in `rejects/`. One commit record names both.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, TypeVar

from pipeline.config.fields import refuse_equal
from pipeline.config.label import DataConfig, RunConfig, SamplingConfig
from pipeline.core.errors import InputError, UsageError
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Problem, Reject, RejectReason, RowLocation, Solution, Totals
from pipeline.core.tables import REJECTS
from pipeline.data.problems import read_row
from pipeline.data.rows import is_given, read_rows
from pipeline.graders.base import Checker
from pipeline.storage.shards import ShardRecord, write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.temporary import temporary_folder
from pipeline.storage.units import content_of, write_units

UNITS_PER_FILE = 32  # for each unit, a worker reads and verifies the whole file
REJECTS_PER_FILE = 50_000
SHOWN_REJECTS = 3

_Item = TypeVar("_Item")

SCHEMA = """
PRAGMA synchronous=OFF;
PRAGMA journal_mode=OFF;
CREATE TABLE contents (content TEXT PRIMARY KEY, file TEXT, line INTEGER, outcome INTEGER) WITHOUT ROWID;
CREATE TABLE sources (source_id TEXT PRIMARY KEY, content TEXT, file TEXT, line INTEGER) WITHOUT ROWID;
CREATE TABLE problems (ordinal INTEGER PRIMARY KEY, problem_id TEXT UNIQUE, problem TEXT, golds TEXT);
CREATE TABLE used (problem INTEGER, ordinal INTEGER, file TEXT, line INTEGER, source_id TEXT,
                   chain_id TEXT, solution TEXT, ends TEXT, outcome INTEGER, PRIMARY KEY (problem, ordinal)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedInput:
    """The files of a staged input, not yet committed. `totals`: of the rows."""

    shards: tuple[ShardRecord, ...]
    totals: Totals


def stage(
    storage: Storage,
    input_id: str,
    data: DataConfig,
    run: RunConfig,
    checker: Checker,
    check: Callable[[], None] = lambda: None,
) -> StagedInput:
    """Read the whole input and stage its units and rejects. `check` is called before each row and may raise.

    Raises InputError if no row can be used.
    """
    with temporary_folder("stepvalue-intake-") as folder:
        database = sqlite3.connect(folder / "rows.sqlite", isolation_level=None)
        try:
            database.executescript(f"{SCHEMA} BEGIN;")
            staging = Staging(database, checker)
            rejects = RejectFiles(storage, input_id)
            rows = mended = 0
            for row in read_input(data, checker, check):
                rows += 1
                mended += isinstance(row, InputRow) and row.mended
                reject = row if isinstance(row, Reject) else staging.use(row)
                if reject is not None:
                    rejects.add(reject)
            rejects.flush()
            if rejects.count == rows:
                raise InputError(_nothing_usable(data.path, rows, rejects.first))
            shards = list(write_unit_files(storage, input_id, staging.rows(), run.unit_problems))
        finally:
            database.close()
    return StagedInput(
        shards=(*shards, *rejects.shards),
        totals=Totals(rows=rows, used=rows - rejects.count, rejected=rejects.count, mended=mended),
    )


def refuse_equal_chains(rows: Iterable[InputRow], sampling: SamplingConfig) -> None:
    """Raise UsageError where a row without a chain would get the same chain several times."""
    try:
        refuse_equal("sampling.solutions", sampling.solutions, "chains", sampling.temperature)
    except ValueError as error:
        if bare := next((row for row in rows if row.solution is None), None):
            raise UsageError(f"{bare.location} has no chain: {error}") from error


def read_input(
    data: DataConfig, checker: Checker, check: Callable[[], None] = lambda: None, *, mends: bool = True
) -> Iterator[InputRow | Reject]:
    """All rows of the input in order, without a comparison of rows. `check` is called before each and may raise. `mends`: see
    `read_row`.

    Raises InputError for a path or file that cannot be read.
    """
    for location, row in read_rows(data.path, data.limit):
        check()
        yield row if isinstance(row, Reject) else read_row(row, location, data, checker.stated_answer, mends=mends)


class Staging:
    """The temporary tables: every used row once, in the order of the input, with the chains of a problem together.

    A row that repeats one of the table `contents`, or has the id of one of `sources` with other content, is rejected.
    """

    def __init__(self, database: sqlite3.Connection, checker: Checker) -> None:
        self._database = database
        self._checker = checker
        self.used = 0
        """Number of used rows."""

    def use(self, row: InputRow) -> Reject | None:
        """Add a row, or return why it cannot be used."""
        location, problem, solution, source = row.location, row.problem, row.solution, row.source_id
        content = content_of(row)
        if (duplicate := self._seen(row, content)) is not None:
            return duplicate
        number = self._problem_number(problem)
        if number is None:
            return Reject(
                location=location,
                reason=RejectReason.UNPARSEABLE_ANSWER,
                detail=(
                    f"the known answer {problem.golds[0][:80]!r} cannot be parsed: "
                    "give a number, LaTeX or words, or with grader=code a test suite"
                ),
                source_id=source,
            )
        self._remember(row, content)
        self.used += 1
        self._database.execute(
            "INSERT INTO used VALUES (?,?,?,?,?,?,?,?,?)",
            (
                number,
                self.used,
                location.file,
                location.line,
                source,
                solution and solution.chain_id,
                solution and solution.text,
                solution and json.dumps(solution.ends),
                row.given_outcome,
            ),
        )
        return None

    def rows(self) -> Iterator[tuple[int, InputRow]]:
        """Pairs (number of the problem, row), with the problems in the order of their first row."""
        query = """SELECT p.ordinal, u.file, u.line, u.source_id,
                          p.problem_id, p.problem, p.golds, u.chain_id, u.solution, u.ends, u.outcome
                   FROM used u JOIN problems p ON p.ordinal = u.problem ORDER BY u.problem, u.ordinal"""
        for number, *columns in self._database.execute(query):
            yield number, stored_row(*columns)

    def _seen(self, row: InputRow, content: str) -> Reject | None:
        location, source = row.location, row.source_id
        if source is not None:
            known = self._one("SELECT content, file, line FROM sources WHERE source_id = ?", source)
            if known and known[0] != content:
                return Reject(
                    location=location,
                    reason=RejectReason.ID_CONFLICT,
                    detail=f"the id {source[:80]!r} has other content at {_place(known)}: make ids unique",
                    source_id=source,
                )
        known = self._one("SELECT outcome, file, line FROM contents WHERE content = ?", content)
        if known:
            other = ", with another outcome," if known[0] != row.given_outcome else ""
            return Reject(
                location=location,
                reason=RejectReason.DUPLICATE,
                detail=f"the same problem and solution{other} are at {_place(known)}; that row is labelled",
                source_id=source,
            )
        return None

    def _remember(self, row: InputRow, content: str) -> None:
        place = row.location.file, row.location.line
        self._database.execute("INSERT INTO contents VALUES (?,?,?,?)", (content, *place, row.given_outcome))
        if row.source_id is not None:
            self._database.execute("INSERT INTO sources VALUES (?,?,?,?)", (row.source_id, content, *place))

    def _problem_number(self, problem: Problem) -> int | None:
        """The number of a problem, assigned at its first row; None if a known answer cannot be parsed."""
        known = self._one("SELECT ordinal FROM problems WHERE problem_id = ?", problem.problem_id)
        if known:
            return int(known[0])
        if not all(self._checker.parses(gold) for gold in problem.golds):
            return None
        cursor = self._database.execute(
            "INSERT INTO problems (problem_id, problem, golds) VALUES (?,?,?)",
            (problem.problem_id, problem.text, json.dumps(problem.golds)),
        )
        return cursor.lastrowid

    def _one(self, query: str, key: str) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._database.execute(query, (key,)).fetchone()
        return row


class RejectFiles:
    """Collects rejects and writes a file for every REJECTS_PER_FILE of them."""

    def __init__(self, storage: Storage, input_id: str) -> None:
        self._storage = storage
        self._input_id = input_id
        self._pending: list[Reject] = []
        self.count = 0
        self.first: list[Reject] = []
        self.shards: list[ShardRecord] = []

    def add(self, reject: Reject) -> None:
        self.count += 1
        if len(self.first) < SHOWN_REJECTS and reject.reason not in {shown.reason for shown in self.first}:
            self.first.append(reject)
        self._pending.append(reject)
        if len(self._pending) == REJECTS_PER_FILE:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            part = content_id("rejects", self._input_id, str(len(self.shards)))
            self.shards.append(write_shard(self._storage, REJECTS.name, part, [REJECTS.to_table(self._pending)]))
            self._pending = []


def write_unit_files(
    storage: Storage, input_id: str, rows: Iterable[tuple[int, InputRow]], unit_problems: int
) -> Iterator[ShardRecord]:
    """Cut rows into units and write them. `rows`: pairs (number of the problem, row), those of a problem together."""
    for number, units in enumerate(_batched(_units(rows, unit_problems), UNITS_PER_FILE)):
        yield write_units(storage, content_id("inputs", input_id, str(number)), units)


def _units(rows: Iterable[tuple[int, InputRow]], unit_problems: int) -> Iterator[list[InputRow]]:
    problems = ([row for _, row in same] for _, same in groupby(rows, key=lambda numbered: numbered[0]))
    for together in _batched(problems, unit_problems):
        yield [row for problem in together for row in problem]


def _batched(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _nothing_usable(path: str, rows: int, first: list[Reject]) -> str:
    if rows == 0:
        return f"{path} holds no rows"
    reasons = "; ".join(f"{reject.location}: {reject.detail}" for reject in first)
    of = "" if is_given(path) else f" of {path}"
    return f"none of the {rows} rows{of} can be used: {reasons}"


def stored_row(
    file: str,
    line: int,
    source_id: str | None,
    problem_id: str,
    text: str,
    golds: str,
    chain_id: str | None,
    solution: str,
    ends: str,
    outcome: int | None,
) -> InputRow:
    """A row from its columns in the temporary tables. `golds` and `ends` are JSON."""
    chain = chain_id and Solution(
        chain_id=chain_id, problem_id=problem_id, source_id=source_id, text=solution, ends=tuple(json.loads(ends))
    )
    return InputRow(
        location=RowLocation(file=file, line=line),
        source_id=source_id,
        problem=Problem(problem_id=problem_id, text=text, golds=tuple(json.loads(golds))),
        solution=chain or None,
        given_outcome=None if outcome is None else bool(outcome),
    )


def _place(found: tuple[Any, ...]) -> RowLocation:
    """That of a row of the tables `contents` and `sources`."""
    _, file, line = found
    return RowLocation(file=file, line=line)
