"""What the present input of a run has of the staged one: tables of the rows that are recognised, gone and new.

A used row is recognised by its content and its `id`, wherever it stands now. Rejected rows have no content on disk. One is
recognised by its place, reason and id, or else by its reason, id and detail, so that no reject counts twice. Rows are streamed,
and the tables are those of a temporary SQLite file.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pipeline.config.label import DataConfig
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.graders.base import Checker
from pipeline.runtime.intake import SCHEMA, read_input, stored_row
from pipeline.storage.units import content_of

_BATCH = 1000
_BY_OTHERS = (RejectReason.DUPLICATE.value, RejectReason.ID_CONFLICT.value)
"""Reasons whose detail names another row, so that it changes when rows move. A row that repeats one row and has the id of
another is rejected for the one that is met first."""

_SCHEMA = f"""{SCHEMA}
CREATE TABLE staged (content TEXT PRIMARY KEY, source_id TEXT, outcome INTEGER, seen INTEGER) WITHOUT ROWID;
CREATE TABLE held (problem_id TEXT PRIMARY KEY, units INTEGER) WITHOUT ROWID;
CREATE TABLE refused (ordinal INTEGER PRIMARY KEY, name TEXT, line INTEGER, reason TEXT, source_id TEXT, detail TEXT,
                      seen INTEGER);
CREATE INDEX refused_place ON refused (line, name);
CREATE INDEX refused_detail ON refused (reason, source_id, detail);
CREATE TABLE unknown (ordinal INTEGER PRIMARY KEY, file TEXT, line INTEGER, name TEXT, source_id TEXT, reason TEXT,
                      detail TEXT, problem_id TEXT, problem TEXT, golds TEXT, chain_id TEXT, solution TEXT, ends TEXT,
                      outcome INTEGER, paired INTEGER);
