"""Stages what is new in the grown input of a run. Its old units stay as they are.

`input_comparison` says what is new: such rows go through the checks of a first start and are cut into new units.
Rows of old problems come first. They share no rollouts with the earlier units of their problems. A used row that is gone, or
that has another content now, has *changed*. That is refused.

Memory grows with the new rows of old problems, not with the other rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice

from pipeline.config.label import DataConfig, RunConfig
from pipeline.core.errors import InputError
from pipeline.core.formatting import format_count
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Reject, Totals
from pipeline.data.prompts import prefix_id, root_id
from pipeline.graders.base import Checker
from pipeline.runtime.input_comparison import SCHEMA, Comparison, what_changed
from pipeline.runtime.intake import RejectFiles, temporary_tables
from pipeline.storage.commits import Commit
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import content_of, staged_rows

SHOWN_CHANGES = 5
"""The largest number of changed rows that a refusal names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownInput:
    """`staged`: the record of the input before, with the files and totals of the grown one. `new`: of the rows that are new.

    `problems`: new ones. `rows_of_old`: used rows whose problems have chains in earlier units, `old_problems` of them;
    `repeated`: prefixes of them that these units measure too.
    """

    staged: Commit
    new: Totals
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
    with temporary_tables(SCHEMA) as database:
        comparison = Comparison(database, checker)
        for rows in staged_rows(storage, staged):
            comparison.add_used(rows)
        for shard in staged.shards:
            if shard.table == "rejects":
                comparison.add_rejected(read_shard(storage, shard).to_pylist())
        comparison.read(data, check)
        _refuse_changed(storage, staged, comparison, data.limit)
        growth_id = content_id("growth", staged.sequence_id, str(staged.number))
        rejects = RejectFiles(storage, growth_id)
        for reject in comparison.rejects():
            rejects.add(reject)
        rejects.flush()
        units = tuple(comparison.unit_files(storage, growth_id, run.unit_problems))
        new = comparison.totals(rejects, len(comparison.mended))
        shards = (*staged.shards, *units, *rejects.shards)
        return _counted(storage, staged, replace(staged, shards=shards, totals=staged.totals + new), comparison, new)


def growth_line(grown: GrownInput, rollouts: int) -> str:
    """What is new, for the user. `rollouts`: the setting `sampling.rollouts`. Empty if nothing is."""
    new = grown.new
    if not new.rows:
        return ""
    parts = [f"{format_count(new.rows, 'new row')} = {new.used:,} used + {new.rejected:,} rejected"]
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


def _counted(storage: Storage, before: Commit, grown: Commit, comparison: Comparison, new: Totals) -> GrownInput:
    problems = rows_of_old = 0
    prefixes: dict[str, set[str]] = {}
    for _, rows in groupby(comparison.rows(), key=lambda numbered: numbered[0]):
        of_problem = [row for _, row in rows]
        if of_problem[0].again:
            rows_of_old += len(of_problem)
            prefixes[of_problem[0].problem.problem_id] = set(chain.from_iterable(map(_inner_prefixes, of_problem)))
        else:
            problems += 1
    repeated: set[str] = set()
    for unit in staged_rows(storage, before) if prefixes else ():
        for row in unit:
            if wanted := prefixes.get(row.problem.problem_id):
                repeated |= wanted.intersection(_inner_prefixes(row))
    return GrownInput(
        staged=grown,
        new=new,
        problems=problems,
        rows_of_old=rows_of_old,
        old_problems=len(prefixes),
        repeated=len(repeated),
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
