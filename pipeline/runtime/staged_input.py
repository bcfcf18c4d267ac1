"""The staged input of a start: as the run has it, staged for the first time, staged again after damage, or grown.

Of a grown input, `Comparison` says what is new: such rows go through the checks of a first start and are cut into new
units, and the old units stay as they are. Rows of old problems come first. They share no rollouts with the earlier units of
their problems. A used row that is gone, or that has another content now, has *changed*. That is refused.

Memory grows with the new rows of old problems, not with the other rows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from typing import Any

from pipeline.config.label import DataConfig, LabelConfig, RunConfig
from pipeline.core.errors import InputError, StoreError, other_job
from pipeline.core.formatting import format_count
from pipeline.core.ids import content_id
from pipeline.core.output import say
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.data.problems import read_row
from pipeline.data.prompts import prefix_id, root_id
from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from pipeline.runtime import intake
from pipeline.runtime.chain_run.task import HeldRun
from pipeline.runtime.intake import (
    ROW,
    Staging,
    chain_columns,
    problem_columns,
    read_input,
    stage,
    stored_row,
    temporary_tables,
)
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    RecordSequence,
    completions,
    publish,
    record_sequence,
    resolve,
    sequence_lengths,
)
from pipeline.storage.repair import repair
from pipeline.storage.run_record import STAGED_INPUT, has_input, settings_copy, with_input
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import content_of, staged_rows, units_of

SHOWN_CHANGES = 5
"""The largest number of changed rows that a refusal names."""
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


def staged_input(config: LabelConfig, held: HeldRun) -> Commit:
    """The record of the staged input. What is new in a grown input is staged and reported.

    Raises InputError, RunConflict, StoreError, and Interrupted before any row.
    """
    storage, check = held.storage, held.stop.check
    news = ""

    def made(found: RecordSequence, known: Commit | None) -> Commit:
        nonlocal news
        settings = settings_copy(with_input(held.identity, held.asked))
        if known is not None:
            with checker_for(config.grader) as checker:
                grown = grow(storage, known, config.data, config.run, checker, check)
            news = growth_line(storage, known, grown, config.sampling.rollouts)
            return replace(grown, settings=settings)
        if completions(found):
            return _as_it_was(storage, config, found, check)
        if not has_input({}, held.identity, held.asked):
            raise InputError(
                f"the record of the input of {storage.run_dir} is lost, and the input has grown since it was written: "
                "start once with the input as it was, then with the grown one"
            )
        with checker_for(config.grader) as checker:
            first = stage(storage, found.sequence_id, config.data, config.run, checker, check)
        return replace(first, settings=settings)

    staged = staged_by(made, held)
    if news:
        say(news)
    return staged


def staged_by(make: Callable[[RecordSequence, Commit | None], Commit], held: HeldRun) -> Commit:
    """The record of the staged input.

    `make`: stages what is missing, and returns the record to publish next; it gets the records that there are, and the intact
    one, if any. Raises what it raises, RunConflict and StoreError.
    """
    storage, staged_id = held.storage, str(held.identity[STAGED_INPUT])
    found, damaged = repair(storage, _sequence(storage, staged_id))
    held.damaged.extend(damaged)
    known = resolve(found).whole
    while known is None or not has_input(known.recorded, held.identity, held.asked):
        made = replace(make(found, known), number=found.length)
        won = publish(storage, made)
        found = _sequence(storage, staged_id)
        known = made if won else resolve(found).whole
        if known is None or known.settings != made.settings:
            raise other_job(storage.run_dir)
    return known


def refuse_other_units(storage: Storage, staged: Commit, fault: str) -> None:
    """Raise StoreError where units were begun that a staged input does not have. `fault`: the file that is damaged, and what is
    wrong with the present input."""
    begun = sequence_lengths(storage, UNIT).keys()
    if begun and not begun <= {unit.unit_id for unit in units_of(storage, staged)}:
        raise StoreError(f"a file in {storage.run_dir}/{fault} in the earlier order, or restore the file from a copy")


def grow(
    storage: Storage,
    staged: Commit,
    data: DataConfig,
    run: RunConfig,
    checker: Checker,
    check: Callable[[], None] = lambda: None,
) -> Commit:
    """Read the whole input, compare it with the `staged` one, and stage what is new. `check` is called before each row and may
    raise. Returns the record with what is new, not published.

    Raises InputError if used rows have changed, and StoreError.
    """
    growth_id = content_id("growth", staged.sequence_id, str(staged.number))
    with temporary_tables(SCHEMA) as database:
        comparison = Comparison(storage, growth_id, database, checker)
        for rows in staged_rows(storage, staged):
            comparison.add_used(rows)
        for shard in staged.shards:
            if shard.table == "rejects":
                comparison.add_rejected(read_shard(storage, shard).to_pylist())
        comparison.read(data, check)
        _refuse_changed(storage, staged, comparison, data.limit)
        comparison.use_new()
        return comparison.staged(staged, run.unit_problems, comparison.mended())


def growth_line(storage: Storage, before: Commit, grown: Commit, rollouts: int) -> str:
    """What is new in a grown input, for the user. `rollouts`: the setting `sampling.rollouts`. Empty if nothing is."""
    new = grown.totals - before.totals
    if not new.rows:
        return ""
    parts = [f"{format_count(new.rows, 'new row')} = {new.used:,} used + {new.rejected:,} rejected"]
    problems = rows_of_old = 0
    prefixes: dict[str, set[str]] = {}
    """Of the new rows of old problems, by problem."""
    for rows in staged_rows(storage, replace(grown, shards=grown.shards[len(before.shards) :])):
        for problem_id, same in groupby(rows, key=lambda row: row.problem.problem_id):
            of_problem = list(same)
            if of_problem[0].again:
                rows_of_old += len(of_problem)
                prefixes[problem_id] = set(chain.from_iterable(map(_inner_prefixes, of_problem)))
            else:
                problems += 1
    if problems:
        parts.append(format_count(problems, "new problem"))
    if rows_of_old:
        repeated: set[str] = set()
        for row in chain.from_iterable(staged_rows(storage, before)):
            if wanted := prefixes.get(row.problem.problem_id):
                repeated |= wanted.intersection(_inner_prefixes(row))
        parts.append(
            f"{format_count(rows_of_old, 'row')} of {format_count(len(prefixes), 'old problem')} in new units, "
            "where the prefixes that they share with earlier chains are sampled again (about "
            f"{format_count(len(repeated) * rollouts, 'rollout')})"
        )
    return f"the input grew: {'; '.join(parts)}"


def _as_it_was(storage: Storage, config: LabelConfig, found: RecordSequence, check: Callable[[], None]) -> Commit:
    """The input whose files are damaged, staged again as it was, also if it has grown since."""
    history = completions(found)
    records = [commit for commit, _ in history]
    intact = [commit for commit, files in history if files == commit.shards]
    with checker_for(config.grader) as checker:
        if intact:
            staged = intact[-1]
        else:
            data = replace(config.data, limit=records[0].totals.rows)
            again = stage(storage, found.sequence_id, data, config.run, checker, check)
            staged = replace(records[0], shards=again.shards, tally=again.tally)
        for commit in (commit for commit in records if commit.totals.rows > staged.totals.rows):
            data = replace(config.data, limit=commit.totals.rows)
            grown = grow(storage, staged, data, config.run, checker, check)
            staged = replace(grown, number=commit.number)
    fault = "inputs is damaged, and the input does not begin with the same rows as when it was read: give it"
    refuse_other_units(storage, staged, fault)
    return replace(staged, settings=records[-1].settings)


def _sequence(storage: Storage, staged_id: str) -> RecordSequence:
    return record_sequence(storage, INPUT, staged_id, sequence_lengths(storage, INPUT).get(staged_id, 0))


def _refuse_changed(storage: Storage, staged: Commit, comparison: "Comparison", limit: int | None) -> None:
    """Raise InputError if used rows have changed since the input was staged. The message names the first ones."""
    gone = comparison.gone()
    if not gone:
        return
    changed = (row for rows in staged_rows(storage, staged) for row in rows if content_of(row) in gone)
    lines = [f"\n  {_what_happened(row, comparison.successor(row))}" for row in islice(changed, SHOWN_CHANGES)]
    if len(gone) > len(lines):
        lines.append(f"\n  and {len(gone) - len(lines):,} more")
    limited = f" raise data.limit={limit}," if limit is not None else ""
    raise InputError(
        f"{storage.run_dir} has labels of rows that the input no longer has as they were, {len(gone):,} of "
        f"{format_count(staged.totals.used, 'used row')}:{''.join(lines)}\nRestore these rows,{limited} or use another run_dir"
    )


def _inner_prefixes(row: InputRow) -> list[str]:
    """Ids of the bare problem and of the inner steps of a row, as a first unit of the problem has them."""
    solution = row.solution
    inner = [prefix_id(solution, index) for index in range(1, len(solution.ends))] if solution else []
    return [root_id(row.problem.problem_id), *inner]


def _what_happened(row: InputRow, now: InputRow | Reject | None) -> str:
    """Where a used row was that has changed, and what stands in its place."""
    if now is None:
        return f"{row.location} vanished: no row has its content, its id or its place"
    at = f"the row at {now.location}" if now.location.file else f"the present {now.location}"
    what = f"was rejected ({now.reason.value})" if isinstance(now, Reject) else f"has {what_changed(row, now)}"
    return f"{row.location} changed: {at} {what}"


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
