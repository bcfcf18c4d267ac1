"""Editions: labels made later from the log of a finished run, by another rule or with other verdicts.

They stand in one chain of records per run directory. An edition names label files, and verdicts where these were made anew,
for all units, the settings they were made with, and the log they were made from. It holds the current labels as long as that
log is the run's; when the run has grown since, the current labels are the run's own again.

`labels/` holds the current labels and nothing else, because people read `labels/*.parquet`. Readers of this package follow
commit records and find a file in either place.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from pipeline.config.recorded_settings import Settings
from pipeline.core.ids import content_id
from pipeline.core.schemas import LEARNED
from pipeline.storage.commits import EDITION, Commit, CommitChain, CommitState, chains, resolve
from pipeline.storage.repair import repair
from pipeline.storage.shards import ASIDE, ShardRecord
from pipeline.storage.storage import Storage

EDITION_CHAIN = content_id("edition")
"""Id of the one chain of a run directory."""
LABELS = "labels"
VERDICTS = "verdicts"
_LOG = "log"


def log_digest(wholes: Mapping[str, Commit]) -> str:
    """What identifies the log of a finished run; `wholes` are the records that complete its units, by unit id."""
    return content_id("log", *(f"{unit_id}:{whole.number}" for unit_id, whole in sorted(wholes.items())))


def new_edition(
    editions: CommitChain, wholes: Mapping[str, Commit], settings: Settings, shards: Sequence[ShardRecord]
) -> Commit:
    """The record of the next edition."""
    recorded = {**settings, _LOG: log_digest(wholes)}
    return Commit(
        kind=EDITION,
        chain_id=EDITION_CHAIN,
        number=editions.length,
        state=CommitState.WHOLE,
        shards=tuple(shards),
        settings=tuple((key, json.dumps(value, sort_keys=True)) for key, value in sorted(recorded.items())),
    )


def edition_settings(edition: Commit) -> dict[str, object]:
    """The settings an edition was made with. Raises ValueError for a record that holds something else."""
    return {key: json.loads(value) for key, value in edition.settings if key != _LOG}


def current_edition(editions: CommitChain, wholes: Mapping[str, Commit]) -> Commit | None:
    """The edition that holds the current labels; None where those are the run's own, also where one of its files is void."""
    last = resolve(editions).whole
    return last if last and (_LOG, json.dumps(log_digest(wholes))) in last.settings else None


def current_shards(
    wholes: Mapping[str, Commit], edition: Commit | None, table: str = LABELS
) -> dict[str, tuple[ShardRecord, ...]]:
    """The files of the current labels (or verdicts), by unit id."""
    if edition is None:
        return {unit_id: _of(table, whole.shards) for unit_id, whole in wholes.items()}
    # A file's name has its id, which is `content_id(table, unit_id)`.
    by_part = {shard.file.rpartition("/")[2].split("-")[1]: shard for shard in _of(table, edition.shards)}
    parts = {unit_id: content_id(table, unit_id) for unit_id in wholes}
    return {unit_id: (by_part[part],) if part in by_part else () for unit_id, part in parts.items()}


def current_states(wholes: Mapping[str, Commit], edition: Commit | None) -> dict[str, tuple[ShardRecord, ...]]:
    """The files of what estimators have learnt for the current labels, by unit id: at most one for each."""
    found = [current_shards(wholes, edition, table) for table in LEARNED]
    return {unit_id: tuple(shard for each in found for shard in each[unit_id]) for unit_id in wholes}


def current_label_files(wholes: Mapping[str, Commit], edition: Commit | None) -> frozenset[str]:
    """What belongs into `labels/`, and nothing else does."""
    return frozenset(shard.file for shards in current_shards(wholes, edition).values() for shard in shards)


def arrange_labels(storage: Storage, current: Collection[str]) -> list[str]:
    """Move label files that are not among `current` to `aside/`, and those that are to `labels/`; the names of the former.

    Only for the job that holds the run's lock, with no worker left: `label` files are written in place.
    """
    there = storage.names(LABELS)
    others = [name for name in there if name not in current]
    for name in others:
        storage.move(name, name.replace(LABELS, ASIDE, 1))
    waiting = set(storage.names(ASIDE))
    for name in sorted(current):
        away = name.replace(LABELS, ASIDE, 1)
        if name not in there and away in waiting:
            storage.move(away, name)
    return others


def edition_chain(storage: Storage) -> CommitChain:
    """The chain of editions as it stands."""
    return next(chains(storage, EDITION), CommitChain(kind=EDITION, chain_id=EDITION_CHAIN))


def repaired_editions(storage: Storage, wholes: Mapping[str, Commit]) -> tuple[CommitChain, list[str]]:
    """The chain of editions with its damage set aside and declared void, and what was damaged; for who holds the lock.

    Editions that are not current may have lost files.
    """
    editions = edition_chain(storage)
    if editions.unreadable or current_edition(editions, wholes):
        return repair(storage, editions)
    return editions, []


def _of(table: str, shards: Iterable[ShardRecord]) -> tuple[ShardRecord, ...]:
    return tuple(shard for shard in shards if shard.table == table)
