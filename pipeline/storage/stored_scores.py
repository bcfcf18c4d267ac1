"""The committed files of a score run, for commands that read scores."""

from pipeline.storage.run_record import SCORE
from pipeline.storage.shards import ShardRecord, intact_bytes
from pipeline.storage.storage import Storage
from pipeline.storage.stored_chain_run import stored_chain_run

TABLE = "scores"


def score_shards(storage: Storage, *, partial: bool = False) -> list[ShardRecord]:
    """The files with the scores of a run of `score`, in the order of its input; each is as it was committed. An unfinished run
    is accepted only with `partial`.

    Raises UsageError for a directory without such a run, StoreError for a damaged one.
    """
    shards = list(stored_chain_run(storage, SCORE, partial=partial).shards(TABLE))
    for shard in shards:
        intact_bytes(storage, shard)
    return shards
