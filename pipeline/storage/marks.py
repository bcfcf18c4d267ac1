"""Marks labels of rows that the present input of a run no longer has, in the column `input_changed`.

Labels that a worker writes have their marks. Here the labels of whole units get them: a record with another label file follows,
and nothing is sampled. All labels of a run have the column, or none of them.
"""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from pipeline.core.ids import content_id, row_content
from pipeline.core.schemas import INPUT_CHANGED, LABELS_GROWN, LABELS_MARKED
from pipeline.storage.changes import changed_contents, changes_of
from pipeline.storage.commits import Commit, RecordSequence, publish_or_refuse, resolve
from pipeline.storage.editions import LABELS
from pipeline.storage.shards import verified_file, write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import unit_keys

Key = tuple[str, str | None]
"""The `problem_id` and `chain_id` of a row."""
_READ = ("problem_id", "chain_id", INPUT_CHANGED)


def mark_changed_rows(
    storage: Storage, staged: Commit, wholes: Mapping[str, Commit], found: Mapping[str, RecordSequence]
) -> bool:
    """Give the labels of `wholes` (records of whole units by unit id) the marks of their rows in the `staged` input. True if
    any label changed.

    A unit that was extended since it was whole is left out: the worker that completes it marks its labels. Raises
    StoreError, and RunConflict when another driver writes to a unit.
    """
    contents = changed_contents(storage, changes_of(staged))
    changed = False
    for unit_id, keys in unit_keys(storage, staged) if contents is not None else ():
        whole = wholes.get(unit_id)
        if whole is not None and _is_last(whole, found[unit_id]):
            marks = {key: row_content(*key) in (contents or ()) for key in keys}
            changed |= _mark(storage, whole, found[unit_id].length, marks)
    return changed


def _marks_of(labels: pa.Table, marks: Mapping[Key, bool]) -> list[bool]:
    """The mark of each label row of a unit. A chain that no row gives was sampled for the row of its bare problem, or
    promoted from chains of the problem, any of which may have changed."""
    problems, chains = (map(str, labels[name].to_pylist()) for name in _READ[:2])
    of_problem: dict[str, bool] = {}
    for (problem, _), mark in marks.items():
        of_problem[problem] = of_problem.get(problem, False) or mark
    pairs = zip(problems, chains, strict=True)
    return [marks.get((problem, chain), marks.get((problem, None), of_problem[problem])) for problem, chain in pairs]


def _is_last(whole: Commit, sequence: RecordSequence) -> bool:
    log = resolve(sequence).log
    return all(shard in whole.shards for shard in log)


def _mark(storage: Storage, whole: Commit, number: int, marks: Mapping[Key, bool]) -> bool:
    shards = [shard for shard in whole.shards if shard.table == LABELS]
    if not shards:
        return False
    file = verified_file(storage, shards[0])
    names = file.schema_arrow.names
    read = file.read(columns=[name for name in _READ if name in names], use_threads=False)
    of_chains = _marks_of(read, marks)
    if INPUT_CHANGED in names and of_chains == read[INPUT_CHANGED].to_pylist():
        return False
    labels = file.read(use_threads=False)
    columns = {name: labels[name] for name in names} | {INPUT_CHANGED: pa.array(of_chains, pa.bool_())}
    schema = next(each for each in (LABELS_MARKED, *LABELS_GROWN) if {*each.names} == columns.keys())
    marked = pa.Table.from_arrays([columns[field.name] for field in schema], schema=schema)
    written = write_shard(storage, LABELS, content_id(LABELS, whole.sequence_id), [marked])
    others = tuple(shard for shard in whole.shards if shard.table != LABELS)
    publish_or_refuse(storage, replace(whole, number=number, shards=(*others, written)))
    return True
