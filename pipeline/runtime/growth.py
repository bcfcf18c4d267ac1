"""Stages what is new in the grown input of a run. Its old units stay as they are.

`input_comparison` says what is new: such rows go through the checks of a first start and are cut into new units.
Rows of old problems come first. They share no rollouts with the earlier units of their problems. A used row that is gone, or
that has another content now, has *changed*. That is refused.

Memory grows with the new rows of old problems, not with the other rows.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain, groupby, islice

from pipeline.config.label import DataConfig, RunConfig
from pipeline.core.errors import InputError
from pipeline.core.formatting import format_count
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Reject
from pipeline.data.prompts import prefix_id, root_id
from pipeline.graders.base import Checker
from pipeline.runtime.input_comparison import SCHEMA, Comparison, what_changed
from pipeline.runtime.intake import temporary_tables
from pipeline.storage.commits import Commit
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import content_of, staged_rows

SHOWN_CHANGES = 5
"""The largest number of changed rows that a refusal names."""


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
