"""Stages what is new in the grown input of a run. Its old units stay as they are.

`input_comparison` says what is new: such rows go through the checks of a first start and are cut into new units.
Rows of old problems come first. They share no rollouts with the earlier units of their problems. A used row that is gone, or
that has another content now, has *changed*. That is refused, or with `data.changed=keep` recorded in `changes/`.

Memory grows with the changed rows and with the new rows of old problems, not with the other rows.
"""

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.config.choices import Changed
from pipeline.config.label import DataConfig, RunConfig
from pipeline.core.errors import InputError
from pipeline.core.formatting import format_count
from pipeline.core.ids import content_id
from pipeline.core.records import VANISHED, ChangedRow, InputRow, Reject, RowLocation, Totals
from pipeline.core.tables import changes_table
from pipeline.data.prompts import prefix_id, root_id
from pipeline.graders.base import Checker
from pipeline.runtime.input_comparison import Comparison, what_changed
from pipeline.runtime.intake import RejectFiles, Staging, write_unit_files
from pipeline.storage.changes import (
    CHANGES,
    KeptChanges,
    changed_content,
    changes_of,
    counted_changes,
    kept_changes,
)
from pipeline.storage.commits import Commit
from pipeline.storage.shards import ShardRecord, read_shard, write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import content_of, staged_rows

SHOWN_CHANGES = 5
"""The largest number of changed rows that a refusal names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownInput:
    """A grown input, not yet committed. `shards`: all its files, also those of the input before. `totals`: of all its rows.

    The other counts are of what is new. `problems`: new ones. `rows_of_old`: used rows whose problems have chains in earlier
    units, `old_problems` of them; `repeated`: prefixes of them that these units measure too. `changes`: rows that are newly
    marked as changed.
    """

    shards: tuple[ShardRecord, ...]
    totals: Totals
    seconds: float
    used: int
    rejected: int
    problems: int
    rows_of_old: int
    old_problems: int
    repeated: int
    changes: KeptChanges


def grow(
    storage: Storage,
    staged: Commit,
    data: DataConfig,
    run: RunConfig,
    checker: Checker,
    check: Callable[[], None] = lambda: None,
) -> GrownInput:
    """Read the whole input, compare it with the `staged` one, and stage what is new. `check` is called before each row and may
    raise.

    Raises InputError if used rows have changed and `data.changed` is not `keep`, and StoreError.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stepvalue-growth-") as folder:
        database = sqlite3.connect(Path(folder) / "rows.sqlite", isolation_level=None)
        try:
            comparison = Comparison(database)
            for rows in staged_rows(storage, staged):
                comparison.add_used(rows)
            for shard in staged.shards:
                if shard.table == "rejects":
                    comparison.add_rejected(read_shard(storage, shard).to_pylist())
            comparison.read(data, checker, check)
            growth = _Growth(storage, staged, comparison)
            changed = growth.newly_changed(data)
            grown = growth.stage(Staging(database, checker), run.unit_problems, changed)
        finally:
            database.close()
    return replace(grown, seconds=time.monotonic() - started)


def growth_line(grown: GrownInput, rollouts: int) -> str:
    """What is new, for the user. `rollouts`: the setting `sampling.rollouts`. Empty if nothing is."""
    changes = grown.changes
    if not (grown.used or grown.rejected or changes.rows):
        return ""
    rows = format_count(grown.used + grown.rejected, "new row")
    parts = [f"{rows} = {grown.used:,} used + {grown.rejected:,} rejected"]
    if grown.problems:
        parts.append(format_count(grown.problems, "new problem"))
    if grown.rows_of_old:
        parts.append(
            f"{format_count(grown.rows_of_old, 'row')} of {format_count(grown.old_problems, 'old problem')} in new units, "
            "where the prefixes that they share with earlier chains are sampled again (about "
            f"{format_count(grown.repeated * rollouts, 'rollout')})"
        )
    if changes.rows:
        counted = counted_changes(changes.changed, changes.vanished)
        parts.append(
            f"old rows: {counted}, whose labels stay, marked in the column input_changed; `export` and `train` leave them out"
        )
    return f"the input grew: {'; '.join(parts)}"


