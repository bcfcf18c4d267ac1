"""Stages what is new in the grown input of a run. Its old units stay as they are.

`input_comparison` says what is new: such rows go through the checks of a first start and are cut into new units.
Rows of old problems come first. They share no rollouts with the earlier units of their problems. A used row that is gone, or
that has another content now, has *changed*. That is refused.

Memory grows with the new rows of old problems, not with the other rows.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from pipeline.config.label import DataConfig, RunConfig
from pipeline.core.errors import InputError
from pipeline.core.formatting import format_count
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Reject, Totals
from pipeline.data.prompts import prefix_id, root_id
from pipeline.graders.base import Checker
from pipeline.runtime.input_comparison import Comparison, what_changed
from pipeline.runtime.intake import RejectFiles, Staging, write_unit_files
from pipeline.storage.commits import Commit
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.temporary import temporary_folder
from pipeline.storage.units import content_of, staged_rows

SHOWN_CHANGES = 5
"""The largest number of changed rows that a refusal names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownInput:
    """A grown input, not yet committed. `shards`: all its files, also those of the input before. `totals`: of all its rows.

    The other counts are of what is new. `problems`: new ones. `rows_of_old`: used rows whose problems have chains in earlier
    units, `old_problems` of them; `repeated`: prefixes of them that these units measure too.
    """

    shards: tuple[ShardRecord, ...]
    totals: Totals
    used: int
    rejected: int
    problems: int
    rows_of_old: int
    old_problems: int
    repeated: int


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

    Raises InputError if used rows have changed, and StoreError.
    """
    with temporary_folder("stepvalue-growth-") as folder:
        database = sqlite3.connect(folder / "rows.sqlite", isolation_level=None)
        try:
            comparison = Comparison(database)
            for rows in staged_rows(storage, staged):
                comparison.add_used(rows)
            for shard in staged.shards:
                if shard.table == "rejects":
                    comparison.add_rejected(read_shard(storage, shard).to_pylist())
            comparison.read(data, checker, check)
            _refuse_changed(storage, staged, comparison, data.limit)
            return _stage(storage, staged, comparison, Staging(database, checker), run.unit_problems)
        finally:
            database.close()


def growth_line(grown: GrownInput, rollouts: int) -> str:
    """What is new, for the user. `rollouts`: the setting `sampling.rollouts`. Empty if nothing is."""
    if not (grown.used or grown.rejected):
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
    return f"the input grew: {'; '.join(parts)}"


def _refuse_changed(storage: Storage, staged: Commit, comparison: Comparison, limit: int | None) -> None:
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


def _stage(
    storage: Storage, staged: Commit, comparison: Comparison, staging: Staging, unit_problems: int
) -> GrownInput:
    """Write the files of what is new."""
    growth_id = content_id("growth", staged.sequence_id, str(staged.number))
    rejects = RejectFiles(storage, growth_id)
    for reject in comparison.rejects(staging.use):
        rejects.add(reject)
    rejects.flush()
    old = _OldProblems()
    rows = old.noted(
        (number, replace(row, again=comparison.earlier_units(row.problem.problem_id))) for number, row in staging.rows()
    )
    units = tuple(write_unit_files(storage, growth_id, rows, unit_problems))
    new = Totals(
        rows=staging.used + rejects.count, used=staging.used, rejected=rejects.count, mended=len(comparison.mended)
    )
    return GrownInput(
        shards=(*staged.shards, *units, *rejects.shards),
        totals=staged.totals + new,
        used=staging.used,
        rejected=rejects.count,
        problems=old.others,
        rows_of_old=old.rows,
        old_problems=len(old.prefixes),
        repeated=old.repeated(staged_rows(storage, staged)) if old.rows else 0,
    )


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


def _what_happened(row: InputRow, now: InputRow | Reject | None) -> str:
    """Where a used row was that has changed, and what stands in its place."""
    if now is None:
        return f"{row.location} vanished: no row has its content, its id or its place"
    at = f"the row at {now.location}" if now.location.file else f"the present {now.location}"
    what = f"was rejected ({now.reason.value})" if isinstance(now, Reject) else f"has {what_changed(row, now)}"
    return f"{row.location} changed: {at} {what}"
