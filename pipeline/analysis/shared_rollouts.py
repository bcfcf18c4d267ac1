"""Labels a run with the rollouts of another one that would have requested the same: a sweep samples them once.

The other run directory gets copies of all files of the log, and labels of its own. It is a run like any other: it has its own
settings, `audit` proves it, and `label` on it goes on. Nothing in it depends on the first directory.

The caller makes sure that both runs have the same settings of everything but what `Estimator.settings_after_sampling` names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pipeline.core.errors import StoreError
from pipeline.core.ids import content_id
from pipeline.core.schemas import LOG_KEYS
from pipeline.estimators.base import Estimator
from pipeline.estimators.labelling import labels_of, rollout_outcomes_of, stored_chains
from pipeline.estimators.tree import trials_of
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    RecordSequence,
    publish_or_refuse,
    record_sequence,
    record_sequences,
    resolve,
)
from pipeline.storage.editions import LABELS
from pipeline.storage.lock import hold_lock
from pipeline.storage.run_record import STAGED_INPUT, as_recorded, claim, settings_copy
from pipeline.storage.shards import ShardRecord, intact_bytes, read_shard, set_aside_damaged, write_shard
from pipeline.storage.storage import Storage, sha256_of
from pipeline.storage.stored_run import refuse_unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRollouts:
    """`same`: both runs have the same rollouts now. `labelled`: the units that were labelled with them just now."""

    same: bool
    labelled: int = 0


def label_with_rollouts_of(
    source: Storage,
    target: Storage,
    identity: Mapping[str, object],
    estimator: Estimator,
    check: Callable[[], None] = lambda: None,
    *,
    lock: bool = True,
) -> SharedRollouts:
    """Label the run with this identity in `target` with the rollouts of the finished run in `source`. Units that are labelled
    with these rollouts already stay as they are.

    Nothing changes where `target` has rollouts of its own, which would be lost, or began with another input than `source`.
    `check` is called before each unit and may raise: what is done is kept. Raises StoreError for damage, RunConflict and
    UsageError.
    """
    run = refuse_unfinished(source)
    if run.identity.get(STAGED_INPUT) != identity[STAGED_INPUT]:
        return SharedRollouts(same=False)
    with hold_lock(target, lock=lock) as alone:
        identity = as_recorded(target, identity, alone=alone)
        if run.identity.get(STAGED_INPUT) != identity[STAGED_INPUT]:
            return SharedRollouts(same=False)
        claim(target, identity, alone=alone)
        known = {found.sequence_id: found for found in record_sequences(target, UNIT)}
        units = [(unit.unit_id, known.get(unit.unit_id, _empty(unit.unit_id))) for unit in run.units]
        if any(found.unreadable or not _holds(run.wholes[unit_id], found) for unit_id, found in units):
            return SharedRollouts(same=False)
        _copy_input(source, target, identity)
        missing = [
            (unit_id, found) for unit_id, found in units if not _is_labelled(run.wholes[unit_id], resolve(found).whole)
        ]
        for unit_id, found in missing:
            check()
            _label(source, target, run.wholes[unit_id], found, estimator)
    return SharedRollouts(same=True, labelled=len(missing))


def _empty(unit_id: str) -> RecordSequence:
    return RecordSequence(kind=UNIT, sequence_id=unit_id)


def _log(shards: Sequence[ShardRecord]) -> list[ShardRecord]:
    return [shard for shard in shards if shard.table in LOG_KEYS]


def _holds(whole: Commit, found: RecordSequence) -> bool:
    """Whether a unit of the source has everything that this one has."""
    return set(resolve(found).log) <= set(_log(whole.shards))


def _is_labelled(whole: Commit, ours: Commit | None) -> bool:
    return ours is not None and _log(ours.shards) == _log(whole.shards) and ours.unit_target == whole.unit_target


def _copy_input(source: Storage, target: Storage, identity: Mapping[str, object]) -> None:
    staged_id = str(identity[STAGED_INPUT])
    found = record_sequence(target, INPUT, staged_id)
    if resolve(found).whole is not None:
        return
    staged = resolve(record_sequence(source, INPUT, staged_id)).whole
    if staged is None:
        raise StoreError(f"{source.run_dir} has no intact input: start `label` on it again to repair it")
    for shard in staged.shards:
        _copy(source, target, shard)
    publish_or_refuse(target, replace(staged, number=found.length, settings=settings_copy(identity)))


def _label(source: Storage, target: Storage, whole: Commit, found: RecordSequence, estimator: Estimator) -> None:
    kept = [shard for shard in whole.shards if shard.table != LABELS]
    for shard in (*kept, *whole.base):
        _copy(source, target, shard)
    labels = [
        write_shard(target, LABELS, content_id(LABELS, whole.sequence_id), [_labels(source, whole, shard, estimator)])
        for shard in whole.shards
        if shard.table == LABELS
    ]
    publish_or_refuse(target, replace(whole, number=found.length, shards=(*kept, *labels)))


def _labels(source: Storage, whole: Commit, labels: ShardRecord, estimator: Estimator) -> pa.Table:
    learner = estimator.learner
    learned = [shard for shard in whole.shards if learner is not None and shard.table == learner.table]
    state = learner.from_table(read_shard(source, learned[0])) if learner is not None else None
    rollouts = [read_shard(source, shard) for shard in whole.shards if shard.table == "rollouts"]
    chains = stored_chains(read_shard(source, labels))
    return labels_of(chains, trials_of(rollout_outcomes_of(rollouts).values()), estimator, state)


def _copy(source: Storage, target: Storage, shard: ShardRecord) -> None:
    """Copy a committed file under its name, which holds the hash of its content."""
    data = intact_bytes(source, shard)
    if not target.create(shard.file, data) and sha256_of(target.read(shard.file)) != shard.sha256:
        set_aside_damaged(target, shard.file)
        target.create(shard.file, data)
