"""What a run directory holds, for people: its first chains, and why rows were rejected."""

from collections import Counter
from itertools import islice

import pyarrow.compute as pc

from pipeline.storage.commits import INPUT, UNIT, Commit, chain, chains
from pipeline.storage.run_record import STAGED_INPUT, recorded_identity
from pipeline.storage.shards import read_shard
from pipeline.storage.standing import standing
from pipeline.storage.storage import Storage
from pipeline.storage.stored_labels import label_frames


def _staged_input(storage: Storage) -> Commit | None:
    return standing(chain(storage, INPUT, str(recorded_identity(storage)[STAGED_INPUT]))).whole


def first_chains(storage: Storage, count: int) -> list[dict[str, object]]:
    """The first `count` label rows, chains of a problem together."""
    rows = (row for frame in label_frames(storage) for row in frame.iter_rows(named=True))
    return list(islice(rows, count))


def reject_counts(storage: Storage) -> dict[str, int]:
    """How many rows were rejected for which reason, most frequent first."""
    counts: Counter[str] = Counter()
    staged = _staged_input(storage)
    for commit in [staged, *(standing(found).whole for found in chains(storage, UNIT))]:
        for shard in commit.shards if commit else ():
            if shard.table == "rejects":
                table = read_shard(storage, shard)
                whole_rows = table.filter(pc.is_null(table["step_index"]))
                counts.update(str(reason) for reason in whole_rows["reason"].to_pylist())
    return dict(counts.most_common())
