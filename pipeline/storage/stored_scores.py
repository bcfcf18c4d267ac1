"""The committed files of a score run, for commands that read scores."""

from pipeline.core.errors import StoreError, UsageError
from pipeline.core.formatting import format_unfinished
from pipeline.storage.commits import INPUT, UNIT, record_sequence, record_sequences, refuse_damage, resolve
from pipeline.storage.run_record import SCORE, STAGED_INPUT, command_of
from pipeline.storage.shards import ShardRecord, intact_bytes
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import readable_identity
from pipeline.storage.units import units_of

TABLE = "scores"


def score_shards(storage: Storage, *, partial: bool = False) -> list[ShardRecord]:
    """The files with the scores of a run of `score`, in the order of its input; each is as it was committed. An unfinished run
    is accepted only with `partial`.

    Raises UsageError for a directory without such a run, StoreError for a damaged one.
    """
    identity = readable_identity(storage)
    if (command := command_of(identity)) != SCORE:
        raise UsageError(f"{storage.run_dir} is a run of `{command}`: give a file or a folder that `score` has written")
    staged = resolve(record_sequence(storage, INPUT, str(identity[STAGED_INPUT]))).whole
    if staged is None:
        raise StoreError(f"{storage.run_dir} has no intact input: start `score` on it again to repair it")
    units = [unit.unit_id for unit in units_of(storage, staged)]
    wholes = {}
    for found in record_sequences(storage, UNIT):
        refuse_damage(found, storage.run_dir)
        if (whole := resolve(found).whole) is not None:
            wholes[found.sequence_id] = whole
    unfinished = sum(unit not in wholes for unit in units)
    if unfinished and not partial:
        raise UsageError(f"{storage.run_dir}: {format_unfinished(unfinished, len(units))}: finish the run with `score`")
    shards = [shard for unit in units if unit in wholes for shard in wholes[unit].shards if shard.table == TABLE]
    for shard in shards:
        intact_bytes(storage, shard)
    return shards
