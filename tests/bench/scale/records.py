"""What a folder takes of commit records, and what a run asks of it."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.ids import content_id, shard_name
from pipeline.storage.commits import UNIT, Commit, CommitState, publish
from pipeline.storage.editions import LABELS
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import sha256_of

SECONDS = 3.0
FILES_OF_A_UNIT = 4
"""Rollouts, labels, a kernel and the record that names them."""
FILES_OF_A_FLUSH = 2
"""Rollouts and their record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Records that one writer published per second, and how long one took."""

    per_second: float
    milliseconds: float


def measured(folder: Path | None = None) -> Rate:
    """One record after the other, each flushed to the disk, read back and linked, for some seconds in a folder of `folder`."""
    with tempfile.TemporaryDirectory(prefix="stepvalue-scale-", dir=folder) as place:
        storage = LocalStorage(Path(place))
        began = time.perf_counter()
        count = 0
        while time.perf_counter() - began < SECONDS:
            publish(storage, _record(content_id("unit", str(count))))
            count += 1
        seconds = time.perf_counter() - began
    return Rate(per_second=count / seconds, milliseconds=1e3 * seconds / count)


def files_per_second(*, units_per_second: float, units_in_flight: int, flush_seconds: float) -> float:
    """What a whole run publishes: files and records of units, and those of flushes while units are in work."""
    return FILES_OF_A_UNIT * units_per_second + FILES_OF_A_FLUSH * units_in_flight / flush_seconds


def _record(unit_id: str) -> Commit:
    digest = sha256_of(unit_id.encode())
    shards = tuple(
        ShardRecord(table=table, file=f"{table}/{shard_name(table, unit_id, digest)}", sha256=digest, rows=1)
        for table in ("rollouts", LABELS)
    )
    return Commit(kind=UNIT, sequence_id=unit_id, number=0, state=CommitState.WHOLE, shards=shards)
