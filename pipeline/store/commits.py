"""Commit records: what exists in a run directory. A file that no record names does not exist.

A record is a small JSON file published by create-if-absent, so one unit is committed once, by whoever was first.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.errors import StoreError
from pipeline.ids import file_name
from pipeline.records import Totals
from pipeline.store.files import publish_if_absent, read
from pipeline.store.shards import ShardRecord

_FOLDER = "commits"
INPUT = "input"
UNIT = "unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Files that belong together, under the id of the unit (or of the input) they are the result of."""

    kind: str
    unit_id: str
    shards: tuple[ShardRecord, ...]
    totals: Totals
    seconds: float


def publish(run_dir: Path, commit: Commit) -> Commit:
    """Publish the record and return the one that stands: this one, or the first one when another came before."""
    data = json.dumps(asdict(commit), indent=1, sort_keys=True).encode()
    path = run_dir / _FOLDER / file_name(commit.kind, commit.unit_id, suffix="json")
    return commit if publish_if_absent(path, data) else _load(path)


def committed(run_dir: Path, kind: str) -> Iterator[Commit]:
    """All records of a kind, in the order of their ids. Raises StoreError for one that cannot be read."""
    for path in sorted((run_dir / _FOLDER).glob(f"{kind}-*.json")):
        yield _load(path)


def committed_unit(run_dir: Path, kind: str, unit_id: str) -> Commit | None:
    """The record of one unit, None where there is none."""
    path = run_dir / _FOLDER / file_name(kind, unit_id, suffix="json")
    return _load(path) if path.exists() else None


def committed_ids(run_dir: Path, kind: str) -> set[str]:
    """Ids of the records of a kind, without reading them."""
    return {path.stem.removeprefix(f"{kind}-") for path in (run_dir / _FOLDER).glob(f"{kind}-*.json")}


def _load(path: Path) -> Commit:
    try:
        fields = json.loads(read(path))
        return Commit(
            kind=fields["kind"],
            unit_id=fields["unit_id"],
            shards=tuple(ShardRecord(**shard) for shard in fields["shards"]),
            totals=Totals(**fields["totals"]),
            seconds=fields["seconds"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{path} is not a commit record ({error}): move it away and start the command again"
        ) from error
