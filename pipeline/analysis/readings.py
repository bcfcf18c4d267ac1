"""Reads the stored critiques of judges again: for `audit`, which compares, and for `regrade`, which writes what has changed,
because the parser or a plug-in may read otherwise now.

Where a reading has changed, an edition of the judge's run has the readings of all its critiques. The critiques stay as they
are. Only this module of `analysis` knows judges. It asks none of them for a critique.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from pipeline.config.judge import JudgeConfig
from pipeline.config.recorded_settings import Settings, chosen_settings
from pipeline.core.errors import RunConflict, StoreError, UsageError
from pipeline.core.formatting import format_count
from pipeline.core.ids import content_id
from pipeline.core.records import Finish, Reading
from pipeline.core.tables import CRITIQUES, READINGS, NewReading, readings_of, turns_of
from pipeline.judges import PARSER_VERSION
from pipeline.judges.base import read_critique
from pipeline.judges.registry import JUDGES, judge_for
from pipeline.storage.commits import publish_or_refuse
from pipeline.storage.editions import arrange, current_edition, current_files, new_edition, repaired_editions
from pipeline.storage.lock import hold_lock
from pipeline.storage.shards import write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_critiques import JUDGE_RUNS, StoredJudge
from pipeline.storage.units import unit_chains

Reader = Callable[[pa.Table, pa.Table], list[Reading]]
"""Reads the critiques of a unit, given its chains."""


def reader_of(settings: Settings) -> Reader:
    """What reads the critiques of the judge with these recorded settings.

    Raises UsageError for a judge that is not installed here as it was, and ValueError for invalid settings.
    """
    judge = judge_for(chosen_settings(settings, JudgeConfig, JUDGES))

    def read(critiques: pa.Table, chains: pa.Table) -> list[Reading]:
        steps = {row["row"]: len(row["steps"]) for row in chains.select(["row", "steps"]).to_pylist()}
        columns: list[list[Any]] = [critiques[name].to_pylist() for name in ("row", "text", "turn_ends", "finish")]
        return [
            read_critique(judge, turns_of(text, ends), Finish(finish), steps[row])
            for row, text, ends, finish in zip(*columns, strict=True)
        ]

    return read


def reread_lines(storage: Storage, *, lock: bool) -> Iterator[str]:
    """Read the critiques of each judge of a run again, and say in a line what became of them. A judge that cannot be read, is
    unfinished or is at work is left as it is. Raises StoreError for a run directory that cannot be read."""
    for name in JUDGE_RUNS.names(storage):
        own = JUDGE_RUNS.at(storage, name)
        try:
            with hold_lock(own, lock=lock):
                critiques, changed = _reread(JUDGE_RUNS.read(storage, name))
        except (UsageError, StoreError, RunConflict, ValueError) as error:
            yield f"judge {name}: not read again: {error}"
            continue
        others = f"{format_count(changed, 'reading')} changed; labels by consensus follow the new ones"
        said = others if changed else "and all say what they said before"
        yield f"judge {name}: {format_count(critiques, 'critique')} read again, {said}"


def _reread(judge: StoredJudge) -> tuple[int, int]:
    """Read the critiques of a judge again. Returns the number of critiques, and how many readings have changed; if any has,
    there is a new edition of readings."""
    own = judge.storage
    reader = reader_of(judge.identity)
    editions, _ = repaired_editions(own, judge.wholes)
    critiques = changed = 0
    tables: dict[str, pa.Table] = {}
    for unit, table in judge.tables(CRITIQUES):
        readings = reader(table, unit_chains(own, unit))
        ids = map(str, table["critique_id"].to_pylist())
        tables[unit.unit_id] = READINGS.to_table(list(map(NewReading, ids, readings)))
        critiques += table.num_rows
        changed += sum(was != now for was, now in zip(readings_of(table), readings, strict=True))
    edition = current_edition(editions, judge.wholes)
    if changed:
        files = [
            write_shard(own, READINGS.name, content_id(READINGS.name, unit_id), [table])
            for unit_id, table in tables.items()
        ]
        edition = new_edition(editions, judge.wholes, {"parser_version": PARSER_VERSION}, files, command="regrade")
        publish_or_refuse(own, edition)
    arrange(own, current_files((*judge.planned, *judge.wholes.values()), edition))
    return critiques, changed
