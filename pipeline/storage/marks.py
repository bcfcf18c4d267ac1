"""Marks labels of rows that the present input of a run no longer has, in the column `input_changed`.

Labels that a worker writes have their marks. Here the labels of whole units get them: a record with another label file follows,
and nothing is sampled. All labels of a run have the column, or none of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from pipeline.core.errors import StoreError
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow
from pipeline.core.schemas import INPUT_CHANGED, LABELS_MARKED
from pipeline.storage.commits import Commit, RecordSequence, publish, resolve
from pipeline.storage.editions import LABELS
from pipeline.storage.shards import read_shard, write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_labels import is_former
from pipeline.storage.units import UnitRef, unit_rows


def mark_changed_rows(
    storage: Storage, units: Iterable[UnitRef], wholes: Mapping[str, Commit], found: Mapping[str, RecordSequence]
) -> bool:
    """Give the labels of `wholes` (records of whole units by unit id) the marks of their rows. True if any label changed.

    A unit that was extended since it was whole is left out: the worker that completes it marks its labels. So are labels with
    the columns of schema 3. Raises StoreError, also when another driver writes to a unit.
    """
    changed = False
    for unit in units:
        whole = wholes.get(unit.unit_id)
        if unit.changes is not None and whole is not None and _is_last(whole, found[unit.unit_id]):
            changed |= _mark(storage, unit, whole, found[unit.unit_id].length)
    return changed


def _marks_of(labels: pa.Table, rows: Sequence[InputRow]) -> list[bool | None]:
    """The mark of each label row of a unit, from the unit's rows."""
    of_chain: dict[object, bool | None] = {row.solution.chain_id: row.changed for row in rows if row.solution}
    of_bare: dict[object, bool | None] = {row.problem.problem_id: row.changed for row in rows if row.solution is None}
    pairs = zip(labels["chain_id"].to_pylist(), labels["problem_id"].to_pylist(), strict=True)
    return [of_chain[chain] if chain in of_chain else of_bare[problem] for chain, problem in pairs]


def _is_last(whole: Commit, sequence: RecordSequence) -> bool:
    log = resolve(sequence).log
    return all(shard in whole.shards for shard in log)


def _mark(storage: Storage, unit: UnitRef, whole: Commit, number: int) -> bool:
    shards = [shard for shard in whole.shards if shard.table == LABELS]
    if not shards:
        return False
    labels = read_shard(storage, shards[0])
    marks = _marks_of(labels, unit_rows(storage, unit))
    there = labels[INPUT_CHANGED].to_pylist() if INPUT_CHANGED in labels.column_names else None
    if marks == there or is_former(labels.column_names):
        return False
    columns = {name: labels[name] for name in labels.column_names} | {INPUT_CHANGED: pa.array(marks, pa.bool_())}
    marked = pa.Table.from_arrays([columns[field.name] for field in LABELS_MARKED], schema=LABELS_MARKED)
    written = write_shard(storage, LABELS, content_id(LABELS, unit.unit_id), [marked])
    others = tuple(shard for shard in whole.shards if shard.table != LABELS)
    if not publish(storage, replace(whole, number=number, shards=(*others, written))):
        raise StoreError(f"another job works on {storage.run_dir}: wait for it, then start again")
    return True