class _Growth:
    def __init__(self, storage: Storage, staged: Commit, comparison: Comparison) -> None:
        self._storage = storage
        self._staged = staged
        self._comparison = comparison
        self._file = changes_of(staged)
        self._gone = comparison.gone()
        self._known = {changed_content(row): row for row in kept_changes(storage, self._file).rows}

    def newly_changed(self, data: DataConfig) -> list[ChangedRow]:
        """The used rows that have changed since the input was staged. Raises InputError unless these may be kept."""
        gone = self._gone - self._known.keys()
        refused = data.changed is not Changed.keep
        changed: list[ChangedRow] = []
        for rows in staged_rows(self._storage, self._staged) if gone else ():
            for row in rows:
                if content_of(row) in gone and not (refused and len(changed) == SHOWN_CHANGES):
                    changed.append(_changed_row(row, self._comparison.successor(row)))
        if gone and refused:
            raise InputError(_refusal(self._storage.run_dir, changed, len(gone), self._staged.totals.used, data.limit))
        return changed

    def stage(self, staging: Staging, unit_problems: int, changed: list[ChangedRow]) -> GrownInput:
        """Write the files of what is new."""
        growth_id = content_id("growth", self._staged.sequence_id, str(self._staged.number))
        rejects = RejectFiles(self._storage, growth_id)
        for reject in self._comparison.rejects(staging.use):
            rejects.add(reject)
        rejects.flush()
        old = _OldProblems()
        rows = old.noted((number, self._with_again(row)) for number, row in staging.rows())
        units = tuple(write_unit_files(self._storage, growth_id, rows, unit_problems))
        kept = tuple(shard for shard in self._staged.shards if shard != self._file)
        return GrownInput(
            shards=(*kept, *units, *rejects.shards, *self._changes(growth_id, changed)),
            totals=self._staged.totals
            + Totals(rows=staging.used + rejects.count, used=staging.used, rejected=rejects.count),
            seconds=0.0,
            used=staging.used,
            rejected=rejects.count,
            problems=old.others,
            rows_of_old=old.rows,
            old_problems=len(old.prefixes),
            repeated=old.repeated(staged_rows(self._storage, self._staged)) if old.rows else 0,
            changes=KeptChanges(rows=tuple(changed)),
        )

    def _with_again(self, row: InputRow) -> InputRow:
        return replace(row, again=self._comparison.earlier_units(row.problem.problem_id))

    def _changes(self, growth_id: str, changed: list[ChangedRow]) -> Iterator[ShardRecord]:
        """The file of all changed rows: the known ones that did not come back, and the newly changed ones."""
        if self._file or changed:
            known = [row for content, row in self._known.items() if content in self._gone]
            part = content_id(CHANGES, growth_id)
            yield write_shard(self._storage, CHANGES, part, [changes_table([*known, *changed])])


class _OldProblems:
    """Counts new rows: `rows` of problems with earlier units, whose prefixes are `prefixes` by problem id; `others`: number of
    new problems."""

    def __init__(self) -> None:
        self.prefixes: dict[str, set[str]] = {}
        self.rows = 0
        self.others = 0

    def noted(self, rows: Iterator[tuple[int, InputRow]]) -> Iterator[tuple[int, InputRow]]:
        """The same rows, counted. `rows`: pairs (number of the problem, row), those of a problem together."""
        last = None
        for number, row in rows:
            if row.again:
                self.rows += 1
                self.prefixes.setdefault(row.problem.problem_id, set()).update(_inner_prefixes(row))
            elif number != last:
                self.others += 1
            last = number
            yield number, row

    def repeated(self, units: Iterator[list[InputRow]]) -> int:
        """How many of the prefixes earlier units measure too."""
        found: set[str] = set()
        for row in (row for rows in units for row in rows):
            if wanted := self.prefixes.get(row.problem.problem_id):
                found |= wanted.intersection(_inner_prefixes(row))
        return len(found)


def _inner_prefixes(row: InputRow) -> list[str]:
    """Ids of the bare problem and of the inner steps of a row, as a first unit of the problem has them."""
    chain = row.solution
    inner = [prefix_id(chain, index) for index in range(1, len(chain.ends))] if chain else []
    return [root_id(row.problem.problem_id), *inner]


def _changed_row(row: InputRow, now: InputRow | Reject | None) -> ChangedRow:
    if now is None:
        detail = f"{VANISHED}: no row has its content, its id or its place"
    else:
        what = f"was rejected ({now.reason.value})" if isinstance(now, Reject) else f"has {what_changed(row, now)}"
        detail = f"changed: {_now_at(now.location)} {what}"
    return ChangedRow(
        location=row.location,
        source_id=row.source_id,
        problem_id=row.problem.problem_id,
        chain_id=row.solution.chain_id if row.solution else None,
        detail=detail,
    )


def _now_at(location: RowLocation) -> str:
    return f"the row at {location}" if location.file else f"the present {location}"


def _refusal(run_dir: str, changed: list[ChangedRow], number: int, used: int, limit: int | None) -> str:
    lines = [f"\n  {row.location} {row.detail}" for row in changed]
    if number > len(changed):
        lines.append(f"\n  and {number - len(changed):,} more")
    limited = f" raise data.limit={limit}," if limit is not None else ""
    return (
        f"{run_dir} has labels of rows that the input no longer has as they were, {number:,} of "
        f"{format_count(used, 'used row')}:"
        f"{''.join(lines)}\nRestore these rows,{limited} or use another run_dir. With data.changed=keep the run keeps their "
        "labels, marked in the column input_changed, and labels the rows in their place as new ones; `export` and `train` "
        "leave the marked ones out"
    )
