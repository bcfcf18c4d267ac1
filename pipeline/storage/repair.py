"""Finds and declares damage: files that differ from what was committed are set aside, and their content must be sampled again.

A file that is temporarily unreadable is not damage: the error ends the start, and the file stays.
"""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.core.errors import Absent, Damaged
from pipeline.core.ids import record_parts
from pipeline.storage.commits import (
    FOLDER,
    UNIT,
    Commit,
    CommitState,
    RecordSequence,
    commit_name,
    encode_commit,
    publish,
    publish_or_refuse,
    record_sequences,
    shards_in_use,
)
from pipeline.storage.shards import ShardRecord, intact_bytes, keep_damaged, set_aside_damaged
from pipeline.storage.storage import Storage
from pipeline.storage.units import UnitRef


def damaged_files(storage: Storage, sequence: RecordSequence) -> list[str]:
    """Names of the sequence's files in use that differ from what was committed."""
    return [shard.file for shard in shards_in_use(sequence) if not _intact(storage, shard)]


def repair(storage: Storage, sequence: RecordSequence) -> tuple[RecordSequence, list[str]]:
    """Set damaged files aside and declare them void. Returns the new sequence and the names of damaged files.

    Only for the driver that holds the run's lock. Raises RunConflict when another driver writes to the sequence nevertheless.
    """
    found = list(sequence.unreadable)
    for name in sequence.unreadable:
        parts = record_parts(name.removeprefix(f"{FOLDER}/"))
        assert parts is not None
        word = Commit(kind=sequence.kind, sequence_id=sequence.sequence_id, number=parts[2], state=CommitState.VOID)
        _supersede(storage, word)
        sequence = _with(sequence, word)
    sequence = replace(sequence, unreadable=())
    while names := damaged_files(storage, sequence):
        for name in names:
            set_aside_damaged(storage, name)
        word = Commit(
            kind=sequence.kind,
            sequence_id=sequence.sequence_id,
            number=sequence.length,
            state=CommitState.VOID,
            void=tuple(names),
        )
        publish_or_refuse(storage, word)
        sequence = _with(sequence, word)
        found += names
    return sequence, found


def _supersede(storage: Storage, commit: Commit) -> None:
    """Publish the record in place of a damaged or missing one. A copy of the damaged one is kept.

    The number is never free in between. Otherwise a driver with an older view of the sequence could take it, and commit rows
    that later records already contain.
    """
    name = commit_name(commit)
    while not publish(storage, commit):
        keep_damaged(storage, name)
        storage.replace(name, encode_commit(commit))


def _with(sequence: RecordSequence, word: Commit) -> RecordSequence:
    commits = sorted((*sequence.commits, word), key=lambda commit: commit.number)
    return replace(sequence, commits=tuple(commits), length=max(sequence.length, word.number + 1))


def _intact(storage: Storage, shard: ShardRecord) -> bool:
    try:
        intact_bytes(storage, shard)
    except (Absent, Damaged):
        return False
    return True


def sequences(storage: Storage) -> dict[str, RecordSequence]:
    """The record sequences of all units that have begun, by unit id."""
    return {found.sequence_id: found for found in record_sequences(storage, UNIT)}


def repaired(storage: Storage, units: Sequence[UnitRef]) -> tuple[dict[str, RecordSequence], list[str]]:
    """The record sequences of the units with every file checked, and the names of the damaged files, which are set aside."""
    found = sequences(storage)
    damaged: list[str] = []
    for unit in units:
        if unit.unit_id in found:
            found[unit.unit_id], names = repair(storage, found[unit.unit_id])
            damaged += names
    return found, damaged
