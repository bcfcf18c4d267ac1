"""What the present input of a run has of the staged one: tables of the rows that are recognised, gone and new.

A used row is recognised by its content and its `id`, wherever it stands now. Rejected rows have no content on disk. One is
recognised by its place, reason and id, or else by its reason, id and detail, so that no reject counts twice. Rows are streamed,
and the tables are those of a temporary SQLite file.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pipeline.config.label import DataConfig
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.data.problems import read_row
from pipeline.runtime import intake
from pipeline.runtime.intake import ROW, Staging, chain_columns, problem_columns, read_input, stored_row
from pipeline.storage.units import content_of

_BY_OTHERS = (RejectReason.DUPLICATE.value, RejectReason.ID_CONFLICT.value)
"""Reasons whose detail names another row, so that it changes when rows move. A row that repeats one row and has the id of
another is rejected for the one that is met first."""

SCHEMA = f"""{intake.SCHEMA}
CREATE TABLE refused (ordinal INTEGER PRIMARY KEY, name TEXT, line INTEGER, reason TEXT, source_id TEXT, detail TEXT,
                      seen INTEGER);
CREATE INDEX refused_place ON refused (line, name);
CREATE INDEX refused_detail ON refused (reason, source_id, detail);
CREATE TABLE unknown (ordinal INTEGER PRIMARY KEY, paired INTEGER, name TEXT, mended INTEGER, reason TEXT, detail TEXT, {ROW});
CREATE TABLE moved (reason TEXT, detail TEXT, file TEXT, line INTEGER, source_id TEXT);
"""
_INDICES = (
    "CREATE INDEX unknown_source ON unknown (source_id)",
    "CREATE INDEX unknown_problem ON unknown (problem)",
    "CREATE INDEX unknown_place ON unknown (line, name)",
)
_UNKNOWN = f"SELECT ordinal, reason, detail, {ROW} FROM unknown"


class Comparison(Staging):
    """The tables, see the module. Their used rows are first those of the run."""

    def add_used(self, rows: Iterable[InputRow]) -> None:
        """Add the rows of a unit of the run."""
        problems = set()
        for row in rows:
            # The run has its solution.
            self._add(replace(row, solution=None), content_of(row), seen=False)
            problems.add((row.problem.problem_id,))
        self._database.executemany("UPDATE problems SET units = units + 1 WHERE problem_id = ?", problems)

    def add_rejected(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rejects of the run, as dicts of their columns."""
        for row in rows:
            reason, detail = _lasting(row["reason"], row["detail"])
            self._database.execute(
                "INSERT INTO refused (name, line, reason, source_id, detail, seen) VALUES (?,?,?,?,?,0)",
                (_name(row["file"]), row["line"], reason, row["source_id"], detail),
            )

    def read(self, data: DataConfig, check: Callable[[], None]) -> None:
        """Recognise the rows of the present input. `check` is called before each. Raises InputError."""
        for row in read_input(data, self._checker, check):
            if isinstance(row, Reject) or not self._recognise(row):
                self._put_aside(row)
        if self.gone():  # a run from before texts were mended keeps its rows as they are
            for row in read_input(data, self._checker, check, partial(read_row, mends=False)):
                if isinstance(row, InputRow) and self._recognise(row):
                    place = row.location
                    self._database.execute("DELETE FROM unknown WHERE file = ? AND line = ?", (place.file, place.line))
        for index in _INDICES:
            self._database.execute(index)

    def gone(self) -> set[str]:
        """Contents of the used rows that were not recognised."""
        return {content for (content,) in self._database.execute("SELECT content FROM used WHERE seen = 0")}

    def mended(self) -> int:
        """How many rows of the present input were mended that the run does not have."""
        return int(self._database.execute("SELECT COUNT(mended) FROM unknown").fetchone()[0])

    def successor(self, row: InputRow) -> InputRow | Reject | None:
        """What stands now in place of a used row that is gone: a row with its id, or at its place, or with its text and another
        answer."""
        searches: list[tuple[str, tuple[object, ...]]] = [
            ("source_id = ?", (row.source_id,)),
            ("line = ? AND name = ?", (row.location.line, _name(row.location.file))),
            ("problem = ? AND solution IS ?", (row.problem.text, row.solution and row.solution.text)),
        ]
        for where, values in searches[row.source_id is None :]:
            query = f"{_UNKNOWN} WHERE {where} AND paired IS NULL ORDER BY ordinal LIMIT 1"
            if found := self._database.execute(query, values).fetchone():
                self._database.execute("UPDATE unknown SET paired = 1 WHERE ordinal = ?", (found[0],))
                return _row_of(found)
        return None

    def use_new(self) -> None:
        """Use the rows that were not recognised, and add the rejects among them that the run does not have yet."""
        for record in self._database.execute(f"{_UNKNOWN} ORDER BY ordinal"):
            row = _row_of(record)
            reject = row if isinstance(row, Reject) else self.use(row)
            if reject is None:
                continue
            place, source = reject.location, reject.source_id
            at_its_place = (place.line, _name(place.file), _lasting(reject.reason, reject.detail)[0], source)
            if not self._take("line = ? AND name = ? AND reason = ? AND source_id IS ?", *at_its_place):
                columns = (reject.reason.value, reject.detail, place.file, place.line, source)
                self._database.execute("INSERT INTO moved VALUES (?,?,?,?,?)", columns)
        for columns in self._database.execute("SELECT * FROM moved ORDER BY rowid"):
            reject = _reject_of(*columns)
            elsewhere = (*_lasting(reject.reason, reject.detail), reject.source_id)
            if not self._take("reason = ? AND detail = ? AND source_id IS ?", *elsewhere):
                self.rejects.add(reject)

    def _recognise(self, row: InputRow) -> bool:
        found = self._database.execute(
            # Rows that give no outcome, and those of runs from before outcomes were read, may be given one later.
            "UPDATE used SET seen = 1 "
            "WHERE content = ? AND source_id IS ? AND (outcome IS NULL OR outcome IS ?) AND seen = 0",
            (content_of(row), row.source_id, row.given_outcome),
        )
        return found.rowcount == 1

    def _put_aside(self, row: InputRow | Reject) -> None:
        place = row.location
        columns: tuple[object, ...]
        if isinstance(row, Reject):
            columns = (None, row.reason.value, row.detail, place.file, place.line, row.source_id, *[None] * 7)
        else:
            columns = (row.mended or None, None, None, *chain_columns(row), *problem_columns(row.problem))
        marks = ",".join("?" * len(columns))
        self._database.execute(f"INSERT INTO unknown VALUES (NULL,NULL,?,{marks})", (_name(place.file), *columns))

    def _take(self, where: str, *values: object) -> bool:
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
    _, reason, detail, *columns = record
    return stored_row(*columns) if reason is None else _reject_of(reason, detail, *columns[:3])


def _reject_of(reason: str, detail: str, file: str, line: int, source_id: str | None) -> Reject:
    location = RowLocation(file=file, line=line)
    return Reject(location=location, reason=RejectReason(reason), detail=detail, source_id=source_id)


def _lasting(reason: str, detail: str) -> tuple[str, str]:
    """Reason and detail of a reject as far as they follow from its row alone: one reason for both of `_BY_OTHERS`."""
    return (_BY_OTHERS[0], "") if reason in _BY_OTHERS else (reason, detail)


def _name(file: str) -> str:
    return file.rpartition("/")[2]
