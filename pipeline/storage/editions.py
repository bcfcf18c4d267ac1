"""Editions: labels that are made from the whole log of a finished run, by `label` itself or later by another rule or verdicts.

All editions of a run directory are in one record sequence. The record of an edition names label files for all units
(and verdict files if the verdicts are new), the settings, and the log from which the labels were made. The last edition has the
current labels as long as the log is unchanged. When the run has grown since, the labels of `label` count again.

People read `labels/*.parquet` and the other tables directly, so their folders contain only the current files. This package
follows commit records and finds a file in its folder or in `aside/`.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from pipeline.config.recorded_settings import Settings
from pipeline.core.ids import content_id, is_shard_file
from pipeline.core.table import TABLES
from pipeline.core.tables import LEARNED
from pipeline.storage.commits import EDITION, Commit, CommitState, RecordSequence, record_sequences, resolve
from pipeline.storage.repair import repair
from pipeline.storage.shards import ASIDE, ShardRecord, aside_name, set_aside
from pipeline.storage.storage import Storage
from pipeline.storage.unit_files import FLUSHED

EDITION_SEQUENCE = content_id("edition")
"""Id of the sequence of editions, one per run directory."""
LABELS = "labels"
VERDICTS = "verdicts"
_LOG, _COMMAND = "log", "command"
"""Keys of what a record says of its edition beside the settings."""


def log_digest(wholes: Mapping[str, Commit]) -> str:
    """The identity of the log of a finished run. `wholes`: the records that complete its units, by unit id."""
    return content_id("log", *(f"{unit_id}:{whole.number}" for unit_id, whole in sorted(wholes.items())))


def new_edition(
    editions: RecordSequence,
    wholes: Mapping[str, Commit],
    settings: Settings,
    shards: Sequence[ShardRecord],
    *,
    command: str = "",
    learned_from: int = 0,
) -> Commit:
    """The record of the next edition. `command`: see `edition_command`."""
    recorded = {**settings, _LOG: log_digest(wholes), _COMMAND: command}
    return Commit(
        kind=EDITION,
        sequence_id=EDITION_SEQUENCE,
        number=editions.length,
        state=CommitState.WHOLE,
        shards=tuple(shards),
        learned_from=learned_from,
        settings=tuple((key, json.dumps(value, sort_keys=True)) for key, value in sorted(recorded.items())),
    )


def edition_settings(edition: Commit) -> dict[str, object]:
    """The settings of an edition. Raises ValueError for an invalid record."""
    return {key: value for key, value in edition.recorded.items() if key not in (_LOG, _COMMAND)}


def own_editions(editions: RecordSequence) -> list[Commit]:
    """The editions that `label` itself has made, the last one first. They may be damaged."""
    return [
        each for each in reversed(editions.commits) if each.state is CommitState.WHOLE and not edition_command(each)
    ]


def current_edition(editions: RecordSequence, wholes: Mapping[str, Commit]) -> Commit | None:
    """The edition with the current labels. None where these are the run's own, or where a file of the edition is void."""
    last = resolve(editions).whole
    return last if last and (_LOG, json.dumps(log_digest(wholes))) in last.settings else None


def edition_command(edition: Commit | None) -> str:
    """The command by which a user has made an edition. Empty for the labels of `label` itself, with an edition or without."""
    # Records of earlier versions have no command.
    return "" if edition is None else str(json.loads(dict(edition.settings).get(_COMMAND, '"relabel"')))


def current_shards(
    wholes: Mapping[str, Commit], edition: Commit | None, table: str = LABELS
) -> dict[str, tuple[ShardRecord, ...]]:
    """The files of the current labels (or verdicts), by unit id."""
    if edition is None:
        return {unit_id: _of(table, whole.shards) for unit_id, whole in wholes.items()}
    # The name of a file contains its id, `content_id(table, unit_id)`.
    by_part = {shard.file.rpartition("/")[2].split("-")[1]: shard for shard in _of(table, edition.shards)}
    parts = {unit_id: content_id(table, unit_id) for unit_id in wholes}
    return {unit_id: (by_part[part],) if part in by_part else () for unit_id, part in parts.items()}


