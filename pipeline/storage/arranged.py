"""`labels/` holds the current labels and nothing else, because people read `labels/*.parquet`.

Readers of this package follow commit records and find a file in either place.
"""

from collections.abc import Collection

from pipeline.storage.shards import ASIDE
from pipeline.storage.storage import Storage

LABELS = "labels"


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
