"""The growths of a run: what `grow` has decided to spend, in which problems. All are in one record sequence.

The record of a growth names the picker's settings and a file of allotments. It is published before anything is promoted, so a
growth that was interrupted goes on as it was planned, whoever starts it again.
"""

from collections.abc import Iterable, Mapping, Sequence

from pipeline.config.recorded_settings import Settings
from pipeline.core.ids import content_id
from pipeline.core.tables import ALLOTMENTS, Allotment
from pipeline.storage.commits import (
    GROWTH,
    Commit,
    CommitState,
    RecordSequence,
    completions,
    publish_or_refuse,
    record_sequence,
)
from pipeline.storage.run_record import settings_copy
from pipeline.storage.shards import read_shard, write_shard
from pipeline.storage.storage import Storage

TABLE = ALLOTMENTS.name
STRENGTH = "strength"
"""Key of the strength of the prior in the settings of a growth, see `trees.posterior`."""
SEQUENCE = content_id("growth")
"""Id of the sequence of growths, one per run directory."""


def growth_sequence(storage: Storage) -> RecordSequence:
    """The records of all growths, as they are. Raises StoreError."""
    return record_sequence(storage, GROWTH, SEQUENCE)


def growths_of(sequence: RecordSequence) -> tuple[Commit, ...]:
    """The growths in their order, without those whose file is void."""
    return tuple(commit for commit, files in completions(sequence) if files == commit.shards)


def growths_needed(growths: Sequence[Commit]) -> int:
    """What `UnitTarget.growths` is in a unit that has had all of these growths."""
    return growths[-1].number + 1 if growths else 0


def growths_begun(storage: Storage) -> int:
    """What `UnitTarget.growths` is in a unit of a run that owes no growth. Raises StoreError."""
    return growths_needed(growths_of(growth_sequence(storage)))


def has_grown(wholes: Iterable[Commit], growths: int) -> int:
    """How many of these finished units have had `growths` growths."""
    return sum(whole.unit_target.growths >= growths for whole in wholes)


def begin_growth(
    storage: Storage, sequence: RecordSequence, settings: Settings, rows: Iterable[tuple[str, str, int]]
) -> None:
    """Publish the record of the next growth, with a file of what each problem may cost: `rows` of (unit id, problem id,
    budget). Raises RunConflict, and StoreError."""
    table = ALLOTMENTS.to_table([Allotment(*row) for row in rows])
    commit = Commit(
        kind=GROWTH,
        sequence_id=SEQUENCE,
        number=sequence.length,
        state=CommitState.WHOLE,
        shards=(write_shard(storage, TABLE, content_id(TABLE, str(sequence.length)), [table]),),
        settings=settings_copy(settings),
    )
    publish_or_refuse(storage, commit)


def allotments(storage: Storage, growth: Commit) -> Mapping[str, Mapping[str, int]]:
    """Unit id -> problem id -> what the growth may cost there. Raises StoreError for a missing or damaged file."""
    found: dict[str, dict[str, int]] = {}
    for unit_id, problem_id, budget in ALLOTMENTS.from_table(read_shard(storage, growth.shards[0])):
        found.setdefault(unit_id, {})[problem_id] = budget
    return found
