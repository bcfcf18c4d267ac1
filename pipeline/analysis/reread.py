"""Reads the critiques of all judges of a run again, as `regrade` does: the parser or a plug-in may read otherwise now.

Where a reading has changed, an edition of the judge's run has the readings of all its critiques. The critiques stay as they
are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from pipeline.analysis.readings import Reader, reader_of, steps_of
from pipeline.core.errors import RunConflict, StoreError, UsageError
from pipeline.core.formatting import format_count
from pipeline.core.ids import content_id
from pipeline.core.tables import READINGS as READINGS_TABLE
from pipeline.core.tables import NewReading, readings_of
from pipeline.judges import PARSER_VERSION
from pipeline.storage.commits import publish_or_refuse
from pipeline.storage.editions import arrange, current_edition, current_files, new_edition, repaired_editions
from pipeline.storage.lock import hold_lock
from pipeline.storage.shards import write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_critiques import (
    READINGS,
    StoredJudge,
    critique_tables,
    judge_at,
    judge_names,
    judge_storage,
)
from pipeline.storage.units import unit_chains


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadJudge:
    """What became of the critiques of a judge. `number`: of the new edition of readings; None where no reading has changed.
    `fault`: why they were not read again; empty where they were."""

    name: str
    critiques: int = 0
    changed: int = 0
    number: int | None = None
    fault: str = ""


def reread_judges(storage: Storage, *, lock: bool) -> Iterator[RereadJudge]:
    """Read the critiques of each judge of a run again. A judge that cannot be read, is unfinished or is at work has a `fault`.
    Raises StoreError for a run directory that cannot be read."""
    for name in judge_names(storage):
        own = judge_storage(storage, name)
        try:
            with hold_lock(own, lock=lock):
                yield _reread(own, judge_at(own))
        except (UsageError, StoreError, RunConflict, ValueError) as error:
            yield RereadJudge(name=name, fault=str(error))


def reread_lines(judges: Iterator[RereadJudge]) -> Iterator[str]:
    """A line for each judge."""
    for judge in judges:
        if judge.fault:
            yield f"judge {judge.name}: not read again: {judge.fault}"
            continue
        read = f"judge {judge.name}: {format_count(judge.critiques, 'critique')} read again"
        if judge.number is None:
            yield f"{read}, and all say what they said before"
        else:
            changed = format_count(judge.changed, "reading")
            yield f"{read}, {changed} changed; labels by consensus follow the new ones"


def _reread(own: Storage, judge: StoredJudge) -> RereadJudge:
    reader = reader_of(judge.run.identity)
    editions, _ = repaired_editions(own, judge.run.wholes)
    critiques = changed = 0
    tables: dict[str, pa.Table] = {}
    for unit_id, table in critique_tables(judge):
        tables[unit_id] = _newly_read(own, judge, reader, unit_id, table)
        critiques += table.num_rows
        changed += sum(was != now for was, now in zip(*map(readings_of, (table, tables[unit_id])), strict=True))
    edition = current_edition(editions, judge.run.wholes)
    if changed:
        files = [
            write_shard(own, READINGS, content_id(READINGS, unit_id), [table]) for unit_id, table in tables.items()
        ]
        edition = new_edition(editions, judge.run.wholes, {"parser_version": PARSER_VERSION}, files, command="regrade")
        publish_or_refuse(own, edition)
    arrange(own, current_files((judge.run.staged, *judge.run.wholes.values()), edition))
    number = edition.number if edition and changed else None
    return RereadJudge(name=judge.name, critiques=critiques, changed=changed, number=number)


def _newly_read(own: Storage, judge: StoredJudge, reader: Reader, unit_id: str, critiques: pa.Table) -> pa.Table:
    (unit,) = (unit for unit in judge.run.units if unit.unit_id == unit_id)
    readings = reader(critiques, steps_of(unit_chains(own, unit)))
    ids = [str(each) for each in critiques["critique_id"].to_pylist()]
    return READINGS_TABLE.to_table(list(map(NewReading, ids, readings)))