CREATE TABLE moved (ordinal INTEGER PRIMARY KEY);
BEGIN;
"""
_INDICES = (
    "CREATE INDEX unknown_source ON unknown (source_id)",
    "CREATE INDEX unknown_problem ON unknown (problem)",
    "CREATE INDEX unknown_place ON unknown (line, name)",
)


class Comparison:
    """The tables, see the module. They extend those of `intake.Staging`, which then knows the used rows of the run."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        database.executescript(_SCHEMA)
        self.mended: set[RowLocation] = set()
        """Rows of the present input that were mended, and that the run does not have."""

    def add_used(self, rows: Iterable[InputRow]) -> None:
        """Add the rows of a unit of the run."""
        run = self._database.execute
        problems = {}
        for row in rows:
            problems[row.problem.problem_id] = row.problem
            content, place = content_of(row), (row.location.file, row.location.line)
            run("INSERT INTO staged VALUES (?,?,?,0)", (content, row.source_id, row.given_outcome))
            run("INSERT INTO contents VALUES (?,?,?,?)", (content, *place, row.given_outcome))
            if row.source_id is not None:
                run("INSERT INTO sources VALUES (?,?,?,?)", (row.source_id, content, *place))
        for problem in problems.values():
            key = problem.problem_id
            run("INSERT INTO held VALUES (?,1) ON CONFLICT DO UPDATE SET units = units + 1", (key,))
            run(
                "INSERT OR IGNORE INTO problems (problem_id, problem, golds) VALUES (?,?,?)",
                (key, problem.text, json.dumps(problem.golds)),
            )

    def add_rejected(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rejects of the run, as dicts of their columns."""
        for row in rows:
            self._database.execute(
                "INSERT INTO refused (name, line, reason, source_id, detail, seen) VALUES (?,?,?,?,?,0)",
                (
                    _name(row["file"]),
                    row["line"],
                    _kind(row["reason"]),
                    row["source_id"],
                    _detail(row["reason"], row["detail"]),
                ),
            )

    def read(self, data: DataConfig, checker: Checker, check: Callable[[], None]) -> None:
        """Recognise the rows of the present input. `check` is called before each. Raises InputError."""
        for row in read_input(data, checker, check):
            if isinstance(row, Reject) or not self._recognise(row):
                self._put_aside(row)
                if isinstance(row, InputRow) and row.mended:
                    self.mended.add(row.location)
        if self.gone():  # a run from before texts were mended keeps its rows as they are
            for row in read_input(data, checker, check, mends=False):
                if isinstance(row, InputRow) and self._recognise(row):
                    place = row.location
                    self._database.execute("DELETE FROM unknown WHERE file = ? AND line = ?", (place.file, place.line))
                    self.mended.discard(place)
        for index in _INDICES:
            self._database.execute(index)

    def gone(self) -> set[str]:
        """Contents of the used rows that were not recognised."""
        return {content for (content,) in self._database.execute("SELECT content FROM staged WHERE seen = 0")}

    def earlier_units(self, problem_id: str) -> int:
        """Number of units of the run that have chains of a problem."""
        found = self._database.execute("SELECT units FROM held WHERE problem_id = ?", (problem_id,)).fetchone()
        return int(found[0]) if found else 0

    def successor(self, row: InputRow) -> InputRow | Reject | None:
        """What stands now in place of a used row that is gone: a row with its id, or at its place, or with its text and another
        answer."""
        searches: list[tuple[str, tuple[object, ...]]] = [
            ("source_id = ?", (row.source_id,)),
            ("line = ? AND name = ?", (row.location.line, _name(row.location.file))),
            ("problem = ? AND solution IS ?", (row.problem.text, row.solution and row.solution.text)),
        ]
        for where, values in searches[row.source_id is None :]:
            query = f"SELECT * FROM unknown WHERE {where} AND paired IS NULL ORDER BY ordinal LIMIT 1"
            found = self._database.execute(query, values).fetchone()
            if found:
                self._database.execute("UPDATE unknown SET paired = 1 WHERE ordinal = ?", (found[0],))
                return _row_of(found)
        return None

    def rejects(self, use: Callable[[InputRow], Reject | None]) -> Iterator[Reject]:
        """The rejects that the run does not have yet, among the rows that were not recognised. `use`: decides about a row
        that can be read."""
        for record in self._unknown():
            row = _row_of(record)
            reject = row if isinstance(row, Reject) else use(row)
            if reject is not None and not self._is_at_its_place(reject):
                self._database.execute(
                    "UPDATE unknown SET reason = ?, detail = ? WHERE ordinal = ?",
                    (reject.reason.value, reject.detail, record[0]),
                )
                self._database.execute("INSERT INTO moved VALUES (?)", (record[0],))
        for record in self._unknown("JOIN moved USING (ordinal)"):
            reject = _reject_of(record)
            if not self._is_elsewhere(reject):
                yield reject

    def _recognise(self, row: InputRow) -> bool:
        found = self._database.execute(
            # Rows that give no outcome, and those of runs from before outcomes were read, may be given one later.
            "UPDATE staged SET seen = 1 "
            "WHERE content = ? AND source_id IS ? AND (outcome IS NULL OR outcome IS ?) AND seen = 0",
            (content_of(row), row.source_id, row.given_outcome),
        )
        return found.rowcount == 1

    def _put_aside(self, row: InputRow | Reject) -> None:
        columns: dict[str, object] = {
            "file": row.location.file,
            "line": row.location.line,
            "name": _name(row.location.file),
            "source_id": row.source_id,
        }
        if isinstance(row, Reject):
            columns |= {"reason": row.reason.value, "detail": row.detail}
        else:
            problem, chain = row.problem, row.solution
            columns |= {"problem_id": problem.problem_id, "problem": problem.text, "golds": json.dumps(problem.golds)}
            if chain:
                columns |= {"chain_id": chain.chain_id, "solution": chain.text, "ends": json.dumps(chain.ends)}
                columns["outcome"] = row.given_outcome
        marks = ",".join("?" * len(columns))
        query = f"INSERT INTO unknown ({','.join(columns)}) VALUES ({marks})"
        self._database.execute(query, tuple(columns.values()))

    def _unknown(self, join: str = "") -> Iterator[tuple[Any, ...]]:
        """The rows that were not recognised, in order. The table may be updated meanwhile."""
        last = 0
        query = f"SELECT unknown.* FROM unknown {join} WHERE ordinal > ? ORDER BY ordinal LIMIT {_BATCH}"
        while records := self._database.execute(query, (last,)).fetchall():
            yield from records
            last = records[-1][0]

    def _is_at_its_place(self, reject: Reject) -> bool:
        return self._take(
            "line = ? AND name = ? AND reason = ? AND source_id IS ?",
            (reject.location.line, _name(reject.location.file), _kind(reject.reason.value), reject.source_id),
        )

    def _is_elsewhere(self, reject: Reject) -> bool:
        reason = reject.reason.value
        return self._take(
            "reason = ? AND source_id IS ? AND detail = ?",
            (_kind(reason), reject.source_id, _detail(reason, reject.detail)),
        )

    def _take(self, where: str, values: tuple[object, ...]) -> bool:
        """Take a reject of the run that was not taken yet. False if there is none."""
        query = (
            "UPDATE refused SET seen = 1 WHERE ordinal = "
            f"(SELECT ordinal FROM refused WHERE seen = 0 AND {where} ORDER BY ordinal LIMIT 1)"
        )
        return self._database.execute(query, values).rowcount == 1


def what_changed(old: InputRow, new: InputRow) -> str:
    """In what a row differs from the used row whose place or id it has, in words. No text of the data is quoted."""
    parts = [
        name
        for name, before, now in (
            ("problem", old.problem.text, new.problem.text),
            ("known answer", old.problem.golds, new.problem.golds),
            ("solution", _steps(old), _steps(new)),
            ("outcome", old.given_outcome, new.given_outcome),
            ("id", old.source_id, new.source_id),
        )
        if before != now
    ]
    return f"another {' and another '.join(parts)}"


def _steps(row: InputRow) -> tuple[str, tuple[int, ...]] | None:
    return (row.solution.text, row.solution.ends) if row.solution else None


def _row_of(record: tuple[Any, ...]) -> InputRow | Reject:
    """A row of the table `unknown`."""
    _, file, line, _, source_id, reason, _, *columns, _ = record
    return _reject_of(record) if reason is not None else stored_row(file, line, source_id, *columns)


def _reject_of(record: tuple[Any, ...]) -> Reject:
    _, file, line, _, source_id, reason, detail, *_ = record
    location = RowLocation(file=file, line=line)
    return Reject(location=location, reason=RejectReason(reason), detail=detail, source_id=source_id)


def _kind(reason: str) -> str:
    """A reason, or one for both of `_BY_OTHERS`."""
    return _BY_OTHERS[0] if reason in _BY_OTHERS else reason


def _detail(reason: str, detail: str) -> str:
    """What a reject says about the content of its row alone."""
    return "" if reason in _BY_OTHERS else detail


def _name(file: str) -> str:
    return file.rpartition("/")[2]
