"""What all growths of a run have promoted, in numbers."""

from dataclasses import dataclass

from pipeline.core.tables import PROMOTIONS, ROLLOUTS
from pipeline.data.grown import grown_id
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import stored_run


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownCounts:
    """The promoted prefixes of a run, and the rollouts and tokens of theirs."""

    promoted: int
    rollouts: int
    tokens: int


def grown_counts(storage: Storage) -> GrownCounts:
    """What the finished units of a run have promoted. Raises StoreError for a missing or damaged file."""
    promoted = rollouts = tokens = 0
    for whole in stored_run(storage).wholes.values():
        ends = {
            grown_id(each, len(each.ends))
            for shard in whole.shards
            if shard.table == PROMOTIONS.name
            for each in PROMOTIONS.from_table(read_shard(storage, shard))
        }
        promoted += len(ends)
        for shard in whole.shards if ends else ():
            if shard.table == ROLLOUTS.name:
                table = read_shard(storage, shard, ("prefix_id", "n_tokens"))
                prefixes, counts = (table[name].to_pylist() for name in ("prefix_id", "n_tokens"))
                found = [int(count or 0) for prefix, count in zip(prefixes, counts, strict=True) if prefix in ends]
                rollouts, tokens = rollouts + len(found), tokens + sum(found)
    return GrownCounts(promoted=promoted, rollouts=rollouts, tokens=tokens)