def current_states(wholes: Mapping[str, Commit], edition: Commit | None) -> dict[str, tuple[ShardRecord, ...]]:
    """The files of the estimator's state for the current labels, by unit id: at most one per unit, and the same for all units
    of an edition, but for editions of earlier versions."""
    own = [current_shards(wholes, edition, table) for table in LEARNED]
    found = {unit_id: tuple(shard for each in own for shard in each[unit_id]) for unit_id in wholes}
    return {unit_id: each or (_states(edition) if edition else ()) for unit_id, each in found.items()}


def common_state(wholes: Mapping[str, Commit], edition: Commit | None) -> tuple[ShardRecord, ...]:
    """The file of the state of the current labels, if it was learned from all units alike; else empty. Without an edition only
    a single unit has such a state, unless it began with one that its own chains had taught."""
    labelled = [whole for whole in wholes.values() if _of(LABELS, whole.shards)]
    maker = edition or (labelled[0] if len(labelled) == 1 and not labelled[0].base else None)
    states = _states(maker) if maker else ()
    return states if len(states) == 1 else ()


def current_files(records: Iterable[Commit], edition: Commit | None) -> frozenset[str]:
    """The files that belong in the folders of a finished run. `records`: of its input, its growths and its whole units."""
    own = (shard for commit in records for shard in commit.shards if edition is None or shard.table != LABELS)
    return frozenset(shard.file for shard in (*own, *(edition.shards if edition else ())))


def arrange(storage: Storage, current: Collection[str], units: Iterable[RecordSequence] | None = None) -> None:
    """Leave only `current` data files in the folders of a finished run: others move to `aside/`, and back. With the records of
    its `units`, parts that none of them names move too.

    Only for the job that holds the run's lock, when no worker is running, because workers write directly into these folders. It
    removes nothing: a worker that was given up may yet commit its files, and readers of records find them in `aside/`.
    """
    there = set(data_files(storage))
    strays = there.difference(current)
    if units is not None:
        parts = filter(is_shard_file, storage.names(FLUSHED))
        strays |= {*parts} - {shard.file for found in units for commit in found.commits for shard in commit.shards}
    for name in sorted(strays):
        set_aside(storage, name)
    waiting = set(storage.names(ASIDE))
    for name in sorted(set(current) - there):
        if aside_name(name) in waiting:
            storage.move(aside_name(name), name)


def data_files(storage: Storage) -> list[str]:
    """The data files in the folders that people read, one folder per table. Files of others are left out."""
    folders = TABLES.keys() & set(storage.names(""))
    return [name for folder in sorted(folders) for name in storage.names(folder) if is_shard_file(name)]


def edition_sequence(storage: Storage) -> RecordSequence:
    """The sequence of editions, without repair."""
    return next(record_sequences(storage, EDITION), RecordSequence(kind=EDITION, sequence_id=EDITION_SEQUENCE))


def repaired_editions(storage: Storage, wholes: Mapping[str, Commit]) -> tuple[RecordSequence, list[str]]:
    """Repair the sequence of editions, see `repair`. Returns the sequence and the names of damaged files. Needs the lock.

    Missing files of editions that are not current are ignored.
    """
    editions = edition_sequence(storage)
    if editions.unreadable or current_edition(editions, wholes):
        return repair(storage, editions)
    return editions, []


def _states(maker: Commit) -> tuple[ShardRecord, ...]:
    return tuple(shard for shard in maker.shards if shard.table in LEARNED)


def _of(table: str, shards: Iterable[ShardRecord]) -> tuple[ShardRecord, ...]:
    return tuple(shard for shard in shards if shard.table == table)


def whose_labels(editions: RecordSequence, wholes: Mapping[str, Commit]) -> str:
    """A note for the user if the current labels come from an edition of theirs, or no longer do; else an empty text."""
    current = current_edition(editions, wholes)
    if current is not None and edition_command(current):
        return f"of edition {current.number} ({edition_command(current)})"
    made = [each.number for each in editions.commits if each.state is CommitState.WHOLE and edition_command(each)]
    if made:
        return (
            f"the run's own: edition {made[-1]} is damaged, or rollouts were added or replaced since it was made; "
            "make it again with relabel or regrade"
        )
    return ""
